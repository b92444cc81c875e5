//! Which conditions does a FencedLease have? Pure. The reasons are a closed list that users may match on.

use fencedlease_crds::{ConditionType, FencedLeaseStatus, Phase};
use fencedlease_wire::endpoint::{GatesStandingKind, RedisStandingKind};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::settle::{Facts, SILENT};

/// How long a refusal is shown after the last one.
const REFUSAL_SHOWN: SignedDuration = SignedDuration::from_mins(20);
/// How old a shown refusal's time may be before another refusal moves it.
const REFUSAL_REFRESHED: SignedDuration = SignedDuration::from_mins(10);
/// How many names a message lists.
const MOST_NAMES: usize = 5;

/// The reason of GatesReady where the operator could not make the key.
const KEY_MISSING: &str = "GateKeyMissing";

/// A condition before it is compared with the one that stands.
struct Verdict {
    of: ConditionType,
    status: &'static str,
    reason: String,
    message: String,
}

/// The conditions of `status`, whose phase and holder are settled already.
pub fn conditions(status: &FencedLeaseStatus, facts: &Facts, now: Timestamp) -> Vec<Condition> {
    let redis = redis_reachable(status, facts);
    let gates = facts.has_gates.then(|| gates_ready(status, facts));
    let admission = admission(status, facts, now);
    let causes = [Some(&redis), gates.as_ref(), Some(&admission)];
    let ready = ready(facts, causes.into_iter().flatten());
    let before = [ready, held(status, facts), redis, fence_durable()];
    let after = [pods_current(facts), admission];
    before.into_iter().chain(gates).chain(after).map(|verdict| stamp(verdict, status, facts, now)).collect()
}

/// The condition that stands in `status`.
pub fn standing(status: &FencedLeaseStatus, of: ConditionType) -> Option<&Condition> {
    status.conditions.iter().find(|condition| condition.type_ == of.as_str())
}

fn ready<'a>(facts: &Facts, mut causes: impl Iterator<Item = &'a Verdict>) -> Verdict {
    if let Err(why) = &facts.timing {
        return verdict(ConditionType::Ready, "False", "Invalid", why.clone());
    }
    match causes.find(|cause| cause.status == "False") {
        Some(cause) => verdict(ConditionType::Ready, "False", &cause.reason, cause.message.clone()),
        None => verdict(ConditionType::Ready, "True", "AsSpecified", "A pod can hold the lease."),
    }
}

fn held(status: &FencedLeaseStatus, facts: &Facts) -> Verdict {
    let of = ConditionType::Held;
    let Some(holder) = &status.holder else {
        return if facts.pods.standbys.is_empty() {
            verdict(of, "False", "NoPods", "No pod asks for the lease.")
        } else {
            verdict(of, "False", "AllWaiting", format!("{} wait.", names(&facts.pods.standbys)))
        };
    };
    let fence = status.fence.unwrap_or_default();
    let pod = &holder.pod_name;
    if holder.kill_pending {
        let message = format!(
            "{pod} lost fence {fence} and its processes are not proven dead: the lease is not released, it runs out by itself."
        );
        verdict(of, "False", "KillPending", message)
    } else if status.phase == Some(Phase::Unknown) {
        let message = format!(
            "{pod} held fence {fence} and has not been heard of for {} seconds: see its node, and what kubectl logs {pod} -c fencedlease says of the operator.",
            SILENT.as_secs()
        );
        verdict(of, "Unknown", "NoReport", message)
    } else {
        verdict(of, "True", "HolderActive", format!("{pod} holds fence {fence}."))
    }
}

fn redis_reachable(status: &FencedLeaseStatus, facts: &Facts) -> Verdict {
    let of = ConditionType::RedisReachable;
    if !facts.has_redis {
        let message = "Neither spec.redis nor the installation names a Redis: set spec.redis.addresses, or redis.addresses in the chart's values.";
        return verdict(of, "False", "NotConfigured", message);
    }
    if let Some(redis) = &facts.redis {
        let (reason, remedy) = redis_reason(redis.kind);
        return if redis.kind == RedisStandingKind::Connected {
            verdict(of, "True", reason, "Redis answers.")
        } else {
            verdict(of, "False", reason, format!("{}. {remedy}", redis.message.trim_end_matches('.')))
        };
    }
    said_before(status, facts, of, "NotConfigured")
        .unwrap_or_else(|| verdict(of, "Unknown", "NoReport", "No pod has asked Redis yet."))
}

