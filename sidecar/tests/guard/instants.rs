//! The guard's own instants: what happens when nothing, or nothing good, is heard from the sidecar.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use fencedlease_core::timing::STALL;
use fencedlease_sidecar::clock;
use fencedlease_wire::guard::FromGuard;
use fencedlease_wire::{EndReason, LossReason, PlannedEnd};
use rustix::process::{PidfdFlags, Signal, pidfd_open};

use crate::support::container::{Container, Namespace, Pod};
use crate::support::sidecar::Connection;
use crate::support::{Instants, end, eventually, holding};

const STUBBORN: &str = "trap 'echo term >> $DIR/term' TERM; echo up > $DIR/up; while :; do sleep 0.05; done";

fn soon() -> Instants {
    Instants::after(Duration::from_millis(500), Duration::from_millis(500))
}

fn start(pod: &Pod, script: &str, instants: Instants) -> (Container, Connection, Namespace) {
    let sidecar = pod.sidecar();
    let container = pod.run_script(script);
    let guard = sidecar.start(&holding(1), instants);
    let namespace = Namespace::of(guard.pidfd.try_clone().unwrap());
    (container, guard, namespace)
}

fn assert_acted(message: FromGuard, text: &str) {
    let FromGuard::Acted { holding: told, message } = message else { panic!("{message:?} is no act") };
    assert_eq!(told, holding(1));
    assert!(message.contains(text), "{message}");
}

#[test]
fn a_silent_sidecar_is_term_and_kill_at_the_guards_own_instants() {
    let pod = Pod::new();
    let instants = soon();
    let (mut container, mut guard, namespace) = start(&pod, STUBBORN, instants);
    assert_acted(guard.expect(), "nothing was heard from the sidecar");
    assert!(clock::now() >= instants.term_at, "not before the term instant");
    pod.read("term");
    namespace.dead_after_silence("silent sidecar", instants);
    assert_eq!(container.exit_code(), 195);
    let message = pod.termination_message();
    assert!(message.contains("shop/ledger is lost") && message.contains("nothing was heard"), "{message}");
}

#[test]
fn a_workload_that_catches_sigterm_and_exits_0_is_lost_all_the_same() {
    let pod = Pod::new();
    let instants = soon();
    let script = "trap 'exit 0' TERM; while :; do sleep 0.05; done";
    let (mut container, mut guard, namespace) = start(&pod, script, instants);
    assert_acted(guard.expect(), "nothing was heard");
    assert_eq!(guard.expect(), FromGuard::Ended { holding: holding(1), exit_code: 0 });
    namespace.dead_after_silence("workload that exits 0", instants);
    assert_eq!(container.exit_code(), 195);
}

/// Between test and guard: what the test writes goes to the guard. It is a process, so it can be stopped.
const RELAY: &str = "use IO::Socket::UNIX; $| = 1; \
    my $l = IO::Socket::UNIX->new(Local => $ARGV[0], Listen => 1) or die $!; chmod 0666, $ARGV[0]; \
    my $g = $l->accept; $g->autoflush(1); print scalar <$g>; \
    while (<STDIN>) { print $g $_ }";

fn acts_alone_after(signal: Signal) {
    let pod = Pod::new();
    let socket = pod.path().join("guard.sock");
    let mut relay = Command::new("perl")
        .args(["-e", RELAY])
        .arg(&socket)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    eventually("a relay", || socket.exists().then_some(()));
    let mut container = pod.run_script(STUBBORN);
    let namespace = Namespace::of(pidfd_open(container.guard_pid(), PidfdFlags::empty()).unwrap());
    let instants = soon();
    let mut input = relay.stdin.take().unwrap();
    for message in [instants.grant(&holding(1), 42), instants.extend(&holding(1))] {
        input.write_all(&serde_json::to_vec(&message).unwrap()).unwrap();
        input.write_all(b"\n").unwrap();
    }
    pod.read("up");
    let pid = rustix::process::Pid::from_child(&relay);
    rustix::process::kill_process(pid, signal).unwrap();
    if signal == Signal::STOP {
        eventually("a stopped sidecar", || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", relay.id())).unwrap();
            status.contains("State:\tT").then_some(())
        });
    }
    // What it would say comes too late: a stopped one does not say it.
    let _ = input.write_all(&serde_json::to_vec(&Instants::far().extend(&holding(1))).unwrap());
    namespace.dead_after_silence(&format!("sidecar that got {signal:?}"), instants);
    pod.read("term");
    assert_eq!(container.exit_code(), 195);
    relay.kill().unwrap();
    relay.wait().unwrap();
}

