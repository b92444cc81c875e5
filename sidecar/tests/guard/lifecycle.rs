//! From the grant to the workload's own end.

use std::time::Duration;

use fencedlease_wire::guard::{FromGuard, ToGuard};
use fencedlease_wire::{EndReason, LossReason, PlannedEnd, exit};
use rustix::process::Signal;

use crate::support::container::{Namespace, Options, Pod};
use crate::support::{Instants, end, eventually, holding};

#[test]
fn nothing_of_the_workload_runs_before_the_grant() {
    let pod = Pod::new();
    let sidecar = pod.sidecar();
    let mut container = pod.run_script("echo ran > $DIR/ran");
    let mut guard = sidecar.accept();
    assert_eq!(
        guard.hello,
        FromGuard::Hello { container: "app".to_owned(), secret: None, holding: None, acted: false }
    );
    guard.welcome();
    assert!(guard.is_silent_for(Duration::from_millis(300)));
    let namespace = Namespace::of(guard.pidfd.try_clone().unwrap());
    assert_eq!(namespace.members(), ["guard:waiting"], "the guard is alone");
    assert!(!pod.has("ran") && container.is_running());
    guard.send(&Instants::far().grant(&holding(1), 42));
    assert_eq!(pod.read("ran"), "ran\n");
    assert_eq!(container.exit_code(), 0);
}

#[test]
fn the_workload_has_fence_holding_and_resource_in_its_environment() {
    let pod = Pod::new();
    let sidecar = pod.sidecar();
    let environment = [("FENCEDLEASE_FENCE", "7"), ("OTHER", "kept")];
    let options = Options { environment: &environment, ..Options::default() };
    let script = "echo $FENCEDLEASE_FENCE $FENCEDLEASE_HOLDING $FENCEDLEASE_RESOURCE $OTHER > $DIR/env";
    let mut container = pod.run_with(options, &["sh", "-c", script]);
    sidecar.start(&holding(0xab), Instants::far());
    assert_eq!(pod.read("env"), "42 abababababababab shop/ledger kept\n");
    assert_eq!(container.exit_code(), 0);
}

#[test]
fn the_workload_starts_with_default_signals_in_a_group_of_its_own() {
    let pod = Pod::new();
    let sidecar = pod.sidecar();
    let script = "cat /proc/self/status > $DIR/status; cat /proc/$$/stat > $DIR/stat; ls /proc/self/fd > $DIR/fds; echo > $DIR/done";
    let _container = pod.run_script(script);
    sidecar.start(&holding(1), Instants::far());
    pod.read("done");
    let status = pod.read("status");
    for set in ["SigBlk", "SigIgn", "SigCgt"] {
        let line = format!("{set}:\t0000000000000000");
        assert!(status.lines().any(|found| found == line), "{line} in {status}");
    }
    let stat = pod.read("stat");
    let numbers: Vec<&str> = stat.split_whitespace().collect();
    assert_eq!(numbers[0], numbers[4], "it leads its own process group");
    // What the test itself was started with goes through, as through any container runtime.
    let without = std::process::Command::new("ls").arg("/proc/self/fd").output().unwrap();
    let without = String::from_utf8(without.stdout).unwrap();
    assert_eq!(pod.read("fds"), without, "no descriptor of the guard leaks");
}

#[test]
fn the_workloads_own_code_is_the_containers() {
    for (script, code) in [("exit 0", 0), ("exit 3", 3), ("kill -SEGV $$", 139), ("kill -KILL $$", 137)] {
        let pod = Pod::new();
        let sidecar = pod.sidecar();
        let mut container = pod.run_script(script);
        let mut guard = sidecar.start(&holding(1), Instants::far());
        let ended = FromGuard::Ended { holding: holding(1), exit_code: u8::try_from(code).unwrap() };
        assert_eq!(guard.expect(), ended);
        assert_eq!(container.exit_code(), code, "{script}");
        assert_eq!(pod.termination_message(), "", "the message is the workload's");
    }
}

#[test]
fn what_the_first_process_leaves_behind_ends_with_it() {
    let pod = Pod::new();
    let sidecar = pod.sidecar();
    let mut container = pod.run_script("setsid sleep 1000 & sleep 0.2; exit 5");
    let guard = sidecar.start(&holding(1), Instants::far());
    let namespace = Namespace::of(guard.pidfd);
    namespace.dead();
    assert_eq!(container.exit_code(), 5);
}

#[test]
fn a_command_that_cannot_be_run_is_told_with_its_code() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("plain"), "no program").unwrap();
    let plain = folder.path().join("plain").display().to_string();
    let cases = [
        ("no-such-program", exit::NOT_FOUND, "not found in $PATH"),
        ("/no/such/program", exit::NOT_FOUND, "was not found"),
        (plain.as_str(), exit::NOT_EXECUTABLE, "cannot be executed"),
        ("/etc", exit::NOT_EXECUTABLE, "cannot be executed"),
    ];
    for (command, code, text) in cases {
        let pod = Pod::new();
        let sidecar = pod.sidecar();
        let mut container = pod.run(&[command]);
        let mut guard = sidecar.accept();
        guard.send(&Instants::far().grant(&holding(1), 42));
        let FromGuard::StartFailed { holding: told, exit_code, message } = guard.expect() else {
            panic!("{command} was started");
        };
        assert_eq!((told, exit_code), (holding(1), code));
        assert!(message.contains(command) && message.contains(text), "{message}");
        assert_eq!(container.exit_code(), i32::from(code));
        assert!(pod.termination_message().contains(&message));
    }
}

