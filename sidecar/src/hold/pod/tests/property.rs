//! Whatever the order of events: no grant without an ACTIVE holding, none twice, none before every gate has stored
//! its fence, no release before proven death, no renewal after an end.

use std::collections::{BTreeMap, BTreeSet};

use fencedlease_wire::guard::{FromGuard, ToGuard};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;

use super::support::{config, gates};
use super::*;

const CONTAINERS: [&str; 2] = ["a", "b"];

/// One step of a random history.
#[derive(Clone, Debug)]
enum Step {
    Pass(u64),
    Hello { container: usize, returning: bool },
    Disconnect(usize),
    Die(usize),
    Answer { kind: u8 },
    Renewal { confirmed: bool },
    Raised { gate: usize, kind: u8 },
    Filed,
    Release,
    Hint,
    Resign,
    Terminate,
    Late,
    Say { container: usize, what: u8 },
}

fn step() -> impl Strategy<Value = Step> {
    let container = 0..CONTAINERS.len();
    prop_oneof![
        4 => (0_u64..4000).prop_map(Step::Pass),
        6 => (container.clone(), any::<bool>()).prop_map(|(container, returning)| Step::Hello { container, returning }),
        1 => container.clone().prop_map(Step::Disconnect),
        2 => container.clone().prop_map(Step::Die),
        6 => (0_u8..8).prop_map(|kind| Step::Answer { kind }),
        6 => (0_u8..6).prop_map(|n| Step::Renewal { confirmed: n > 0 }),
        6 => (0_usize..2, 0_u8..8).prop_map(|(gate, kind)| Step::Raised { gate, kind }),
        6 => Just(Step::Filed),
        2 => Just(Step::Release),
        1 => Just(Step::Hint),
        1 => Just(Step::Resign),
        1 => (0_u8..6).prop_map(|n| if n == 0 { Step::Terminate } else { Step::Pass(50) }),
        1 => (0_u8..6).prop_map(|n| if n == 0 { Step::Late } else { Step::Pass(50) }),
        2 => (container, 0_u8..4).prop_map(|(container, what)| Step::Say { container, what }),
    ]
}

/// A guard as the world knows it.
#[derive(Clone, Debug, Default)]
struct World {
    now: BootTime,
    connections: u64,
    /// Present life and connection of each container.
    guards: BTreeMap<usize, (LifeId, Option<u64>, String)>,
    lives: BTreeMap<LifeId, usize>,
    dead: BTreeSet<LifeId>,
    by_connection: BTreeMap<u64, LifeId>,
    /// The life that each grant went to, and its holding.
    grants: Vec<(LifeId, HoldingId)>,
    attempt: Option<(u64, BootTime)>,
    renewal: Option<u64>,
    release: Option<u64>,
    filing: Option<HoldingId>,
    /// Raises without an answer: call, gate and holding.
    raises: Vec<(u64, usize, HoldingId)>,
    /// Which gates have told that they stored the fence of which holding.
    stored: BTreeSet<(String, usize)>,
    gates: usize,
    tokens: BTreeSet<String>,
    ended: BTreeSet<String>,
    fence: u64,
}

impl World {
    fn event(&mut self, step: &Step) -> Option<Event> {
        Some(match step {
            Step::Pass(ms) => {
                self.now = self.now + Duration::from_millis(*ms);
                Event::Time
            }
            Step::Hello { container, returning } => self.hello(*container, *returning),
            Step::Disconnect(container) => {
                let connection = self.guards.get_mut(container)?.1.take()?;
                Event::Disconnected { connection: ConnectionId(connection), reason: String::new() }
            }
            Step::Die(container) => {
                let (life, _, _) = self.guards.remove(container)?;
                self.dead.insert(life);
                Event::Died { life }
            }
            Step::Answer { kind } => {
                Event::AcquireAnswered { call: self.attempt.take()?.0, answer: self.answer(*kind) }
            }
            Step::Renewal { confirmed } => Event::RenewAnswered {
                call: self.renewal.take()?,
                outcome: if *confirmed {
                    RenewalOutcome::Confirmed
                } else {
                    RenewalOutcome::Failed { reason: LossReason::KeyGone, message: String::new() }
                },
            },
            Step::Raised { gate, kind } => self.raised(*gate, *kind)?,
            Step::Filed => Event::Filed { holding: self.filing.take()? },
            Step::Release => Event::ReleaseAnswered { call: self.release.take()? },
            Step::Hint => Event::ReleaseHeard { published: true },
            Step::Resign => Event::StepDown,
            Step::Terminate => Event::Terminate,
            Step::Late => Event::Late { planned: self.now.before(Duration::from_secs(1)) },
            Step::Say { container, what } => self.word(*container, *what)?,
        })
    }

