//! Drives a pod and remembers what it wanted.

use fencedlease_core::{RenewalOutcome, Timing};
use fencedlease_wire::ResourceName;
use fencedlease_wire::guard::{FromGuard, ToGuard};
use fencedlease_wire::settings::{GateSettings, RestartPolicy, TimingSettings};

use super::*;

/// A pod, its time, and all that it said.
pub(super) struct Bench {
    pub(super) pod: Pod,
    pub(super) now: BootTime,
    pub(super) facts: Vec<Fact>,
    pub(super) closed: Vec<u64>,
    pub(super) exit: bool,
    /// The renewal under way.
    pub(super) renewal: Option<u64>,
    told: Vec<(u64, ToGuard)>,
    /// All raises that were asked for.
    pub(super) raises: Vec<RaiseRequest>,
    acquires: Vec<RedisRequest>,
    released: Vec<(u64, bool)>,
    files: Vec<FileOrder>,
    lives: Vec<(u64, LifeId)>,
    drawn: u8,
}

pub(super) fn timing(renew_interval_ms: Option<u64>) -> Timing {
    let settings = TimingSettings {
        ttl_ms: 15_000,
        renew_interval_ms,
        renew_timeout_ms: 1000,
        grace_period_ms: 2000,
        kill_budget_ms: 2000,
        commit_margin_ms: 2000,
    };
    Timing::try_new(&settings).unwrap()
}

pub(super) fn config(containers: &[&str]) -> PodConfig {
    PodConfig {
        resource: ResourceName::new("i", "shop", "report").unwrap(),
        timing: timing(None),
        max_hold: Duration::from_hours(24),
        max_hold_warning: Duration::from_mins(1),
        containers: containers.iter().map(|&name| name.to_owned()).collect(),
        init_containers: 0,
        restart_policy: RestartPolicy::Always,
        standby_mode: StandbyMode::Warm,
        termination_grace: Duration::from_secs(30),
        redis: "redis.shop:6379".to_owned(),
        floor: None,
        gates: Vec::new(),
    }
}

/// Gates of these names.
pub(super) fn gates(names: &[&str]) -> Vec<GateSettings> {
    let gate = |name: &&str| GateSettings {
        name: (*name).to_owned(),
        url: format!("https://{name}.shop:8443"),
        own_authorities: false,
    };
    names.iter().map(gate).collect()
}

impl Bench {
    pub(super) fn new(containers: &[&str], change: impl FnOnce(&mut PodConfig)) -> Self {
        Self::restarted(containers, None, change)
    }

    pub(super) fn restarted(
        containers: &[&str],
        interrupted: Option<Interrupted>,
        change: impl FnOnce(&mut PodConfig),
    ) -> Self {
        let mut config = config(containers);
        change(&mut config);
        let now = BootTime::from_millis(1_000_000);
        let (pod, first) = Pod::new(config, interrupted, now);
        let mut bench = Self {
            pod,
            now,
            facts: Vec::new(),
            closed: Vec::new(),
            exit: false,
            renewal: None,
            told: Vec::new(),
            raises: Vec::new(),
            acquires: Vec::new(),
            released: Vec::new(),
            files: Vec::new(),
            lives: Vec::new(),
            drawn: 0,
        };
        bench.take(first);
        bench.feed(Event::Time);
        bench
    }

    /// A pod that holds with fence 41; its containers' connections are 1, 2 and so on.
    pub(super) fn holding(containers: &[&str]) -> Self {
        Self::holding_with(containers, |_| {})
    }

    pub(super) fn holding_with(containers: &[&str], change: impl FnOnce(&mut PodConfig)) -> Self {
        let mut bench = Self::new(containers, change);
        for (connection, container) in (1..).zip(containers) {
            bench.hello(connection, container);
        }
        bench.acquired(41);
        bench.filed();
        let holding = bench.holding_id();
        for connection in 1..=containers.len() as u64 {
            bench.say(connection, FromGuard::Started { holding: holding.clone() });
        }
        assert_eq!(bench.granted().len(), containers.len());
        bench
    }

    pub(super) fn feed(&mut self, event: Event) {
        self.drawn = self.drawn.wrapping_add(1);
        let random = Random {
            token: [self.drawn; 16],
            secret: [self.drawn; 16],
            holding: [self.drawn; 8],
            jitter: u64::MAX,
        };
        let actions = self.pod.on(event, self.now, &random);
        self.take(actions);
    }

    fn take(&mut self, actions: Actions) {
        for action in actions.guards {
            match action {
                GuardAction::Tell { connection, message } => self.told.push((connection.0, message)),
                GuardAction::Adopt { connection, life } => self.lives.push((connection.0, life)),
                GuardAction::Close { connection } => self.closed.push(connection.0),
                GuardAction::Forget { .. } => {}
            }
        }
        for request in actions.redis {
            match request {
                RedisRequest::Renew { call, .. } => self.renewal = Some(call),
                RedisRequest::Release { call, clean, .. } => self.released.push((call, clean)),
                RedisRequest::Acquire { .. } => self.acquires.push(request),
                RedisRequest::Listen(_) => {}
            }
        }
        self.raises.extend(actions.gates);
        self.files.extend(actions.files);
        self.facts.extend(actions.facts);
        self.exit |= actions.exit;
    }

    /// Lets time pass, waking whenever the pod asks for it.
    pub(super) fn pass(&mut self, duration: Duration) {
        let until = self.now + duration;
        while let Some(next) = self.pod.next_instant().filter(|next| *next < until) {
            assert!(next > self.now, "it asks for an instant that is past");
            self.now = next;
            self.feed(Event::Time);
        }
        self.now = until;
        self.feed(Event::Time);
    }

