//! Who guards which container, and under what: one slot for each guarded container.

use fencedlease_core::BootTime;
use fencedlease_wire::OwnerToken;
use fencedlease_wire::settings::RestartPolicy;

use super::event::{ConnectionId, Hello, Interrupted, LifeId};

/// All guarded containers, in the order of the pod's spec.
#[derive(Clone, Debug)]
pub(super) struct Guards {
    slots: Vec<Slot>,
    lives: u64,
}

/// One guarded container.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) container: String,
    /// It runs once, before the containers that are none.
    init: bool,
    pub(super) occupant: Occupant,
    /// It was granted the present holding, in this life or an earlier one.
    pub(super) had_grant: bool,
}

/// Who is in a container.
#[derive(Clone, Debug)]
pub(super) enum Occupant {
    /// Nobody that we know of.
    Absent,
    /// A guard of an earlier run of the sidecar, which may come back, and is dead at this instant.
    Awaited { secret: String, until: BootTime },
    /// A guard.
    Live(Life),
    /// It ran to its end and does not come back.
    Completed,
}

/// One guard process.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) id: LifeId,
    pub(super) secret: String,
    pub(super) connection: Option<ConnectionId>,
    /// Since when it has no connection.
    pub(super) unheard_since: Option<BootTime>,
    pub(super) stage: Stage,
    /// Its end is expected: it told of it, or was told to end.
    pub(super) ends: bool,
    pub(super) exit_code: Option<u8>,
}

/// How far a guard has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stage {
    /// It waits for a grant.
    Fresh,
    /// It was granted the present holding at this instant.
    Granted(BootTime),
    /// Its workload runs under the present holding.
    Started,
    /// Its workload runs under a holding of an earlier run of the sidecar.
    Orphan,
}

/// What a hello means.
#[derive(Debug)]
pub(super) enum Arrival {
    /// A new life that waits for a grant.
    Fresh(LifeId),
    /// A life that we know, over a new connection. The old one, if any, is to be closed.
    Back { old: Option<ConnectionId> },
    /// A workload that runs under a holding of an earlier run.
    Orphan(LifeId),
    /// Nothing changes; the connection is closed.
    Refused(String),
    /// No container of this pod has that name.
    Unknown(String),
}

impl Life {
    /// Its workload may be running under the present holding.
    pub(super) fn is_granted(&self) -> bool {
        matches!(self.stage, Stage::Granted(_) | Stage::Started)
    }
}

// === impl Guards ===

impl Guards {
    /// Nobody is in these containers yet; the first `init` of them are init containers.
    pub(super) fn new(containers: &[String], init: usize) -> Self {
        let slot = |(place, container): (usize, &String)| Slot {
            container: container.clone(),
            init: place < init,
            occupant: Occupant::Absent,
            had_grant: false,
        };
        Self { slots: containers.iter().enumerate().map(slot).collect(), lives: 0 }
    }

    /// The guards of an earlier run are waited for, until they must be dead.
    pub(super) fn await_interrupted(&mut self, interrupted: &Interrupted, until: BootTime) {
        for (container, secret) in &interrupted.grants {
            if let Some(slot) = self.slots.iter_mut().find(|slot| slot.container == *container) {
                slot.occupant = Occupant::Awaited { secret: secret.clone(), until };
            }
        }
    }

