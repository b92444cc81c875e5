//! Is this report newer than the last one of its pod? A sidecar repeats a report whose answer was lost, and
//! one that was restarted begins a new run.

use std::collections::HashMap;

use fencedlease_wire::HoldingId;

/// How many runs of a pod are remembered as over. A sidecar that is restarted more often than that within
/// one connection's delay has other troubles.
const RETIRED: usize = 8;

/// The last report of each pod, by the pod's uid.
#[derive(Debug, Default)]
pub struct Order {
    pods: HashMap<String, Last>,
}

#[derive(Debug)]
struct Last {
    run: HoldingId,
    sequence: u64,
    retired: Vec<HoldingId>,
}

impl Order {
    /// Whether a report with this run and sequence is to be taken. One that repeats the last is: folding it
    /// again changes nothing.
    pub fn accept(&mut self, pod_uid: &str, run: &HoldingId, sequence: u64) -> bool {
        let Some(last) = self.pods.get_mut(pod_uid) else {
            let last = Last { run: run.clone(), sequence, retired: Vec::new() };
            self.pods.insert(pod_uid.to_owned(), last);
            return true;
        };
        if last.run == *run {
            let newer = sequence >= last.sequence;
            last.sequence = last.sequence.max(sequence);
            return newer;
        }
        if last.retired.contains(run) {
            return false;
        }
        last.retired.push(std::mem::replace(&mut last.run, run.clone()));
        if last.retired.len() > RETIRED {
            last.retired.remove(0);
        }
        last.sequence = sequence;
        true
    }

    /// Forgets the pods for which `exists` is false.
    pub fn retain(&mut self, exists: impl Fn(&str) -> bool) {
        self.pods.retain(|uid, _| exists(uid));
    }
}

#[cfg(test)]
mod tests;
