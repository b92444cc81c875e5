//! The promises hold of what is shipped, and each mistake around it is found out.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::str::FromStr;
use std::time::Duration;

use stateright::report::{ReportData, ReportDiscovery, Reporter};
use stateright::{Checker, HasDiscoveries, Model as _};

use super::Fault::{
    self, DeleteLease, FreezeGuard, FreezePod, FreezeSidecar, HoldRequest, KillSidecar, TerminateGuard,
};
use super::promises::{
    DEAD_BEFORE_TAKEOVER, FENCES_GROW, GAP_IS_A_LOSS, HELD_IS_HELD, NO_RUN_WITHOUT_LEASE, NOTHING_ASSUMED,
    PROVEN_BEFORE_RELEASE, THEFT_IS_NOTICED, occasions, promises,
};
use super::variant::Variant::{
    self, ActsOnEachLine, AsBuilt, ClockStops, DeafGuard, EofIsDeath, FastRedis, ForgottenFence,
    GapUnnoticed, GrantFromArrival, OneToken, ReleaseWithoutToken, RenewWithoutToken, SilenceIsYes,
    SlowDeath, StampedAtReply,
};
use super::{Pair, Scope};

/// How long a history is, where nothing else is said.
const UNTIL_MS: u64 = 7000;
/// Faults in one history, where nothing else is said.
const FAULTS: u8 = 1;
/// `make model` tries more of them.
const FAULTS_VARIABLE: &str = "FENCEDLEASE_MODEL_FAULTS";
/// And for how long a history goes on.
const UNTIL_VARIABLE: &str = "FENCEDLEASE_MODEL_UNTIL_MS";
/// After so many minutes what was seen is judged, and that it was not all fails the test.
const MINUTES_VARIABLE: &str = "FENCEDLEASE_MODEL_MINUTES";
/// Without another bound.
const MINUTES: u64 = 24 * 60;

/// A mistake, where it is looked for, and all promises that are the first to break there.
struct Case {
    mistake: Variant,
    scope: Scope,
    red: BTreeSet<&'static str>,
}

// === impl Case ===

impl Case {
    fn new(mistake: Variant, faults: u8, which: fn(Fault) -> bool, red: &[&'static str]) -> Self {
        let scope = Scope { until_ms: UNTIL_MS, faults, which };
        Self { mistake, scope, red: red.iter().copied().collect() }
    }

    /// Within a shorter time.
    fn until(mut self, until_ms: u64) -> Self {
        self.scope.until_ms = until_ms;
        self
    }
}

/// Tells how each of these came about, step by step.
fn tell(checker: &impl Checker<Pair>, names: impl IntoIterator<Item = &'static str>) {
    for name in names {
        if let Some(path) = checker.discovery(name) {
            println!("  {name}: {:?}", path.into_actions());
        }
    }
}

/// Tells now and again how far it is.
struct Progress {
    states: usize,
    took: Duration,
}

impl Reporter<Pair> for Progress {
    fn report_checking(&mut self, data: ReportData) {
        (self.states, self.took) = (data.unique_states, data.duration);
        if !data.done {
            println!("{} states, {} s", self.states, self.took.as_secs());
        }
    }