fn gates_ready(status: &FencedLeaseStatus, facts: &Facts) -> Verdict {
    let of = ConditionType::GatesReady;
    if let Some(problem) = &facts.gate_key_problem {
        return verdict(of, "False", KEY_MISSING, problem.clone());
    }
    let Some(gates) = &facts.gates else {
        return said_before(status, facts, of, KEY_MISSING).unwrap_or_else(|| {
            verdict(of, "Unknown", "NoReport", "No pod has raised a fence at the gates yet.")
        });
    };
    let message = gates.message.clone();
    match gates.kind {
        GatesStandingKind::Raised | GatesStandingKind::NotAsked => {
            verdict(of, "True", "Raised", "Every gate has stored the fence.")
        }
        GatesStandingKind::GateUnreachable => verdict(of, "False", "GateUnreachable", message),
        GatesStandingKind::GateAhead => verdict(of, "False", "GateAhead", message),
    }
}

/// What the pods said before, unless it was the operator that said `of_ours`.
fn said_before(
    status: &FencedLeaseStatus,
    facts: &Facts,
    of: ConditionType,
    of_ours: &str,
) -> Option<Verdict> {
    // What pods said that are gone says nothing of today.
    let known =
        standing(status, of).filter(|known| !facts.pods.alive.is_empty() && known.reason != of_ours)?;
    Some(Verdict {
        of,
        status: match known.status.as_str() {
            "True" => "True",
            "False" => "False",
            _ => "Unknown",
        },
        reason: known.reason.clone(),
        message: known.message.clone(),
    })
}

fn redis_reason(kind: RedisStandingKind) -> (&'static str, &'static str) {
    match kind {
        RedisStandingKind::Connected | RedisStandingKind::NotAsked => ("Connected", ""),
        RedisStandingKind::Timeout => (
            "Timeout",
            "See that Redis runs and that pods reach its address: network policies, Service, port.",
        ),
        RedisStandingKind::AuthFailed => {
            ("AuthFailed", "See that the Secret's username and password are those that Redis accepts.")
        }
        RedisStandingKind::PermissionDenied => (
            "PermissionDenied",
            "Give the Redis user the keys ~fencedlease:*, the channels &fencedlease:* and the commands named in the docs.",
        ),
        RedisStandingKind::NotMaster => {
            ("NotMaster", "Name the address of the master, not that of a replica.")
        }
        RedisStandingKind::TlsFailed => (
            "TLSFailed",
            "See that Redis serves TLS there, with a certificate of the authority in tls.caRef and the name in tls.serverName.",
        ),
        RedisStandingKind::SecretNotFound => {
            ("SecretNotFound", "Create the Secret that auth.secretRef names, with the key password.")
        }
        RedisStandingKind::Failed => ("Failed", "See the sidecar's log."),
    }
}

fn fence_durable() -> Verdict {
    let message = "Redis alone keeps the sequence of fences: if it loses its data, fences may start again below those that were handed out.";
    verdict(ConditionType::FenceDurable, "False", "BestEffort", message)
}

fn pods_current(facts: &Facts) -> Verdict {
    let of = ConditionType::PodsCurrent;
    if !facts.unguarded.is_empty() {
        let message = format!(
            "{} ask for the lease and run unguarded, as they were made while the webhook did not see them: delete them, so that their owner makes guarded ones.",
            names(&facts.unguarded)
        );
        return verdict(of, "False", "UnguardedPods", message);
    }
    if let Some(hanging) = &facts.pods.hanging {
        return verdict(of, "False", "RolloutMayHang", rollout_may_hang(hanging));
    }
    if !facts.pods.outdated.is_empty() {
        let message = format!(
            "{} run with an older spec: restart them to apply the present one.",
            names(&facts.pods.outdated)
        );
        return verdict(of, "False", "OutdatedPods", message);
    }
    verdict(of, "True", "UpToDate", "Every pod runs with the present spec.")
}

