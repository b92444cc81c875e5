//! How long nobody holds between two pods, from the release to the first instruction of the next workload.
//! In a program of its own, so that no other test runs beside it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the helpers of tests fail as tests do"
)]

#[allow(dead_code, reason = "shared with tests that need more of it")]
#[path = "../hold/support/mod.rs"]
mod support;

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use fencedlease_core::BootTime;
use fencedlease_sidecar::clock;
use rustix::fs::{FileType, Mode};

use tempfile::TempDir;

use crate::support::container::Container;
use crate::support::eventually;
use crate::support::pod::Pod;
use crate::support::world::World;

const HANDOVERS: usize = 100;
/// What half of them must stay within. The tail is the scheduler's on a machine that others use too, so it
/// is told, and must only show that nobody slept until an expiry.
const HALF_WITHIN_MS: u64 = 50;
const ALL_WITHIN_MS: u64 = 1000;

/// The first words of workloads, one a line, each with the instant at which it arrived.
struct Words(Receiver<(u64, BootTime)>);

impl Words {
    fn listen(fifo: &Path) -> Self {
        rustix::fs::mknodat(rustix::fs::CWD, fifo, FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
        // Both ways, so that it does not end between two writers. The thread ends with the test's process.
        let mut fifo = BufReader::new(File::options().read(true).write(true).open(fifo).unwrap());
        let (send, words) = mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            while fifo.read_line(&mut line).is_ok() {
                let at = clock::now();
                if send.send((line.trim().parse().unwrap(), at)).is_err() {
                    return;
                }
                line.clear();
            }
        });
        Self(words)
    }

    fn next(&self) -> (u64, BootTime) {
        self.0.recv_timeout(Duration::from_secs(60)).expect("a workload that starts")
    }
}

/// When the holding of this fence was released, in milliseconds on CLOCK_BOOTTIME, as the log tells.
fn released_at(pod: &Pod, fence: u64) -> Option<u64> {
    let log = pod.log();
    let line = |line: &str| serde_json::from_str::<serde_json::Value>(line).ok();
    let released = |line: &serde_json::Value| line["message"] == "released" && line["fence"] == fence;
    log.lines().rev().filter_map(line).find(released)?["at_boottime_ms"].as_u64()
}

/// Two pods that take turns.
struct Pair {
    pods: [Pod; 2],
    containers: [Container; 2],
    script: String,
    words: Words,
    fence: u64,
    _folder: TempDir,
}

impl Pair {
    fn new(world: &World) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("words");
        let words = Words::listen(&fifo);
        let script = format!(
            "echo $FENCEDLEASE_FENCE > {}; while [ ! -e $DIR/stop ]; do sleep 0.005; done",
            fifo.display()
        );
        let pods = ["one", "two"].map(|name| Pod::start(name, world.redis.address(), |_| {}));
        let containers = [0, 1].map(|pod: usize| pods[pod].run("app", &script));
        let (fence, _) = words.next();
        Self { pods, containers, script, words, fence, _folder: folder }
    }

    /// The holder's workload ends, and the other one's begins: how many milliseconds lie between.
    fn hand_over(&mut self) -> u64 {
        let pods = &self.pods;
        let holder = eventually("a holder", || (0..2).find(|pod| pods[*pod].lease()["state"] == "ACTIVE"));
        eventually("a standby that sleeps", || pods[1 - holder].lease()["holder"].is_string().then_some(()));
        let stop = pods[holder].path().join("stop");
        std::fs::write(&stop, "").unwrap();
        let (fence, started_at) = self.words.next();
        assert!(fence > self.fence, "from {} to {fence}", self.fence);
        self.fence = fence;
        pods[holder].until("RELEASED");
        let released_at = eventually("a release in the log", || released_at(&pods[holder], fence - 1));
        assert_eq!(self.containers[holder].exit_code(), 0);
        std::fs::remove_file(stop).unwrap();
        self.containers[holder] = pods[holder].run("app", &self.script);
        started_at.as_millis().saturating_sub(released_at)
    }
}

#[test]
fn a_lease_changes_hands_within_milliseconds() {
    let world = World::new();
    let mut pair = Pair::new(&world);
    let mut gaps: Vec<u64> = (0..HANDOVERS).map(|_| pair.hand_over()).collect();
    gaps.sort_unstable();
    let at = |share: usize| gaps[(gaps.len() * share / 100).min(gaps.len() - 1)];
    println!(
        "handover, from release to the next workload's first word, {HANDOVERS} times: p50 {} ms, p99 {} ms",
        at(50),
        at(99)
    );
    assert!(at(50) <= HALF_WITHIN_MS && at(99) <= ALL_WITHIN_MS, "{gaps:?}");
}