    /// Takes in a hello.
    pub(super) fn hello(&mut self, hello: &Hello, connection: ConnectionId, new_secret: [u8; 16]) -> Arrival {
        let expected =
            || self.slots.iter().map(|slot| slot.container.as_str()).collect::<Vec<_>>().join(", ");
        let Some(place) = self.slots.iter().position(|slot| slot.container == hello.container) else {
            return Arrival::Unknown(format!(
                "container {:?} is not guarded in this pod; guarded are: {}",
                hello.container,
                expected()
            ));
        };
        let slot = &mut self.slots[place];
        let stage = match &mut slot.occupant {
            Occupant::Live(life) => {
                if hello.secret.as_ref() != Some(&life.secret) {
                    return Arrival::Refused("the container's guard is alive and has another secret".into());
                }
                let old = life.connection.replace(connection);
                life.unheard_since = None;
                return Arrival::Back { old };
            }
            Occupant::Awaited { secret, .. } => {
                if hello.secret.as_ref() != Some(secret) {
                    return Arrival::Refused(
                        "a guard from before the sidecar's restart may still be alive there".into(),
                    );
                }
                Stage::Orphan
            }
            // The kubelet starts no container again that has completed.
            Occupant::Completed => {
                return Arrival::Refused("the container has run to its end and does not come back".into());
            }
            Occupant::Absent if hello.holding.is_some() => Stage::Orphan,
            Occupant::Absent => Stage::Fresh,
        };
        self.lives += 1;
        let id = LifeId(self.lives);
        slot.occupant = Occupant::Live(Life {
            id,
            secret: OwnerToken::from_random(new_secret).as_str().to_owned(),
            connection: Some(connection),
            unheard_since: None,
            stage,
            ends: stage == Stage::Orphan,
            exit_code: None,
        });
        if stage == Stage::Orphan { Arrival::Orphan(id) } else { Arrival::Fresh(id) }
    }

    /// A connection is gone. Tells whose it was.
    pub(super) fn disconnected(&mut self, connection: ConnectionId, now: BootTime) -> Option<String> {
        let (container, life) = self.by_connection(connection)?;
        life.connection = None;
        life.unheard_since = Some(now);
        Some(container.to_owned())
    }

    /// A guard's container has no process any more. Tells the stage in which it died, and whether the
    /// container has completed.
    pub(super) fn died(&mut self, id: LifeId, policy: RestartPolicy) -> Option<(Stage, bool)> {
        let slot = self.slots.iter_mut().find(|slot| slot.life().is_some_and(|life| life.id == id))?;
        let life = slot.life()?;
        let stage = life.stage;
        let completed = life.is_granted()
            && match policy {
                RestartPolicy::Always if slot.init => life.exit_code == Some(0),
                RestartPolicy::Always => false,
                RestartPolicy::OnFailure => life.exit_code == Some(0),
                RestartPolicy::Never => true,
            };
        slot.occupant = if completed { Occupant::Completed } else { Occupant::Absent };
        Some((stage, completed))
    }

    /// What is awaited since the restart and must be dead by now is waited for no longer.
    pub(super) fn expire_awaited(&mut self, now: BootTime) {
        for slot in &mut self.slots {
            if matches!(slot.occupant, Occupant::Awaited { until, .. } if now >= until) {
                slot.occupant = Occupant::Absent;
            }
        }
    }

    /// A new holding: nobody was granted it yet.
    pub(super) fn forget_grants(&mut self) {
        for slot in &mut self.slots {
            slot.had_grant = false;
        }
    }

    /// Grants the present holding to every guard that waits and was not granted it in an earlier life.
    /// Gives their connections.
    pub(super) fn grant_fresh(&mut self, now: BootTime) -> Vec<ConnectionId> {
        let mut granted = Vec::new();
        for slot in &mut self.slots {
            if let Occupant::Live(life) = &mut slot.occupant
                && life.stage == Stage::Fresh
                && !slot.had_grant
                && let Some(connection) = life.connection
            {
                life.stage = Stage::Granted(now);
                slot.had_grant = true;
                granted.push(connection);
            }
        }
        granted
    }

    /// What may run now waits in its guard, connected: an init container, since they run one at a time; else every
    /// other container that has not completed.
    pub(super) fn all_fresh(&self) -> bool {
        if self.slots.iter().any(|slot| slot.init && slot.waits()) {
            return true;
        }
        let open = |slot: &&Slot| !slot.init && !matches!(slot.occupant, Occupant::Completed);
        let mut open = self.slots.iter().filter(open).peekable();
        open.peek().is_some() && open.all(Slot::waits)
    }