#[test]
fn signals_are_passed_on_and_termination_is_told() {
    let pod = Pod::new();
    let sidecar = pod.sidecar();
    let script = "trap 'echo hup >> $DIR/got' HUP; trap 'echo usr1 >> $DIR/got' USR1; \
                  trap 'echo term >> $DIR/got; exit 9' TERM; echo up > $DIR/up; while :; do sleep 0.05; done";
    let mut container = pod.run_script(script);
    let mut guard = sidecar.start(&holding(1), Instants::far());
    pod.read("up");
    container.signal(Signal::HUP);
    eventually("a hangup", || (pod.read("got") == "hup\n").then_some(()));
    container.signal(Signal::USR1);
    eventually("a signal", || (pod.read("got") == "hup\nusr1\n").then_some(()));
    container.signal(Signal::TERM);
    assert_eq!(guard.expect(), FromGuard::Terminating { holding: holding(1) });
    assert_eq!(guard.expect(), FromGuard::Ended { holding: holding(1), exit_code: 9 });
    assert_eq!(container.exit_code(), 9);
    assert_eq!(pod.read("got"), "hup\nusr1\nterm\n");
}

#[test]
fn a_waiting_guard_ends_at_once_on_sigterm() {
    let pod = Pod::new();
    let mut absent = pod.run_script("true");
    eventually("a guard that reads signals", || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", absent.guard_pid())).ok()?;
        status.lines().any(|line| line == "SigBlk:\tfffffffe7ffbfeff").then_some(())
    });
    absent.signal(Signal::TERM);
    assert_eq!(absent.exit_code(), 143, "with no sidecar in sight");

    let sidecar = pod.sidecar();
    let mut waiting = pod.run_script("true");
    sidecar.accept().welcome();
    waiting.signal(Signal::TERM);
    assert_eq!(waiting.exit_code(), 143, "with a sidecar that grants nothing");
}

#[test]
fn dismissal_ends_a_waiting_guard_with_code_and_message() {
    let pod = Pod::new();
    let sidecar = pod.sidecar();
    let mut container = pod.run_script("echo ran > $DIR/ran");
    let mut guard = sidecar.accept();
    guard.send(&ToGuard::Dismiss { exit_code: exit::LOST, message: "never again".to_owned() });
    assert_eq!(container.exit_code(), i32::from(exit::LOST));
    assert_eq!(pod.termination_message(), "never again\n");
    assert!(!pod.has("ran"));
}

#[test]
fn an_end_decides_the_exit_code_whatever_the_workload_says() {
    let cases = [
        (EndReason::Lost(LossReason::RenewalTimeout), Some(exit::LOST), "trap 'exit 0' TERM", 195),
        (EndReason::Planned(PlannedEnd::StepDown), Some(exit::PLANNED_END), "trap 'exit 0' TERM", 196),
        (
            EndReason::Planned(PlannedEnd::WorkloadEnded),
            Some(exit::OTHER_CONTAINER_ENDED),
            "trap 'exit 3' TERM",
            194,
        ),
        (EndReason::Planned(PlannedEnd::PodDeleted), None, "trap 'exit 7' TERM", 7),
        (EndReason::Planned(PlannedEnd::PodDeleted), None, ":", 143),
    ];
    for (reason, code, trap, expected) in cases {
        let pod = Pod::new();
        let sidecar = pod.sidecar();
        let script = format!("{trap}; echo up > $DIR/up; while :; do sleep 0.05; done");
        let mut container = pod.run_script(&script);
        let mut guard = sidecar.start(&holding(1), Instants::far());
        pod.read("up");
        let ten_seconds_on = fencedlease_sidecar::clock::now() + Duration::from_secs(10);
        guard.send(&end(&holding(1), reason, ten_seconds_on, code));
        assert_eq!(container.exit_code(), expected, "{reason}");
        assert_eq!(pod.termination_message(), "ended by the test\n");
    }
}

#[test]
fn a_workload_at_a_terminal_can_read_it() {
    let pod = Pod::new();
    let sidecar = pod.sidecar();
    let dir = pod.path().display();
    let guard = format!(
        "unshare --pid --fork --kill-child --mount-proc {dir}/fencedlease guard --container=app --dir={dir} \
         -- sh -c 'read line; echo got $line > {dir}/line'"
    );
    // `script` gives it a terminal of its own, whose other end is this pipe.
    let mut terminal = std::process::Command::new("script")
        .args(["-q", "-e", "-c", &guard, "/dev/null"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let _guard = sidecar.start(&holding(1), Instants::far());
    let mut keyboard = terminal.stdin.take().unwrap();
    std::io::Write::write_all(&mut keyboard, b"hello\n").unwrap();
    assert_eq!(pod.read("line"), "got hello\n");
    assert_eq!(terminal.wait().unwrap().code(), Some(0));
}