/// The text of the condition and of the event.
pub fn rollout_may_hang(hanging: &super::pods::Hanging) -> String {
    let (pod, holder) = (&hanging.pod, &hanging.holder);
    let workload = hanging.workload.as_ref();
    let (kind, name) = workload.map_or(("workload", ""), |it| (it.kind.as_str(), it.name.as_str()));
    let remedy = match kind {
        "Deployment" => {
            "Set spec.strategy to Recreate, or to RollingUpdate with maxSurge 0 and maxUnavailable 100%, or standby.readiness of the FencedLease to Ready"
        }
        "StatefulSet" => {
            "Set spec.updateStrategy to OnDelete, or standby.readiness of the FencedLease to Ready"
        }
        "DaemonSet" => {
            "Set spec.updateStrategy to OnDelete, or to RollingUpdate with maxUnavailable 100%, or standby.readiness of the FencedLease to Ready"
        }
        _ => "Set standby.readiness of the FencedLease to Ready",
    };
    format!(
        "the rollout of {kind} {name} waits for {pod} to be ready, which waits for the lease that {holder} holds. {remedy}; to go on now, delete {holder}."
    )
}

fn admission(status: &FencedLeaseStatus, facts: &Facts, now: Timestamp) -> Verdict {
    let of = ConditionType::AdmissionOk;
    // Kubernetes tells times in whole seconds. A pod of the second of a refusal may have been made before it, or after
    // it, when its controller tried again; that a refusal goes on is known by the next one.
    let newest = facts.pods.newest.map(Timestamp::as_second);
    if let Some(refusal) = &facts.refusal
        && newest.is_none_or(|newest| newest <= refusal.at.as_second())
    {
        return verdict(of, "False", "PodsRefused", refusal.message.clone());
    }
    if let Some(known) = standing(status, of).filter(|known| known.status == "False") {
        let since = known.last_transition_time.0;
        let admitted_since = newest.is_some_and(|newest| newest >= since.as_second());
        if !admitted_since && now < since + REFUSAL_SHOWN {
            return verdict(of, "False", &known.reason, known.message.clone());
        }
    }
    verdict(of, "True", "Admitted", "No pod was refused lately.")
}

/// The condition, which keeps the time of the last change of its status.
fn stamp(verdict: Verdict, status: &FencedLeaseStatus, facts: &Facts, now: Timestamp) -> Condition {
    let known = standing(status, verdict.of);
    let unchanged =
        known.filter(|known| known.status == verdict.status).map(|known| known.last_transition_time.0);
    let refused = facts.refusal.as_ref().filter(|_| verdict.reason == "PodsRefused");
    let refused_at = refused.filter(|_| verdict.of == ConditionType::AdmissionOk).map(|refused| refused.at);
    let since = match (unchanged, refused_at) {
        (Some(since), Some(again)) if is_newer_refusal(since, again, facts) => again,
        (Some(since), _) => since,
        (None, first) => first.unwrap_or(now),
    };
    Condition {
        type_: verdict.of.as_str().to_owned(),
        status: verdict.status.to_owned(),
        reason: verdict.reason,
        message: verdict.message,
        last_transition_time: Time(since),
        observed_generation: facts.generation,
    }
}

/// Whether a refusal moves the time of one that is shown: not each does, since each would be a write.
fn is_newer_refusal(shown: Timestamp, again: Timestamp, facts: &Facts) -> bool {
    let seems_over = facts.pods.newest.is_some_and(|newest| newest.as_second() >= shown.as_second());
    shown + REFUSAL_REFRESHED <= again || (seems_over && shown.as_second() < again.as_second())
}

fn verdict(of: ConditionType, status: &'static str, reason: &str, message: impl Into<String>) -> Verdict {
    Verdict { of, status, reason: reason.to_owned(), message: message.into() }
}

fn names(all: &[String]) -> String {
    let shown = all.iter().take(MOST_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(MOST_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests;
