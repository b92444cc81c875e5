//! What must hold in every state, judged on what really happened; and that there were occasions to break it.

use stateright::Property;

use super::acts::owner_of;
use super::server::Number;
use super::site::Site;
use super::{Pair, STEP_MS, World};

/// renewInterval + renewTimeout + stall on the slowest clock, and the step in which it is noticed.
const NOTICED_WITHIN_MS: u64 = 1500 * 6 / 5 + STEP_MS;

pub(super) const FENCES_GROW: &str = "I4: fences grow";
pub(super) const HELD_IS_HELD: &str = "I5: HELD is held, LOST is final";
pub(super) const DEAD_BEFORE_TAKEOVER: &str = "I6: dead before takeover";
pub(super) const PROVEN_BEFORE_RELEASE: &str = "I10: proven before release";
pub(super) const NO_RUN_WITHOUT_LEASE: &str = "I11: no run without a lease";
pub(super) const NOTHING_ASSUMED: &str = "I12: nothing assumed";
pub(super) const THEFT_IS_NOTICED: &str = "I13: theft is noticed";
pub(super) const GAP_IS_A_LOSS: &str = "I15: a gap is a loss";

pub(super) fn promises() -> Vec<Property<Pair>> {
    vec![
        Property::always(FENCES_GROW, |_, world: &World| !world.judge.broken.contains(FENCES_GROW)),
        Property::always(HELD_IS_HELD, |pair: &Pair, world: &World| {
            world.sites.iter().all(|site| is_truly_held(pair, world, site))
        }),
        Property::always(DEAD_BEFORE_TAKEOVER, |_, world: &World| {
            !world.judge.broken.contains(DEAD_BEFORE_TAKEOVER)
        }),
        Property::always(PROVEN_BEFORE_RELEASE, |_, world: &World| {
            !world.judge.broken.contains(PROVEN_BEFORE_RELEASE)
        }),
        Property::always(NO_RUN_WITHOUT_LEASE, |_, world: &World| {
            !world.judge.broken.contains(NO_RUN_WITHOUT_LEASE)
        }),
        Property::always(NOTHING_ASSUMED, |_, world: &World| !world.judge.broken.contains(NOTHING_ASSUMED)),
        Property::always(THEFT_IS_NOTICED, |pair: &Pair, world: &World| {
            let since = world.server.taken_ms;
            let is_old = since.is_some_and(|taken_ms| world.now_ms > taken_ms + NOTICED_WITHIN_MS);
            !is_old
                || world.sites.iter().all(|site| {
                    held_by(site)
                        .is_none_or(|holding| world.server.is_held_by(owner_of(holding, pair.variant)))
                })
        }),
        Property::always(GAP_IS_A_LOSS, |_, world: &World| !world.judge.broken.contains(GAP_IS_A_LOSS)),
    ]
}

/// Whether any promise is broken here.
pub(super) fn is_broken(pair: &Pair, world: &World) -> bool {
    promises().iter().any(|promise| !(promise.condition)(pair, world))
}

/// What a pod that answers on its socket says that it holds.
fn held_by(site: &Site) -> Option<Number> {
    let sidecar = site.sidecar.as_ref().filter(|sidecar| sidecar.frozen.is_none())?;
    sidecar.active.as_ref().map(|active| active.holding)
}

fn is_truly_held(pair: &Pair, world: &World, site: &Site) -> bool {
    let Some(holding) = held_by(site) else { return true };
    let active = site.sidecar.as_ref().and_then(|sidecar| sidecar.active.as_ref());
    let is_in_time = active.is_some_and(|active| site.clock(world.now_ms) < active.deadline);
    let is_owner = world.server.is_held_by(owner_of(holding, pair.variant)) || world.judge.is_data_lost;
    is_in_time && is_owner && !world.judge.lost.contains(&holding)
}

/// That there were occasions to break a promise.
pub(super) fn occasions() -> Vec<Property<Pair>> {
    vec![
        Property::sometimes("a workload runs with a third fence", |_, world: &World| {
            world.server.sequence >= 3 && world.sites.iter().any(|site| site.alive().is_some())
        }),
        Property::sometimes("a guard acts alone", |_, world: &World| {
            let acts = |site: &Site| {
                let run = site.guard.as_ref().and_then(|guard| guard.machine.run.as_ref());
                site.sidecar.is_none() && run.is_some_and(|run| run.acted)
            };
            world.sites.iter().any(acts)
        }),
        Property::sometimes("a sidecar comes back to a workload", |_, world: &World| {
            world.sites.iter().any(|site| site.run > 0 && site.sidecar.is_some() && site.alive().is_some())
        }),
        Property::sometimes("the other pod takes over within a step", |_, world: &World| {
            world.sites.iter().all(|site| site.attempts > 0)
                && world.server.sequence == 2
                && world.now_ms <= 2500
        }),
        Property::sometimes("a lease is held that nobody knows of", |_, world: &World| {
            world.server.lease.is_some() && world.sites.iter().all(|site| held_by(site).is_none())
        }),
    ]
}
