//! How long nobody holds between two pods, from the release to the first instruction of the next workload.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use fencedlease_core::BootTime;
use fencedlease_sidecar::clock;
use rustix::fs::{FileType, Mode};

use crate::support::eventually;
use crate::support::pod::Pod;
use crate::support::world::World;

const HANDOVERS: usize = 50;

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
        self.0.recv_timeout(Duration::from_secs(20)).expect("a workload that starts")
    }
}

/// When the pod was last told, or told itself, that its lease was released: from its log.
fn released_at(pod: &Pod) -> u64 {
    let log = pod.log();
    let line = log.lines().rev().find(|line| line.contains("\"message\":\"released\"")).unwrap();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    line["at_boottime_ms"].as_u64().unwrap()
}

#[test]
fn a_lease_changes_hands_within_milliseconds() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("words");
    let words = Words::listen(&fifo);
    let script = format!(
        "echo $FENCEDLEASE_FENCE > {}; while [ ! -e $DIR/stop ]; do sleep 0.005; done",
        fifo.display()
    );
    let pods =
        [Pod::start("one", world.redis.address(), |_| {}), Pod::start("two", world.redis.address(), |_| {})];
    let mut containers = [pods[0].run("app", &script), pods[1].run("app", &script)];
    let (mut fence, _) = words.next();
    let mut gaps = Vec::new();
    for _ in 0..HANDOVERS {
        let holder = eventually("a holder", || (0..2).find(|pod| pods[*pod].lease()["state"] == "ACTIVE"));
        let other = 1 - holder;
        eventually("a standby that sleeps", || (pods[other].lease()["holder"].is_string()).then_some(()));
        std::fs::write(pods[holder].path().join("stop"), "").unwrap();
        let (next, started_at) = words.next();
        assert!(next > fence, "from {fence} to {next}");
        fence = next;
        pods[holder].until("RELEASED");
        let released = eventually("a release in the log", || Some(released_at(&pods[holder])));
        gaps.push(started_at.as_millis().saturating_sub(released));
        assert_eq!(containers[holder].exit_code(), 0);
        std::fs::remove_file(pods[holder].path().join("stop")).unwrap();
        containers[holder] = pods[holder].run("app", &script);
    }
    gaps.sort_unstable();
    let at = |share: usize| gaps[(gaps.len() * share / 100).min(gaps.len() - 1)];
    println!(
        "handover, from proven death and release to the next workload's first word, {HANDOVERS} times: p50 {} ms, p99 {} ms",
        at(50),
        at(99)
    );
    assert!(at(99) < 1000, "a handover waited for an expiry");
}
