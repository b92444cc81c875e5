use super::*;

#[test]
fn every_series_is_there_before_it_counts() {
    let text = Metrics::new().unwrap().text().unwrap();
    let names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE fencedlease_"))
        .filter_map(|line| line.split(' ').next())
        .collect();
    let expected = [
        "acquisitions_total",
        "commit_checks_total",
        "commit_remaining_seconds",
        "fence_current",
        "fence_rejections_total",
        "handover_gap_seconds",
        "hold_seconds",
        "kills_overdue",
        "lease_active",
        "loss_notify_seconds",
        "loss_to_dead_seconds",
        "loss_to_kill_seconds",
        "losses_total",
        "raise_seconds",
        "raises_total",
        "renewal_duration_seconds",
        "renewal_lateness_seconds",
        "renewal_remaining_seconds",
        "renewals_total",
        "standby_wait_seconds",
    ];
    assert_eq!(names, expected);
    for reason in LossReason::ALL {
        assert!(text.contains(&format!("fencedlease_losses_total{{reason=\"{reason}\"}} 0")), "{reason}");
    }
}

#[test]
fn a_refused_fence_counts_under_its_kind_alone() {
    let metrics = Metrics::new().unwrap();
    metrics.fence_rejected(ResourceKind::S3);
    let text = metrics.text().unwrap();
    for kind in ResourceKind::ALL {
        let count = u8::from(kind == ResourceKind::S3);
        let line =
            format!("fencedlease_fence_rejections_total{{resource_kind=\"{}\"}} {count}", kind.as_str());
        assert!(text.contains(&line), "{line}");
    }
}

#[test]
fn a_loss_counts_under_its_reason_alone() {
    let metrics = Metrics::new().unwrap();
    metrics.lost(LossReason::KeyGone);
    let text = metrics.text().unwrap();
    assert!(text.contains("fencedlease_losses_total{reason=\"KeyGone\"} 1"));
    assert!(text.contains("fencedlease_losses_total{reason=\"OtherOwner\"} 0"));
}