    fn hello(&mut self, container: usize, returning: bool) -> Event {
        self.connections += 1;
        let mut hello =
            Hello { container: CONTAINERS[container].into(), secret: None, holding: None, acted: false };
        if returning && let Some((life, connection, secret)) = self.guards.get_mut(&container) {
            hello.secret = Some(secret.clone());
            hello.holding =
                self.grants.iter().rev().find(|grant| grant.0 == *life).map(|grant| grant.1.clone());
            *connection = Some(self.connections);
            self.by_connection.insert(self.connections, *life);
        }
        Event::Hello { connection: ConnectionId(self.connections), hello }
    }

    fn answer(&mut self, kind: u8) -> AcquireAnswer {
        match kind {
            0 => AcquireAnswer::Failed { kind: RedisStandingKind::Timeout, message: String::new() },
            1 => AcquireAnswer::Held {
                remaining: Some(Duration::from_secs(1)),
                highest_fence: None,
                holder: None,
            },
            _ => {
                self.fence += 1;
                AcquireAnswer::Acquired { fence: Fence::new(self.fence).unwrap(), previous_holder: None }
            }
        }
    }

    /// The gate answers one of the raises that it has got, the newest or an older one.
    fn raised(&mut self, gate: usize, kind: u8) -> Option<Event> {
        let mut places: Vec<usize> =
            (0..self.raises.len()).filter(|place| self.raises[*place].1 == gate).collect();
        let place = if kind == 1 { places.first().copied()? } else { places.pop()? };
        let (call, gate, holding) = self.raises.remove(place);
        let answer = match kind {
            0 => GateAnswer::Failed { message: String::new() },
            2 => {
                self.fence += 10;
                GateAnswer::Ahead { highest: Fence::new(self.fence).unwrap() }
            }
            _ => {
                self.stored.insert((holding.as_str().to_owned(), gate));
                GateAnswer::Stored { unsettled: 0 }
            }
        };
        Some(Event::RaiseAnswered { call, answer })
    }

    fn word(&self, container: usize, what: u8) -> Option<Event> {
        let (life, connection, _) = self.guards.get(&container)?;
        let holding = self.grants.iter().rev().find(|grant| grant.0 == *life)?.1.clone();
        let message = match what {
            0 => FromGuard::Started { holding },
            1 => FromGuard::Ended { holding, exit_code: 0 },
            2 => FromGuard::Terminating { holding },
            _ => FromGuard::Acted { holding, message: String::new() },
        };
        Some(Event::Said { connection: ConnectionId((*connection)?), message })
    }

    /// Takes in what the pod wants, and holds it to its promises.
    fn check(&mut self, pod: &Pod, actions: &Actions) {
        for action in &actions.guards {
            match action {
                GuardAction::Adopt { connection, life } => {
                    let hello = self.by_connection.insert(connection.0, *life);
                    assert!(hello.is_none(), "a connection is of one life");
                    self.lives.insert(*life, 0);
                }
                GuardAction::Tell { connection, message } => self.told(pod, connection.0, message),
                GuardAction::Close { .. } | GuardAction::Forget { .. } => {}
            }
        }
        for request in &actions.redis {
            self.asked(request);
        }
        for raise in &actions.gates {
            let known = self.raises.iter().any(|(call, ..)| *call == raise.call);
            assert!(!known, "a call is of one raise");
            assert!(matches!(pod.published().state, State::Waiting { .. }), "raised while it may write");
            self.raises.push((raise.call, raise.gate, raise.holding.clone()));
        }
        for order in &actions.files {
            if let FileOrder::Hold { holding, .. } = order {
                let all =
                    (0..self.gates).all(|gate| self.stored.contains(&(holding.as_str().to_owned(), gate)));
                assert!(all, "noted before every gate has stored its fence");
                self.filing = Some(holding.clone());
            }
        }
    }

    fn told(&mut self, pod: &Pod, connection: u64, message: &ToGuard) {
        match message {
            ToGuard::Grant { holding, term_at_ms, .. } => {
                let life = self.by_connection[&connection];
                assert!(!self.dead.contains(&life), "granted to the dead");
                assert!(!self.grants.iter().any(|grant| grant.0 == life), "granted twice");
                let state = pod.published().state;
                assert!(
                    matches!(&state, State::Active { holding: active, ending: None, .. } if active == holding),
                    "granted while {state:?}"
                );
                assert!(*term_at_ms > self.now.as_millis(), "granted after the term instant");
                self.grants.push((life, holding.clone()));
            }
            ToGuard::Extend { holding, .. } => {
                assert!(!self.ended.contains(holding.as_str()), "extended after its end");
            }
            _ => {}
        }
    }