    /// The same, with every renewal confirmed.
    pub(super) fn pass_renewing(&mut self, duration: Duration) {
        let until = self.now + duration;
        while self.now < until {
            let next = self.pod.next_instant().unwrap_or(until).min(until);
            self.now = next.max(self.now + Duration::from_millis(1));
            self.feed(Event::Time);
            if self.renewal.is_some() {
                self.confirm();
            }
        }
    }

    /// Time passes and nobody wakes.
    pub(super) fn pass_silently(&mut self, duration: Duration) {
        self.now = self.now + duration;
    }

    pub(super) fn hello(&mut self, connection: u64, container: &str) {
        let hello = Hello { container: container.into(), secret: None, holding: None, acted: false };
        self.feed(Event::Hello { connection: ConnectionId(connection), hello });
    }

    /// A guard that comes back with what it was told: its secret and its grant.
    pub(super) fn hello_again(&mut self, connection: u64, container: &str) {
        let secret = self.told.iter().find_map(|(_, message)| match message {
            ToGuard::Welcome { secret } => Some(secret.clone()),
            _ => None,
        });
        let holding = self.told.iter().find_map(|(_, message)| match message {
            ToGuard::Grant { holding, .. } => Some(holding.clone()),
            _ => None,
        });
        let hello = Hello { container: container.into(), secret, holding, acted: false };
        self.feed(Event::Hello { connection: ConnectionId(connection), hello });
    }

    pub(super) fn say(&mut self, connection: u64, message: FromGuard) {
        self.feed(Event::Said { connection: ConnectionId(connection), message });
    }

    pub(super) fn died(&mut self, connection: u64) {
        let life = self.lives.iter().find(|(known, _)| *known == connection).unwrap().1;
        self.feed(Event::Died { life });
    }

    pub(super) fn answer(&mut self, answer: AcquireAnswer) {
        let RedisRequest::Acquire { call, .. } = self.acquires.last().unwrap() else { panic!("no attempt") };
        self.feed(Event::AcquireAnswered { call: *call, answer });
    }

    pub(super) fn acquired(&mut self, fence: u64) {
        let fence = Fence::new(fence).unwrap();
        self.answer(AcquireAnswer::Acquired { fence, previous_holder: None });
    }

    pub(super) fn answer_first_attempt(&mut self, fence: u64) {
        let RedisRequest::Acquire { call, .. } = self.acquires.first().unwrap() else { panic!("no attempt") };
        let fence = Fence::new(fence).unwrap();
        let answer = AcquireAnswer::Acquired { fence, previous_holder: None };
        self.feed(Event::AcquireAnswered { call: *call, answer });
    }

    pub(super) fn filed(&mut self) {
        let holding = self.files.iter().rev().find_map(|order| match order {
            FileOrder::Hold { holding, .. } => Some(holding.clone()),
            _ => None,
        });
        if let Some(holding) = holding {
            self.feed(Event::Filed { holding });
        }
    }

    pub(super) fn confirm(&mut self) {
        let call = self.renewal.take().unwrap();
        self.feed(Event::RenewAnswered { call, outcome: RenewalOutcome::Confirmed });
    }

    pub(super) fn fail(&mut self, reason: LossReason) {
        self.fail_saying(reason, "said the test");
    }

    pub(super) fn fail_saying(&mut self, reason: LossReason, message: &str) {
        let call = self.renewal.take().unwrap();
        let outcome = RenewalOutcome::Failed { reason, message: message.into() };
        self.feed(Event::RenewAnswered { call, outcome });
    }

    pub(super) fn answer_release(&mut self) {
        let (call, _) = *self.released.last().unwrap();
        self.feed(Event::ReleaseAnswered { call });
    }

    pub(super) fn acquire_calls(&self) -> usize {
        self.acquires.len()
    }

    pub(super) fn last_floor(&self) -> Option<Fence> {
        match self.acquires.last() {
            Some(RedisRequest::Acquire { floor, .. }) => *floor,
            _ => None,
        }
    }

    /// Connections that got a grant, in order.
    pub(super) fn granted(&self) -> Vec<u64> {
        let grant = |(connection, message): &(u64, ToGuard)| {
            matches!(message, ToGuard::Grant { .. }).then_some(*connection)
        };
        self.told.iter().filter_map(grant).collect()
    }

    /// The clean marks of all releases.
    pub(super) fn releases(&self) -> Vec<bool> {
        self.released.iter().map(|(_, clean)| *clean).collect()
    }

    pub(super) fn file_orders(&self) -> &[FileOrder] {
        &self.files
    }

    pub(super) fn last_told(&self, connection: u64) -> ToGuard {
        self.told.iter().rev().find(|(to, _)| *to == connection).unwrap().1.clone()
    }

    pub(super) fn last_told_end(&self, connection: u64) -> Option<(EndReason, Option<u8>)> {
        self.told.iter().rev().filter(|(to, _)| *to == connection).find_map(|(_, message)| match message {
            ToGuard::End { reason, exit_code, .. } => Some((*reason, *exit_code)),
            _ => None,
        })
    }

    pub(super) fn last_end_kill_at(&self, connection: u64) -> u64 {
        let end = |(to, message): &(u64, ToGuard)| match message {
            ToGuard::End { kill_at_ms, .. } if *to == connection => Some(*kill_at_ms),
            _ => None,
        };
        self.told.iter().rev().find_map(end).unwrap()
    }

    pub(super) fn holding_id(&self) -> HoldingId {
        match self.pod.published().state {
            State::Active { holding, .. } => holding,
            other => panic!("not ACTIVE: {other:?}"),
        }
    }

    pub(super) fn lost(&self) -> Option<LossReason> {
        match self.pod.published().state {
            State::Lost { reason: EndReason::Lost(reason), .. } => Some(reason),
            _ => None,
        }
    }
}
