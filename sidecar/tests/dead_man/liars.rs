//! Whatever a workload says on the guards' socket, it gains nothing: no release, no longer life, no delay.

use std::io::{IoSlice, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use fencedlease_faults::matrix::shown;
use fencedlease_faults::{Clients, Fault};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{PidfdFlags, getpid, pidfd_open};

use crate::lane::{Lane, STUBBORN};
use crate::support::pod::{Pod, pass};
use crate::support::world::World;

const CONFIRMED: &str = "fencedlease_renewals_total{result=\"confirmed\"}";

/// Says these lines with a pidfd of its own, as a guard would. `None` if the connection was not even taken.
fn say(socket: &Path, lines: &str) -> Option<UnixStream> {
    let client = UnixStream::connect(socket).ok()?;
    let own = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
    let fds = [own.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
    sendmsg(&client, &[IoSlice::new(lines.as_bytes())], &mut control, SendFlags::NOSIGNAL).ok()?;
    Some(client)
}

/// What is answered until the connection is closed.
fn answer(client: Option<UnixStream>) -> String {
    let mut client = client.unwrap();
    client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut text = Vec::new();
    // Closed with something unread, it ends in a reset.
    let end = client.read_to_end(&mut text);
    assert!(
        end.as_ref().is_ok() || end.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset)
    );
    String::from_utf8(text).unwrap()
}

fn hello(container: &str, secret: &str, holding: &str, acted: bool) -> String {
    serde_json::json!({"type": "hello", "container": container, "secret": secret, "holding": holding, "acted": acted})
        .to_string()
        + "\n"
}

fn about(kind: &str, holding: &str) -> String {
    let mut line = serde_json::json!({"type": kind, "holding": holding});
    match kind {
        "ended" => line["exitCode"] = 0.into(),
        "acted" => line["message"] = "of the liar".into(),
        "startFailed" => {
            line["exitCode"] = 127.into();
            line["message"] = "of the liar".into();
        }
        _ => {}
    }
    line.to_string() + "\n"
}

#[test]
fn a_false_word_of_death_and_a_foreign_holding_change_nothing() {
    let world = World::new();
    let mut lane = Lane::start(&world, "lied-to");
    let socket = lane.pod.path().join("guard.sock");
    let before = lane.pod.lease();
    let holding = before["holding"].as_str().unwrap().to_owned();
    for holding in [holding.as_str(), "0123456789abcdef"] {
        for kind in ["started", "startFailed", "acted", "terminating", "ended"] {
            let alone = about(kind, holding);
            assert_eq!(answer(say(&socket, &alone)), "", "{kind} without a hello is cut");
            for container in ["app", "nobody"] {
                let lines = hello(container, "a guess", holding, kind == "acted") + &alone;
                let told = answer(say(&socket, &lines));
                assert!(!told.contains("welcome") && !told.contains("grant"), "{told}");
            }
        }
    }
    let confirmed = lane.pod.metric(CONFIRMED);
    pass(Duration::from_secs(1));
    let after = lane.pod.lease();
    assert_eq!((&after["state"], &after["fence"]), (&before["state"], &before["fence"]));
    assert_eq!(after["holding"], before["holding"]);
    assert!(lane.pod.metric(CONFIRMED) > confirmed, "it is renewed on");
    assert!(lane.container.is_running() && lane.left_ms() > 0, "nothing was released");
    lane.pod.kill_sidecar();
    lane.dies_before_the_deadline("lied to");
}

#[test]
fn a_flood_of_lies_delays_no_kill() {
    let world = World::new();
    let proxy = world.proxy();
    let pod = Pod::start("one", proxy.address, |_| {});
    let mut container = pod.run("app", STUBBORN);
    let holding = pod.until("ACTIVE")["holding"].as_str().unwrap().to_owned();
    pod.read("up");
    let socket = pod.path().join("guard.sock");
    let lines = (hello("app", "a guess", &holding, false) + &about("ended", &holding)).repeat(20);
    let (stop, told) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let flood = || {
            while !stop.load(Ordering::Relaxed) {
                let Some(mut client) = say(&socket, &lines) else { continue };
                // It may have been cut already.
                let _ = client.write_all(lines.as_bytes());
                told.fetch_add(1, Ordering::Relaxed);
            }
        };
        for _ in 0..2 {
            scope.spawn(flood);
        }
        pass(Duration::from_secs(1));
        let state = pod.lease()["state"].clone();
        proxy.handle.set(Clients::All, Fault::Cut);
        let flag = pod.lost();
        let at = container.dead();
        stop.store(true, Ordering::Relaxed);
        let (noticed, deadline) =
            (flag["noticedAtBoottimeMs"].as_u64().unwrap(), flag["deadlineBoottimeMs"].as_u64().unwrap());
        println!(
            "flood of {} lies: dead {} ms after the loss was noticed, {} ms before the deadline",
            told.load(Ordering::Relaxed),
            at.as_millis() - noticed,
            deadline.saturating_sub(at.as_millis())
        );
        assert_eq!(state, "ACTIVE", "the flood alone costs nothing");
        assert!(at.as_millis() < deadline, "dead at {at}, after the deadline {deadline}");
    });
    let told = told.into_inner();
    assert!(told > 500, "it was a flood");
    assert_eq!(container.exit_code(), 195);
    shown(&[46], &format!("{told} false words on the guards' socket: no renewal lost, dead in time"))
        .unwrap();
}
