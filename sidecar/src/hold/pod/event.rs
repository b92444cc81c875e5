//! What happens to a pod, and what is to be done about it: the plain data around the machine.

use std::time::Duration;

use fencedlease_core::holding::Loss;
use fencedlease_core::{BootTime, RenewalOutcome, Timing};
use fencedlease_wire::endpoint::RedisStandingKind;
use fencedlease_wire::guard::{FromGuard, ToGuard};
use fencedlease_wire::lost::LostFlag;
use fencedlease_wire::settings::{GateSettings, RestartPolicy, StandbyMode};
use fencedlease_wire::{Fence, HoldingId, OwnerToken, ResourceName};

use super::fact::Fact;

/// What does not change while the sidecar runs.
#[derive(Clone, Debug)]
pub struct PodConfig {
    /// What is guarded.
    pub resource: ResourceName,
    /// The lease's timing.
    pub timing: Timing,
    /// How long a holding lasts at most; each is up to a tenth shorter.
    pub max_hold: Duration,
    /// How long before that the application is warned.
    pub max_hold_warning: Duration,
    /// The guarded containers, at least one.
    pub containers: Vec<String>,
    /// How many of them, the first, are init containers.
    pub init_containers: usize,
    /// The pod's restart policy.
    pub restart_policy: RestartPolicy,
    /// Whether the containers exist while the pod waits.
    pub standby_mode: StandbyMode,
    /// How long the pod may take to end when it is deleted.
    pub termination_grace: Duration,
    /// Where Redis is, `host:port`, for people.
    pub redis: String,
    /// The highest fence known at injection.
    pub floor: Option<Fence>,
    /// The gates that store a fence before the pod is ACTIVE.
    pub gates: Vec<GateSettings>,
}

impl PodConfig {
    /// Why the lease was lost, for people; where that is about Redis, with its address.
    pub(super) fn words_for(&self, loss: &Loss) -> String {
        let words = &loss.message;
        let is_told = !loss.reason.is_about_redis() || words.contains(&self.redis);
        if is_told { words.clone() } else { format!("{words} (Redis at {})", self.redis) }
    }
}

/// A connection to `guard.sock`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ConnectionId(pub u64);

/// One life of a guarded container: one guard process, known by its pidfd.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LifeId(pub u64);

/// Random bits for one event, so that the machine needs no source of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Random {
    /// For an owner token.
    pub token: [u8; 16],
    /// For a guard's secret.
    pub secret: [u8; 16],
    /// For a holding id.
    pub holding: [u8; 8],
    /// For delays, uniform.
    pub jitter: u64,
}

/// A holding that was under way when an earlier run of this sidecar ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Interrupted {
    /// Its name.
    pub holding: HoldingId,
    /// Its fence.
    pub fence: Fence,
    /// The last confirmed renewal, as far as it was noted.
    pub confirmed_at: BootTime,
    /// The loss was decided, noted and told by the earlier run already.
    pub loss_was_noted: bool,
    /// Who was granted: container and secret.
    pub grants: Vec<(String, String)>,
}

/// The first line of a guard.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Hello {
    /// The container's name.
    pub container: String,
    /// What makes this life known, if it was here before.
    pub secret: Option<String>,
    /// What the workload runs under.
    pub holding: Option<HoldingId>,
    /// The guard has begun to end the workload by itself.
    pub acted: bool,
}

/// Redis's answer to an attempt to acquire.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum AcquireAnswer {
    /// The lease is ours.
    Acquired {
        /// With this fence.
        fence: Fence,
        /// Who held it before, as far as Redis tells.
        previous_holder: Option<String>,
    },
    /// Somebody else has it.
    Held {
        /// For this long, if it has an expiry.
        remaining: Option<Duration>,
        /// The sequence.
        highest_fence: Option<Fence>,
        /// Who has it, for people.
        holder: Option<String>,
    },
    /// An error, or no answer.
    Failed {
        /// Of this kind.
        kind: RedisStandingKind,
        /// For people.
        message: String,
    },
}

/// A gate's answer to a raise.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum GateAnswer {
    /// It has stored the fence, and nothing of an older one is on its way any more.
    Stored {
        /// Requests of older fences that were cut and whose fate nobody knows.
        unsettled: u64,
    },
    /// It has stored a greater fence, or the same one of another holder.
    Ahead {
        /// The highest that it has.
        highest: Fence,
    },
    /// No answer, or none that counts: whether the fence is stored is not known.
    Failed {
        /// What happened and what to do, for people.
        message: String,
    },
}

