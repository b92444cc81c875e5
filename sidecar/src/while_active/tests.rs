use super::*;

const PARTS: [Part; 5] =
    [Part::LivenessProbe, Part::ReadinessProbe, Part::StartupProbe, Part::PostStart, Part::PreStop];

fn after(waited: Duration, part: Part, shown: Option<Shown>) -> Verdict {
    let begun = BootTime::from_millis(7_000);
    verdict(part, shown, begun, begun + waited)
}

#[test]
fn everything_runs_while_the_workload_does_however_late_it_is_asked_for() {
    for part in PARTS {
        for waited in [Duration::ZERO, PATIENCE * 2] {
            assert_eq!(after(waited, part, Some(Shown::Active)), Verdict::Run, "{part:?}");
        }
    }
}

#[test]
fn nothing_runs_else_and_each_kind_says_what_is_harmless() {
    for shown in [Shown::Waiting, Shown::Ending] {
        let verdicts = PARTS.map(|part| after(PATIENCE, part, Some(shown)));
        assert_eq!(
            verdicts,
            [Verdict::Pass, Verdict::Fail, Verdict::Fail, Verdict::Fail, Verdict::Pass],
            "{shown:?}"
        );
    }
}

#[test]
fn a_post_start_hook_waits_for_the_workload_and_not_for_one_that_ends() {
    let short = PATIENCE.saturating_sub(Duration::from_millis(1));
    for shown in [Some(Shown::Waiting), None] {
        assert_eq!(after(short, Part::PostStart, shown), Verdict::Later);
        assert_eq!(after(PATIENCE, Part::PostStart, shown), Verdict::Fail);
    }
    assert_eq!(after(Duration::ZERO, Part::PostStart, Some(Shown::Ending)), Verdict::Fail);
}

#[test]
fn where_no_guard_is_everything_fails() {
    assert_eq!(PARTS.map(|part| after(PATIENCE, part, None)), [Verdict::Fail; 5]);
    assert!(in_words(Err("sh".to_owned())).contains("no guard (sh): delete the pod"));
}
