//! What do users hear of? Events on the FencedLease and on the pod, in the words of one list.

use std::time::Duration;

use fencedlease_core::duration::{self, in_seconds};
use fencedlease_crds::FencedLease;
use fencedlease_wire::{EndReason, Fence, LossReason};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType, Recorder};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

/// How long the API server may take for one event: they inform, and must not pile up.
const PUBLISH: Duration = Duration::from_secs(5);
/// How many events wait at most; more are dropped with a log line.
const QUEUE: usize = 512;
/// The longest note that the API server takes is 1024 bytes.
const LONGEST_NOTE: usize = 1000;

/// What was done when a gate could not be told a fence.
const RAISE: &str = "Raise";

/// Something that users should hear of.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum News {
    /// A pod holds the lease now.
    Acquired {
        /// With this fence.
        fence: Fence,
        /// How long it had waited.
        waited_ms: u64,
        /// Who held before.
        previous_holder: Option<String>,
        /// With which fence.
        previous_fence: Option<i64>,
    },
    /// It came from one holder to the next without running out.
    HandedOver {
        /// The old fence.
        from: i64,
        /// The new one.
        to: Fence,
        /// From release to acquisition.
        milliseconds: u64,
    },
    /// A pod gave the lease back.
    Released {
        /// The fence that no longer counts.
        fence: Fence,
        /// Why.
        reason: EndReason,
        /// How long it was held.
        held_ms: u64,
        /// From the end's beginning to proven death.
        dead_after_ms: u64,
    },
    /// A pod lost the lease.
    Lost {
        /// The fence that no longer counts.
        fence: Fence,
        /// Why.
        reason: LossReason,
        /// Why, for people.
        message: String,
        /// From loss noticed to proven death; `None`: not proven, which is a KillOverdue.
        dead_after_ms: Option<u64>,
        /// From proven death to the deadline; negative if death came later.
        before_deadline_ms: Option<i64>,
    },
    /// A pod was refused.
    Refused {
        /// The webhook's words.
        message: String,
    },
    /// A pod could not raise its fence at a gate, so that it cannot work.
    GateUnreachable {
        /// The condition's words.
        message: String,
    },
    /// A gate has stored a greater fence than Redis hands out.
    GateAhead {
        /// The condition's words.
        message: String,
    },
    /// The key for the gates could not be made.
    GateKeyMissing {
        /// The condition's words.
        message: String,
    },
    /// Pods ask for the lease and are not guarded.
    UnguardedPods {
        /// The condition's words.
        message: String,
    },
    /// A rollout waits for what cannot come.
    RolloutMayHang {
        /// The condition's words.
        message: String,
    },
}

/// An event before it is published.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Words {
    /// Whether it is a warning.
    pub warning: bool,
    /// The reason, as users match it.
    pub reason: &'static str,
    /// What was done. The fence is part of it where there is one, so that events of two holdings are never
    /// folded into one, whose text would then tell the wrong fence.
    pub action: String,
    /// The text.
    pub note: String,
}

impl News {
    /// The words for it, of a pod and its FencedLease.
    pub fn words(&self, resource: &str, pod: &str) -> Words {
        match self {
            Self::Acquired { fence, waited_ms, previous_holder, previous_fence } => {
                let before = match (previous_holder, previous_fence) {
                    (Some(holder), Some(fence)) => format!("; before it {holder}, fence {fence}"),
                    (Some(holder), None) => format!("; before it {holder}"),
                    (None, Some(fence)) => format!("; before it fence {fence}"),
                    (None, None) => String::new(),
                };
                let waited = seconds(*waited_ms);
                let note = format!("{pod} holds {resource} with fence {fence} (waited {waited}{before})");
                normal("Acquired", format!("AcquireFence{fence}"), note)
            }
            Self::HandedOver { from, to, milliseconds } => {
                let note = format!("fence {from} → {to} in {milliseconds} ms");
                normal("HandedOver", format!("HandOverFence{to}"), note)
            }
            Self::Released { fence, reason, held_ms, dead_after_ms } => {
                let held = duration::format(Duration::from_secs(held_ms / 1000));
                let note = format!(
                    "{pod} released fence {fence} after {held}: {reason}. All processes were dead {dead_after_ms} ms after the end began"
                );
                normal("Released", format!("ReleaseFence{fence}"), note)
            }
            Self::Lost { fence, reason, message, dead_after_ms, before_deadline_ms } => {
                lost(pod, *fence, *reason, message, dead_after_ms.zip(*before_deadline_ms), *dead_after_ms)
            }
            Self::Refused { message } => warning("Refused", "Admit".to_owned(), message.clone()),
            Self::GateUnreachable { message } => {
                warning("GateUnreachable", RAISE.to_owned(), message.clone())
            }
            Self::GateAhead { message } => warning("GateAhead", RAISE.to_owned(), message.clone()),
            Self::GateKeyMissing { message } => warning("GateKeyMissing", RAISE.to_owned(), message.clone()),
            Self::UnguardedPods { message } => warning("UnguardedPods", "Guard".to_owned(), message.clone()),
            Self::RolloutMayHang { message } => {
                warning("RolloutMayHang", "RollOut".to_owned(), message.clone())
            }
        }
    }
}

