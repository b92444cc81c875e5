//! The CRD's rules, which the API server checks, and `Timing::try_new`, which webhook and sidecar call, accept
//! the same timings and refuse the others in the same words.
#![allow(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::cell::Cell;
use std::ops::RangeInclusive;
use std::thread;
use std::time::Duration;

use fencedlease_core::duration::format;
use fencedlease_core::{Timing, TimingError};
use fencedlease_crds::FencedLease;
use fencedlease_wire::settings::TimingSettings;
use kube::CustomResourceExt as _;
use kube::core::cel::{CompiledSchema, Validator, compile_schema};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};
use serde_json::{Value, json};

const BROKEN: &str = "broken";

/// A ttl close to where rule (R), rule (C) or both begin to hold, or somewhat above.
fn near_border() -> impl Strategy<Value = TimingSettings> {
    let off = prop_oneof![2 => -4_i64..=4, 1 => 0_i64..=4_000];
    (fields(), 0..6, off).prop_map(|(mut settings, rule, off)| {
        let (kill, commit) = (settings.grace_period_ms + 2000, settings.commit_margin_ms + 1500);
        let rest = match rule {
            0 => kill,
            1 => commit,
            _ => kill.max(commit),
        };
        let others = settings.renew_timeout_ms + settings.kill_budget_ms + rest;
        let border = match settings.renew_interval_ms {
            Some(interval) => (others + interval) * 6 / 5,
            None => others * 2,
        };
        settings.ttl_ms = border.saturating_add_signed(off);
        settings
    })
}

fn fields() -> impl Strategy<Value = TimingSettings> {
    (
        duration(5_000..=600_000),
        prop::option::of(duration(100..=300_000)),
        duration(50..=60_000),
        duration(0..=300_000),
        duration(200..=300_000),
        duration(0..=300_000),
    )
        .prop_map(
            |(
                ttl_ms,
                renew_interval_ms,
                renew_timeout_ms,
                grace_period_ms,
                kill_budget_ms,
                commit_margin_ms,
            )| {
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

/// Mostly what people write, sometimes anything in the range, sometimes an end of it or just beyond.
fn duration(range: RangeInclusive<u64>) -> impl Strategy<Value = u64> {
    let (least, most) = range.clone().into_inner();
    prop_oneof![
        8 => (0_u64..=40).prop_map(move |tenths| (tenths * 100).clamp(least, most)),
        8 => least..=(least + 5_000).min(most),
        2 => range,
        1 => least.saturating_sub(1)..=least + 1,
        1 => most - 1..=most + 1,
    ]
}

fn spec(settings: &TimingSettings) -> Value {
    let text = |ms: u64| format(Duration::from_millis(ms));
    let mut spec = json!({
        "ttl": text(settings.ttl_ms),
        "renewTimeout": text(settings.renew_timeout_ms),
        "gracePeriod": text(settings.grace_period_ms),
        "killBudget": text(settings.kill_budget_ms),
        "commitMargin": text(settings.commit_margin_ms),
    });
    if let Some(interval) = settings.renew_interval_ms {
        spec["renewInterval"] = text(interval).into();
    }
    spec
}

fn schema() -> Value {
    let crd = FencedLease::crd();
    let schema = serde_json::to_value(&crd.spec.versions[0].schema).unwrap();
    schema["openAPIV3Schema"]["properties"]["spec"].clone()
}

/// The schema with its checks of a duration's form taken out: the evaluator compiles each regular expression
/// anew, which would take half an hour, and every text drawn here has the form.
fn without_forms(schema: &Value) -> Value {
    let form = "matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$')";
    let mut schema = schema.clone();
    let mut taken_out = 0;
    for property in schema["properties"].as_object_mut().unwrap().values_mut() {
        let Some(rules) = property["x-kubernetes-validations"].as_array_mut() else { continue };
        let before = rules.len();
        rules.retain(|rule| rule["rule"] != format!("self.{form}"));
        taken_out += before - rules.len();
    }
    assert_eq!(taken_out, 8, "the rules check the form of the eight durations in other words now");
    let text = serde_json::to_string(&schema).unwrap();
    serde_json::from_str(&text.replace(form, "startsWith('')")).unwrap()
}

/// The schema whose rules (R) and (C) say only that they are broken.
fn without_messages(mut schema: Value) -> Value {
    for rule in schema["x-kubernetes-validations"].as_array_mut().unwrap() {
        rule.as_object_mut().unwrap().remove("messageExpression").unwrap();
        rule["message"] = BROKEN.into();
    }
    schema
}

fn refusals(validator: &Validator, schema: &CompiledSchema, spec: &Value) -> Vec<String> {
    match validator.validate_compiled(schema, spec, None) {
        Ok(()) => Vec::new(),
        Err(errors) => errors.iter().map(|error| error.message.clone()).collect(),
    }
}

fn agree(
    core: &Result<Timing, TimingError>,
    refusals: &[String],
    broken: impl Fn(&TimingError) -> String,
) -> Result<(), TestCaseError> {
    match core {
        Ok(_) => prop_assert!(refusals.is_empty(), "accepted by the core, but {:?}", refusals),
        Err(TimingError::OutOfRange { field, .. }) => {
            let begin = format!("spec.{field} is ");
            prop_assert!(refusals.iter().any(|text| text.starts_with(&begin)), "{}: {:?}", field, refusals);
        }
        Err(error) => prop_assert_eq!(refusals, [broken(error)]),
    }
    Ok(())
}

/// Runs this many cases, and shows how to repeat them. Neither verdict may be rare, or little was tried.
fn run(cases: u32, schema: &Value, broken: impl Fn(&TimingError) -> String) {
    let seed = std::env::var("PROPTEST_RNG_SEED")
        .map_or_else(|_| getrandom::u64().unwrap(), |text| text.parse().unwrap());
    eprintln!("repeat with PROPTEST_RNG_SEED={seed}");
    let config = ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let (validator, compiled) = (Validator::new(), compile_schema(schema));
    assert!(!compiled.has_errors(), "{:?}", compiled.compilation_errors());
    let accepted = Cell::new(0);
    TestRunner::new(config)
        .run(&prop_oneof![1 => fields(), 3 => near_border()], |settings| {
            let core = Timing::try_new(&settings);
            accepted.set(accepted.get() + u32::from(core.is_ok()));
            agree(&core, &refusals(&validator, &compiled, &spec(&settings)), &broken)
        })
        .unwrap();
    eprintln!("{} of {cases} accepted", accepted.get());
    assert!((cases / 5..cases / 5 * 4).contains(&accepted.get()), "{} of {cases} accepted", accepted.get());
}

#[test]
fn crd_and_core_agree_on_a_hundred_thousand_timings() {
    let schema = without_messages(without_forms(&schema()));
    let half = || run(50_000, &schema, |_| BROKEN.to_owned());
    thread::scope(|scope| {
        scope.spawn(half);
        scope.spawn(half);
    });
}

#[test]
fn crd_and_core_refuse_in_the_same_words() {
    run(5_000, &without_forms(&schema()), ToString::to_string);
}

#[test]
fn crd_and_core_agree_with_every_rule_as_the_api_server_has_it() {
    run(300, &schema(), ToString::to_string);
}