    /// The containers whose guards are missing, for people.
    pub(super) fn missing(&self) -> Vec<String> {
        let waits = |slot: &&Slot| match &slot.occupant {
            Occupant::Completed => false,
            Occupant::Live(_) => !slot.waits(),
            Occupant::Absent | Occupant::Awaited { .. } => true,
        };
        self.slots.iter().filter(waits).map(|slot| slot.container.clone()).collect()
    }

    /// Nothing is left to run: init containers are over when the others are, also those that an earlier run of the
    /// sidecar has seen to their end.
    pub(super) fn all_completed(&self) -> bool {
        let are_last = self.slots.iter().all(|slot| slot.init);
        let mut last = self.slots.iter().filter(|slot| are_last || !slot.init);
        last.all(|slot| matches!(slot.occupant, Occupant::Completed))
    }

    /// Nothing of the present holding's workload can be alive.
    pub(super) fn none_granted(&self) -> bool {
        !self.lives().any(Life::is_granted)
    }

    pub(super) fn none_orphaned(&self) -> bool {
        self.slots.iter().all(|slot| match &slot.occupant {
            Occupant::Awaited { .. } => false,
            Occupant::Live(life) => life.stage != Stage::Orphan,
            Occupant::Absent | Occupant::Completed => true,
        })
    }

    pub(super) fn ever_granted(&self) -> bool {
        self.slots.iter().any(|slot| slot.had_grant)
    }

    /// Container and secret of every guard.
    pub(super) fn secrets(&self) -> Vec<(String, String)> {
        let pair = |slot: &Slot| slot.life().map(|life| (slot.container.clone(), life.secret.clone()));
        self.slots.iter().filter_map(pair).collect()
    }

    /// The containers of guards that were granted the present holding and may be alive.
    pub(super) fn granted_containers(&self) -> Vec<String> {
        let granted = |slot: &&Slot| slot.life().is_some_and(Life::is_granted);
        self.slots.iter().filter(granted).map(|slot| slot.container.clone()).collect()
    }

    pub(super) fn by_connection(&mut self, connection: ConnectionId) -> Option<(&str, &mut Life)> {
        self.slots.iter_mut().find_map(|slot| match &mut slot.occupant {
            Occupant::Live(life) if life.connection == Some(connection) => {
                Some((slot.container.as_str(), life))
            }
            _ => None,
        })
    }

    /// A granted guard that has had no connection since before `limit`, and whose end is not expected.
    pub(super) fn unheard(&self) -> Option<(&str, BootTime)> {
        self.slots
            .iter()
            .filter_map(|slot| {
                let life = slot.life().filter(|life| life.is_granted() && !life.ends)?;
                Some((slot.container.as_str(), life.unheard_since?))
            })
            .min_by_key(|(_, since)| *since)
    }

    /// When the last awaited guard must be dead.
    pub(super) fn awaited_until(&self) -> Option<BootTime> {
        self.slots
            .iter()
            .filter_map(|slot| match slot.occupant {
                Occupant::Awaited { until, .. } => Some(until),
                _ => None,
            })
            .min()
    }

    pub(super) fn lives(&self) -> impl Iterator<Item = &Life> {
        self.slots.iter().filter_map(Slot::life)
    }

    pub(super) fn lives_mut(&mut self) -> impl Iterator<Item = &mut Life> {
        self.slots.iter_mut().filter_map(|slot| match &mut slot.occupant {
            Occupant::Live(life) => Some(life),
            _ => None,
        })
    }
}

// === impl Slot ===

impl Slot {
    /// A guard is there, connected, and waits for a grant.
    fn waits(&self) -> bool {
        self.life().is_some_and(|life| life.stage == Stage::Fresh && life.connection.is_some())
    }

    fn life(&self) -> Option<&Life> {
        match &self.occupant {
            Occupant::Live(life) => Some(life),
            _ => None,
        }
    }
}
