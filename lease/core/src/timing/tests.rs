use proptest::prelude::*;

use super::*;

const DEFAULTS: TimingSettings = TimingSettings {
    ttl_ms: 15_000,
    renew_interval_ms: None,
    renew_timeout_ms: 1_000,
    grace_period_ms: 2_000,
    kill_budget_ms: 2_000,
    commit_margin_ms: 2_000,
};

#[test]
fn the_defaults_are_those_of_the_design() {
    let timing = Timing::try_new(&DEFAULTS).unwrap();
    assert_eq!(timing.validity(), Duration::from_secs(12));
    assert_eq!(timing.renew_interval(), Duration::from_secs(5));
    assert_eq!(timing.kill_after(), Duration::from_millis(9_500));
    assert_eq!(timing.term_after(), Duration::from_secs(7));
}

#[test]
fn fourteen_seconds_is_the_smallest_ttl_with_the_other_defaults() {
    assert!(Timing::try_new(&TimingSettings { ttl_ms: 14_000, ..DEFAULTS }).is_ok());
    assert!(Timing::try_new(&TimingSettings { ttl_ms: 13_999, ..DEFAULTS }).is_err());
}

#[test]
fn the_refusal_names_field_value_and_remedy() {
    let error = Timing::try_new(&TimingSettings { ttl_ms: 8_000, ..DEFAULTS }).unwrap_err();
    assert_eq!(
        error.to_string(),
        "spec.ttl 8s is too short: renewInterval 2.666s + renewTimeout 1s + 3 × stall 0.5s + gracePeriod 2s + \
         killBudget 2s = 9.166s must be below ttl/1.2 − 0.5s = 6.166s. Set ttl to 14s or more."
    );
    let error = Timing::try_new(&TimingSettings { grace_period_ms: 3_000, ..DEFAULTS }).unwrap_err();
    assert!(
        error.to_string().ends_with("Set ttl to 16s or more, or shorten gracePeriod to 2.499s or less."),
        "{error}"
    );
    let error = Timing::try_new(&TimingSettings { commit_margin_ms: 3_000, ..DEFAULTS }).unwrap_err();
    assert!(error.to_string().starts_with("spec.commitMargin 3s is too long"), "{error}");
    let error = Timing::try_new(&TimingSettings { ttl_ms: 4_000, ..DEFAULTS }).unwrap_err();
    assert_eq!(error.to_string(), "spec.ttl is 4s: it must lie between 5s and 600s");
}

fn settings() -> impl Strategy<Value = TimingSettings> {
    let interval = prop_oneof![Just(None), (100_u64..60_000).prop_map(Some)];
    (5_000_u64..120_000, interval, 50_u64..20_000, 0_u64..20_000, 200_u64..20_000, 0_u64..20_000).prop_map(
        |(ttl_ms, renew_interval_ms, renew_timeout_ms, grace_period_ms, kill_budget_ms, commit_margin_ms)| {
            TimingSettings {
                ttl_ms,
                renew_interval_ms,
                renew_timeout_ms,
                grace_period_ms,
                kill_budget_ms,
                commit_margin_ms,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    /// What is accepted notices a renewal that is sent a stall late and times out before the term instant.
    #[test]
    fn a_healthy_holder_never_meets_its_term_instant(settings in settings()) {
        let Ok(timing) = Timing::try_new(&settings) else { return Ok(()) };
        let noticed = timing.renew_interval() + timing.renew_timeout() + STALL;
        prop_assert!(noticed <= timing.term_after(), "{timing:?}");
        prop_assert!(timing.kill_after() + STALL + timing.kill_budget() <= timing.validity());
        let drifted = timing.validity().as_secs_f64() * (1.0 + DRIFT);
        prop_assert!(drifted < timing.ttl().as_secs_f64());
    }

    /// The remedies in the text are true: following either mends the timing.
    #[test]
    fn following_the_remedy_mends_it(settings in settings()) {
        let needed = match Timing::try_new(&settings) {
            Ok(_) | Err(TimingError::OutOfRange { .. }) => return Ok(()),
            Err(TimingError::TooShortToKill { ttl_needed, shorter_grace, .. }) => {
                if let Some(grace) = shorter_grace {
                    let grace_period_ms = u64::try_from(grace.as_millis()).unwrap();
                    let mended = Timing::try_new(&TimingSettings { grace_period_ms, ..settings });
                    prop_assert!(mended.is_ok(), "{mended:?}");
                }
                ttl_needed
            }
            Err(TimingError::TooShortToCommit { ttl_needed, shorter_margin, .. }) => {
                if let Some(margin) = shorter_margin {
                    let commit_margin_ms = u64::try_from(margin.as_millis()).unwrap();
                    let mended = Timing::try_new(&TimingSettings { commit_margin_ms, ..settings });
                    prop_assert!(mended.is_ok(), "{mended:?}");
                }
                ttl_needed
            }
        };
        for more in 0..4 {
            let ttl_ms = u64::try_from(needed.as_millis()).unwrap() + more;
            prop_assert!(Timing::try_new(&TimingSettings { ttl_ms, ..settings }).is_ok(), "ttl {ttl_ms}");
        }
        let ttl_ms = u64::try_from(needed.as_millis()).unwrap();
        let below = (1..4).any(|less| Timing::try_new(&TimingSettings { ttl_ms: ttl_ms - less, ..settings }).is_err());
        prop_assert!(below, "{ttl_ms} is not the smallest");
    }
}