fn lost(
    pod: &str,
    fence: Fence,
    reason: LossReason,
    message: &str,
    dead_in_time: Option<(u64, i64)>,
    dead: Option<u64>,
) -> Words {
    let message = message.trim_end_matches('.');
    let head = format!("{pod} lost fence {fence}: {reason}, {message}.");
    let late = format!("Late writes with fence {fence} are refused only where the resource checks it");
    match (dead_in_time, dead) {
        (Some((after, before)), _) => {
            let margin = seconds(before.unsigned_abs());
            let side = if before < 0 { "after" } else { "before" };
            let note =
                format!("{head} All processes dead {after} ms later, {margin} {side} the deadline. {late}");
            warning("Lost", format!("LoseFence{fence}"), note)
        }
        (None, Some(after)) => {
            let note = format!("{head} All processes dead {after} ms later. {late}");
            warning("Lost", format!("LoseFence{fence}"), note)
        }
        (None, None) => {
            let note = format!(
                "{head} Its processes are not proven dead yet: the lease is not released, it runs out by itself. {late}"
            );
            warning("KillOverdue", format!("KillFence{fence}"), note)
        }
    }
}

/// What publishes events, beside everything else.
#[derive(Clone)]
pub struct Events {
    queue: mpsc::Sender<Published>,
}

struct Published {
    event: Event,
    regarding: ObjectReference,
}

/// The queue, and the task that empties it until `stop`.
pub fn events(
    recorder: Recorder,
    mut stop: watch::Receiver<bool>,
) -> (Events, impl Future<Output = ()> + Send + 'static) {
    let (queue, mut waiting) = mpsc::channel::<Published>(QUEUE);
    let task = async move {
        loop {
            let Published { event, regarding } = tokio::select! {
                Some(next) = waiting.recv() => next,
                _ = stop.wait_for(|stop| *stop) => return,
            };
            match timeout(PUBLISH, recorder.publish(&event, &regarding)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(reason = event.reason, %error, "cannot publish an event"),
                Err(_) => tracing::warn!(reason = event.reason, "the API server took too long for an event"),
            }
        }
    };
    (Events { queue }, task)
}

impl Events {
    /// Publishes `news` on the FencedLease, and on the pod where there is one.
    pub fn publish(&self, news: &News, lease: &ObjectReference, pod: Option<&ObjectReference>) {
        let name = |object: &ObjectReference| object.name.clone().unwrap_or_default();
        let resource = format!("{}/{}", lease.namespace.as_deref().unwrap_or_default(), name(lease));
        let words = news.words(&resource, &pod.map(name).unwrap_or_default());
        self.push(event(&words, pod.cloned()), lease.clone());
        if let Some(pod) = pod {
            self.push(event(&words, Some(lease.clone())), pod.clone());
        }
    }

    /// Publishes `news` on an object that is neither FencedLease nor pod.
    pub fn publish_on(&self, news: &News, regarding: &ObjectReference) {
        let name = regarding.name.clone().unwrap_or_default();
        let resource = format!("{}/{name}", regarding.namespace.as_deref().unwrap_or_default());
        self.push(event(&news.words(&resource, &name), None), regarding.clone());
    }

    fn push(&self, event: Event, regarding: ObjectReference) {
        if let Err(mpsc::error::TrySendError::Full(lost)) =
            self.queue.try_send(Published { event, regarding })
        {
            tracing::warn!(
                reason = lost.event.reason,
                note = lost.event.note,
                "too many events; this one is dropped"
            );
        }
    }
}

/// A reference to a FencedLease, without the resourceVersion that would tell equal events apart.
pub fn lease_reference(lease: &FencedLease) -> ObjectReference {
    reference("fencedlease.dev/v1alpha1", "FencedLease", &lease.metadata)
}

/// A reference to a pod.
pub fn pod_reference(namespace: &str, name: &str, uid: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        namespace: Some(namespace.to_owned()),
        name: Some(name.to_owned()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    }
}

fn reference(api_version: &str, kind: &str, metadata: &kube::api::ObjectMeta) -> ObjectReference {
    ObjectReference {
        api_version: Some(api_version.to_owned()),
        kind: Some(kind.to_owned()),
        namespace: metadata.namespace.clone(),
        name: metadata.name.clone(),
        uid: metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

fn event(words: &Words, secondary: Option<ObjectReference>) -> Event {
    let mut note = words.note.clone();
    note.truncate(note.floor_char_boundary(LONGEST_NOTE));
    Event {
        type_: if words.warning { EventType::Warning } else { EventType::Normal },
        reason: words.reason.to_owned(),
        note: Some(note),
        action: words.action.clone(),
        secondary,
    }
}

fn normal(reason: &'static str, action: String, note: String) -> Words {
    Words { warning: false, reason, action, note }
}

fn warning(reason: &'static str, action: String, note: String) -> Words {
    Words { warning: true, reason, action, note }
}

/// To a tenth of a second, which is what a reader takes in; below that to the millisecond.
fn seconds(milliseconds: u64) -> String {
    let shown = if milliseconds < 100 { milliseconds } else { (milliseconds + 50) / 100 * 100 };
    in_seconds(Duration::from_millis(shown))
}

#[cfg(test)]
mod tests;