    fn report_discoveries(&mut self, _: &Pair, _: BTreeMap<&'static str, ReportDiscovery<Pair>>) {}

    fn delay(&self) -> Duration {
        Duration::from_secs(30)
    }
}

/// Which promises are the first to break in some order of events.
fn broken(checker: &impl Checker<Pair>) -> BTreeSet<&'static str> {
    let found = checker.discoveries();
    promises().iter().map(|promise| promise.name).filter(|name| found.contains_key(name)).collect()
}

fn number<T: FromStr>(variable: &str, otherwise: T) -> T {
    let Ok(text) = env::var(variable) else { return otherwise };
    text.parse().unwrap_or_else(|_| panic!("{variable} is {text:?}: give a whole number"))
}

#[test]
fn the_machines_as_shipped_keep_every_promise() {
    let faults = number(FAULTS_VARIABLE, FAULTS);
    let bound = Duration::from_mins(number(MINUTES_VARIABLE, MINUTES));
    let mut progress = Progress { states: 0, took: Duration::ZERO };
    let until_ms = number(UNTIL_VARIABLE, UNTIL_MS);
    let scope = Scope { until_ms, faults, which: |_| true };
    // Depth first: what is still to be tried stays small.
    let checker = Pair { variant: AsBuilt, scope }.checker().threads(2).timeout(bound).spawn_dfs();
    let checker = checker.join_and_report(&mut progress);
    println!("{faults} faults within {until_ms} ms: {} states in {:?}", progress.states, progress.took);
    let occasions: Vec<&str> = occasions().iter().map(|occasion| occasion.name).collect();
    let broken = broken(&checker);
    tell(&checker, broken.iter().chain(&occasions).copied());
    assert!(broken.is_empty(), "broken: {broken:?}");
    assert!(progress.took < bound, "nothing is broken in {} states, which are not all", progress.states);
    for occasion in occasions {
        assert!(checker.discovery(occasion).is_some(), "never: {occasion}");
    }
}

#[test]
fn each_mistake_turns_its_promises_red_and_no_others() {
    let cases = [
        Case::new(StampedAtReply, 1, |it| matches!(it, FreezeSidecar(0)), &[DEAD_BEFORE_TAKEOVER]),
        Case::new(
            ReleaseWithoutToken,
            1,
            |it| matches!(it, HoldRequest(0)),
            &[PROVEN_BEFORE_RELEASE, HELD_IS_HELD],
        ),
        Case::new(RenewWithoutToken, 1, |it| matches!(it, DeleteLease), &[THEFT_IS_NOTICED]),
        Case::new(EofIsDeath, 1, |it| matches!(it, TerminateGuard(0)), &[PROVEN_BEFORE_RELEASE]),
        Case::new(DeafGuard, 1, |it| matches!(it, FreezeSidecar(0)), &[DEAD_BEFORE_TAKEOVER]),
        Case::new(ForgottenFence, 2, |it| matches!(it, HoldRequest(0) | DeleteLease), &[FENCES_GROW])
            .until(1500),
        Case::new(
            ActsOnEachLine,
            2,
            |it| matches!(it, FreezeGuard(0) | DeleteLease),
            &[NO_RUN_WITHOUT_LEASE],
        )
        .until(3000),
        Case::new(
            GrantFromArrival,
            2,
            |it| matches!(it, FreezeGuard(0) | KillSidecar(0)),
            &[NO_RUN_WITHOUT_LEASE, FENCES_GROW, DEAD_BEFORE_TAKEOVER],
        )
        .until(5000),
        Case::new(GapUnnoticed, 1, |it| matches!(it, FreezeGuard(0)), &[GAP_IS_A_LOSS]),
        Case::new(ClockStops, 1, |it| matches!(it, FreezePod(0)), &[GAP_IS_A_LOSS, HELD_IS_HELD]).until(5500),
        Case::new(
            SilenceIsYes,
            1,
            |it| matches!(it, HoldRequest(0)),
            &[NOTHING_ASSUMED, FENCES_GROW, NO_RUN_WITHOUT_LEASE, HELD_IS_HELD],
        )
        .until(3000),
        Case::new(OneToken, 0, |_| false, &[NOTHING_ASSUMED]),
        Case::new(SlowDeath, 1, |it| matches!(it, KillSidecar(0)), &[DEAD_BEFORE_TAKEOVER]),
        Case::new(FastRedis, 1, |it| matches!(it, FreezeSidecar(0)), &[DEAD_BEFORE_TAKEOVER]),
    ];
    let mut wrong = Vec::new();
    for Case { mistake, scope, red } in cases {
        let pair = |variant| Pair { variant, scope }.checker().threads(2);
        let all = pair(mistake).spawn_dfs().join();
        let found = broken(&all);
        println!("{mistake:?}: {} states, broken: {found:?}", all.unique_state_count());
        if found != red {
            tell(&all, found.symmetric_difference(&red).copied());
            wrong.push(format!("{mistake:?} breaks {found:?}, not {red:?}"));
        }
        // Breadth first, and no further than needed: the paths that are told are short.
        tell(&pair(mistake).finish_when(HasDiscoveries::AllOf(red.clone())).spawn_bfs().join(), red);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