/// Something that happened.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Event {
    /// Time has passed.
    Time,
    /// The watching thread woke up later than planned.
    Late {
        /// When it was to wake.
        planned: BootTime,
    },
    /// The machine slept.
    Suspended {
        /// For this long.
        gained: Duration,
    },
    /// A guard's first line on a new connection.
    Hello {
        /// Which connection.
        connection: ConnectionId,
        /// What it said.
        hello: Hello,
    },
    /// A later line of a guard.
    Said {
        /// Which connection.
        connection: ConnectionId,
        /// What it said.
        message: FromGuard,
    },
    /// A connection is gone.
    Disconnected {
        /// Which one.
        connection: ConnectionId,
        /// Why, for people.
        reason: String,
    },
    /// The pidfd of a guard is readable: its container has no process any more.
    Died {
        /// Whose.
        life: LifeId,
    },
    /// An attempt to acquire was answered.
    AcquireAnswered {
        /// Which attempt.
        call: u64,
        /// How.
        answer: AcquireAnswer,
    },
    /// A renewal has an outcome.
    RenewAnswered {
        /// Which one.
        call: u64,
        /// How.
        outcome: RenewalOutcome,
    },
    /// A release was answered, or given up.
    ReleaseAnswered {
        /// Which one.
        call: u64,
    },
    /// The lease may be free: a release was published, or one may have been missed.
    ReleaseHeard {
        /// It was published just now.
        published: bool,
    },
    /// A raise was answered, or given up.
    RaiseAnswered {
        /// Which one.
        call: u64,
        /// How.
        answer: GateAnswer,
    },
    /// The note of a holding and its fence are in their files.
    Filed {
        /// Which holding.
        holding: HoldingId,
    },
    /// The application wants to step down.
    StepDown,
    /// SIGTERM for the sidecar itself.
    Terminate,
}

/// What to do, in the order of the fields: nothing here waits for anything behind it.
#[derive(Debug, Default)]
#[must_use]
pub struct Actions {
    /// Bytes in the mapped page of the private volume.
    pub marks: Vec<Mark>,
    /// For the guards.
    pub guards: Vec<GuardAction>,
    /// For Redis.
    pub redis: Vec<RedisRequest>,
    /// For the gates.
    pub gates: Vec<RaiseRequest>,
    /// For the file writer, in this order.
    pub files: Vec<FileOrder>,
    /// For logs, metrics and reports.
    pub facts: Vec<Fact>,
    /// The sidecar has nothing left to do: it ends.
    pub exit: bool,
}

/// A note that is never waited for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Mark {
    /// A renewal sent at this instant was confirmed.
    Confirmed(BootTime),
    /// This holding is LOST.
    Lost(HoldingId),
    /// This holding ended in order.
    Released(HoldingId),
}

/// What to do with a guard's connection.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum GuardAction {
    /// Send this line.
    Tell {
        /// To whom.
        connection: ConnectionId,
        /// What.
        message: ToGuard,
    },
    /// Keep the pidfd that came over this connection, and tell when it is readable.
    Adopt {
        /// From where.
        connection: ConnectionId,
        /// As whose.
        life: LifeId,
    },
    /// Close the connection, after what is still to be sent.
    Close {
        /// Which one.
        connection: ConnectionId,
    },
    /// The pidfd is of no use any more.
    Forget {
        /// Whose.
        life: LifeId,
    },
}

impl GuardAction {
    /// Whether a workload may run once this is carried out.
    pub fn starts_workload(&self) -> bool {
        matches!(self, Self::Tell { message: ToGuard::Grant { .. }, .. })
    }
}

/// What to ask Redis.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum RedisRequest {
    /// Try to acquire.
    Acquire {
        /// To be told with the answer.
        call: u64,
        /// The new owner token.
        token: OwnerToken,
        /// The fence must be above this.
        floor: Option<Fence>,
        /// How long the whole call may take.
        timeout: Duration,
    },
    /// Renew.
    Renew {
        /// To be told with the outcome.
        call: u64,
        /// The owner token.
        token: OwnerToken,
        /// The holder's fence.
        fence: Fence,
        /// How long the whole call may take.
        timeout: Duration,
    },
    /// Release.
    Release {
        /// To be told with the answer.
        call: u64,
        /// The owner token.
        token: OwnerToken,
        /// Whether the holding ended in order.
        clean: bool,
        /// How long the whole call may take.
        timeout: Duration,
    },
    /// Listen for releases, or stop to.
    Listen(bool),
}

/// Ask a gate to store a fence.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RaiseRequest {
    /// To be told with the answer.
    pub call: u64,
    /// Which gate, counted from 0 in the order of the settings.
    pub gate: usize,
    /// The new fence.
    pub fence: Fence,
    /// Who holds it.
    pub holding: HoldingId,
    /// How long connection and answer may take together.
    pub timeout: Duration,
}

/// What to write.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FileOrder {
    /// The note of a new holding, then the `fence` file; told back by [`Event::Filed`].
    Hold {
        /// Its name.
        holding: HoldingId,
        /// Its fence.
        fence: Fence,
        /// The guards of the pod as they are now: container and secret.
        grants: Vec<(String, String)>,
    },
    /// The note again, with a guard that came later.
    Grants {
        /// The holding's name.
        holding: HoldingId,
        /// Its fence.
        fence: Fence,
        /// Container and secret of each guard.
        grants: Vec<(String, String)>,
    },
    /// Remove the `fence` file.
    RemoveFence,
    /// Write the `lost` file.
    Lost(LostFlag),
    /// The holding is over and its workload dead: remove its note.
    RemoveNote,
}