    fn asked(&mut self, request: &RedisRequest) {
        match request {
            RedisRequest::Acquire { call, token, .. } => {
                assert!(self.tokens.insert(token.as_str().to_owned()), "an owner token is new");
                let open = self.attempt.filter(|(_, at)| self.now < *at + Duration::from_secs(2));
                assert!(open.is_none(), "one attempt at a time");
                assert!(self.all_granted_are_dead(), "competes while its workload may live");
                self.attempt = Some((*call, self.now));
            }
            RedisRequest::Renew { call, token, .. } => {
                assert!(!self.ended.contains(token.as_str()), "renewed after its end");
                self.renewal = Some(*call);
            }
            RedisRequest::Release { call, token, .. } => {
                assert!(self.all_granted_are_dead(), "released before death was proven");
                assert!(self.ended.insert(token.as_str().to_owned()), "released twice");
                self.release = Some(*call);
            }
            RedisRequest::Listen(_) => {}
        }
    }

    fn all_granted_are_dead(&self) -> bool {
        self.grants.iter().all(|(life, _)| self.dead.contains(life))
    }

    /// Remembers which life a container's guard has, once it was taken in.
    fn learn(&mut self, event: &Event, actions: &Actions) {
        let Event::Hello { hello, .. } = event else { return };
        let container = CONTAINERS.iter().position(|name| *name == hello.container).unwrap();
        let mut adopted = None;
        for action in &actions.guards {
            match action {
                GuardAction::Adopt { connection, life } => adopted = Some((*life, connection.0)),
                GuardAction::Tell { message: ToGuard::Welcome { secret }, .. } => {
                    let (life, connection) = adopted.unwrap();
                    self.guards.insert(container, (life, Some(connection), secret.clone()));
                }
                _ => {}
            }
        }
    }
}

fn play(steps: &[Step], mode: StandbyMode, policy: RestartPolicy, gated: usize) -> World {
    let mut config = config(&CONTAINERS);
    config.standby_mode = mode;
    config.restart_policy = policy;
    config.gates = gates(&["one", "two"][..gated]);
    let mut world = World { now: BootTime::from_millis(1_000_000), gates: gated, ..World::default() };
    let (mut pod, first) = Pod::new(config, None, world.now);
    world.check(&pod, &first);
    for (number, step) in (0_u64..).zip(steps) {
        let Some(event) = world.event(step) else { continue };
        let mut random = Random { jitter: number, ..Random::default() };
        random.token[..8].copy_from_slice(&number.to_ne_bytes());
        random.secret[..8].copy_from_slice(&number.to_ne_bytes());
        random.holding = number.to_ne_bytes();
        let was_lost = matches!(pod.published().state, State::Lost { .. });
        let actions = pod.on(event.clone(), world.now, &random);
        let active = matches!(pod.published().state, State::Active { .. });
        assert!(!(was_lost && active), "from LOST to ACTIVE without waiting in between");
        world.check(&pod, &actions);
        world.learn(&event, &actions);
        if let Some(next) = pod.next_instant() {
            assert!(next > world.now, "after {event:?} it wants to be woken at {next}, which is past");
        }
        if actions.exit {
            assert!(world.all_granted_are_dead(), "it ends while its workload may live");
            break;
        }
    }
    world
}

#[test]
fn random_histories_reach_grants_and_releases() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let histories = prop::collection::vec(step(), 120);
    for gated in 0..=2 {
        let (mut granted, mut released) = (0, 0);
        for _ in 0..200 {
            let steps = histories.new_tree(&mut runner).unwrap().current();
            let world = play(&steps, StandbyMode::Warm, RestartPolicy::Always, gated);
            granted += usize::from(world.grants.len() > 1);
            released += usize::from(!world.ended.is_empty() && !world.grants.is_empty());
        }
        println!("of 200 histories with {gated} gates {granted} had grants, {released} a release after one");
        assert!(granted > 20 && released > 10, "the property would hold of nothing");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_order_of_events_breaks_a_promise(
        steps in prop::collection::vec(step(), 1..120),
        cold in any::<bool>(),
        gated in 0_usize..=2,
        policy in prop_oneof![
            Just(RestartPolicy::Always), Just(RestartPolicy::OnFailure), Just(RestartPolicy::Never)
        ],
    ) {
        let _world = play(&steps, if cold { StandbyMode::Cold } else { StandbyMode::Warm }, policy, gated);
    }
}