#[test]
fn a_stopped_sidecar_changes_nothing() {
    acts_alone_after(Signal::STOP);
}

#[test]
fn a_killed_sidecar_changes_nothing() {
    acts_alone_after(Signal::KILL);
}

#[test]
fn extensions_keep_the_workload_alive_until_they_stop() {
    let pod = Pod::new();
    let first = soon();
    let (mut container, mut guard, namespace) = start(&pod, STUBBORN, first);
    let mut last = first;
    while clock::now() < first.kill_at + Duration::from_millis(500) {
        last = soon();
        guard.send(&last.extend(&holding(1)));
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(container.is_running() && !pod.has("term"));
    namespace.dead_after_silence("extensions that stop", last);
    assert_eq!(container.exit_code(), 195);
}

#[test]
fn an_extension_of_another_holding_moves_nothing() {
    let pod = Pod::new();
    let instants = soon();
    let (mut container, mut guard, namespace) = start(&pod, STUBBORN, instants);
    guard.send(&Instants::far().extend(&holding(2)));
    namespace.dead_after_silence("foreign extension", instants);
    assert_eq!(container.exit_code(), 195);
}

#[test]
fn an_extension_moves_only_forward() {
    let pod = Pod::new();
    let (mut container, mut guard, _namespace) = start(&pod, STUBBORN, Instants::far());
    guard.send(&Instants::after(Duration::ZERO, Duration::ZERO).extend(&holding(1)));
    assert!(guard.is_silent_for(STALL * 2));
    assert!(container.is_running() && !pod.has("term"));
}

#[test]
fn a_late_grant_starts_nothing_and_a_good_one_after_it_does() {
    let pod = Pod::new();
    let sidecar = pod.sidecar();
    let _container = pod.run_script("echo ran > $DIR/ran; sleep 1000");
    let mut guard = sidecar.accept();
    guard.welcome();
    guard.send(&Instants::after(Duration::ZERO, Duration::from_secs(9)).grant(&holding(1), 42));
    assert_acted(guard.expect(), "after its term instant");
    assert!(!pod.has("ran"));
    guard.send(&Instants::far().grant(&holding(2), 43));
    assert_eq!(guard.expect(), FromGuard::Started { holding: holding(2) });
    pod.read("ran");
}

#[test]
fn a_second_grant_is_ignored_and_told() {
    let pod = Pod::new();
    let instants = soon();
    let (mut container, mut guard, namespace) = start(&pod, STUBBORN, instants);
    guard.send(&Instants::far().grant(&holding(2), 43));
    let FromGuard::Acted { holding: told, message } = guard.expect() else { panic!("the grant was taken") };
    assert_eq!(told, holding(2));
    assert!(message.contains("runs already"), "{message}");
    namespace.dead_after_silence("second grant", instants);
    assert_eq!(container.exit_code(), 195);
}

#[test]
fn an_end_whose_kill_instant_has_passed_is_a_kill_at_once() {
    let pod = Pod::new();
    let (mut container, mut guard, namespace) = start(&pod, STUBBORN, Instants::far());
    pod.read("up");
    let now = Instants::after(Duration::ZERO, Duration::ZERO);
    guard.send(&end(&holding(1), EndReason::Lost(LossReason::OtherOwner), now.term_at, Some(195)));
    namespace.dead_after_silence("end with a past kill instant", now);
    assert_eq!(container.exit_code(), 195);
    assert_eq!(pod.termination_message(), "ended by the test\n");
}

#[test]
fn an_end_is_never_later_than_the_guards_own_kill_instant() {
    let pod = Pod::new();
    let instants = soon();
    let (mut container, mut guard, namespace) = start(&pod, STUBBORN, instants);
    pod.read("up");
    let loss = EndReason::Lost(LossReason::RenewalTimeout);
    guard.send(&end(&holding(1), loss, Instants::far().kill_at, Some(195)));
    pod.read("term");
    namespace.dead_in_time("end with a late kill instant", instants);
    assert_eq!(container.exit_code(), 195);
}

#[test]
fn an_end_of_another_holding_ends_nothing() {
    let pod = Pod::new();
    let (mut container, mut guard, _namespace) = start(&pod, STUBBORN, Instants::far());
    let loss = EndReason::Lost(LossReason::KeyGone);
    guard.send(&end(&holding(2), loss, Instants::far().kill_at, Some(195)));
    assert!(guard.is_silent_for(STALL));
    assert!(container.is_running() && !pod.has("term"));
}

#[test]
fn silence_during_a_planned_end_is_a_loss() {
    let pod = Pod::new();
    let instants = soon();
    let (mut container, mut guard, namespace) = start(&pod, STUBBORN, instants);
    pod.read("up");
    let planned = EndReason::Planned(PlannedEnd::StepDown);
    guard.send(&end(&holding(1), planned, Instants::far().kill_at, Some(196)));
    pod.read("term");
    assert_acted(guard.expect(), "nothing was heard");
    namespace.dead_after_silence("silence during a planned end", instants);
    assert_eq!(container.exit_code(), 195);
}

#[test]
fn a_planned_end_goes_on_as_long_as_it_is_extended() {
    let pod = Pod::new();
    let first = soon();
    let (mut container, mut guard, namespace) = start(&pod, STUBBORN, first);
    pod.read("up");
    let kill_at = first.kill_at + Duration::from_secs(1);
    let planned = EndReason::Planned(PlannedEnd::MaxHold);
    guard.send(&end(&holding(1), planned, kill_at, Some(196)));
    while clock::now() + Duration::from_millis(100) < kill_at {
        guard.send(&Instants::after(Duration::from_secs(5), Duration::ZERO).extend(&holding(1)));
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(container.is_running());
    namespace.dead_in_time("planned end", Instants { term_at: kill_at, kill_at });
    assert_eq!(container.exit_code(), 196);
}

#[test]
fn a_guard_that_was_stopped_too_long_takes_it_for_a_loss() {
    let pod = Pod::new();
    let (mut container, mut guard, namespace) = start(&pod, STUBBORN, Instants::far());
    pod.read("up");
    container.signal(Signal::STOP);
    // The watch interval, and more than a stall on top.
    std::thread::sleep(Duration::from_millis(1700));
    assert!(!pod.has("term"));
    guard.send(&Instants::far().extend(&holding(1)));
    let woken = Instants::after(Duration::ZERO, Duration::from_secs(2));
    container.signal(Signal::CONT);
    assert_acted(guard.expect(), "later than planned");
    pod.read("term");
    namespace.dead_after_silence("stopped guard", woken);
    assert_eq!(container.exit_code(), 195);
    assert!(pod.termination_message().contains("later than planned"));
}

#[test]
fn a_guard_that_wakes_up_after_its_kill_instant_kills_at_once() {
    let pod = Pod::new();
    let instants = soon();
    let (mut container, guard, namespace) = start(&pod, STUBBORN, instants);
    pod.read("up");
    container.signal(Signal::STOP);
    eventually("a kill instant that has passed", || (clock::now() > instants.kill_at).then_some(()));
    std::thread::sleep(STALL);
    let woken = Instants::after(Duration::ZERO, Duration::ZERO);
    container.signal(Signal::CONT);
    namespace.dead_after_silence("guard stopped over its kill instant", woken);
    assert_eq!(container.exit_code(), 195);
    drop(guard);
}

#[test]
fn what_has_arrived_is_read_before_an_instant_is_acted_on() {
    let attempt = || {
        let pod = Pod::new();
        let instants = soon();
        let (mut container, mut guard, _namespace) = start(&pod, STUBBORN, instants);
        pod.read("up");
        container.signal(Signal::STOP);
        guard.send(&Instants::far().extend(&holding(1)));
        eventually("a term instant that has passed", || (clock::now() > instants.term_at).then_some(()));
        container.signal(Signal::CONT);
        // On a machine that is too busy the guard was late, and says so rightly.
        if clock::now().since(instants.term_at) > STALL / 2 {
            return None;
        }
        assert!(guard.is_silent_for(STALL * 3), "the extension had arrived before the term instant");
        assert!(container.is_running() && !pod.has("term"));
        Some(())
    };
    assert!((0..10).any(|_| attempt().is_some()), "this machine is too busy to be 250 ms punctual");
}
