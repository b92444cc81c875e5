//! What of the user's runs beside the workload: probes, hooks and sessions. They enter the container as a kubelet's
//! do, as processes whose parent is outside.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fencedlease_faults::matrix::shown;
use fencedlease_wire::{EndReason, LossReason, PlannedEnd, exit};

use crate::support::container::{Container, Namespace, Pod};
use crate::support::{Instants, end, eventually, holding};

const PARTS: [&str; 5] = ["liveness-probe", "readiness-probe", "startup-probe", "post-start", "pre-stop"];

/// A command in the container's namespaces, as the kubelet or `kubectl exec` starts one.
fn enter(container: &Container) -> Command {
    let mut command = Command::new("nsenter");
    command.args(["--target", &container.guard_pid().to_string(), "--pid", "--mount", "--"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The container's probe or hook of this kind, as the webhook wraps it.
fn part(pod: &Pod, container: &Container, part: &str, script: &str) -> Command {
    let mut command = enter(container);
    command.arg(pod.path().join("fencedlease")).args(["while-active", "--as", part, "--"]);
    command.args(["sh", "-c", script]).env("DIR", pod.path());
    command
}

/// Exit code and what was printed.
fn outcome(command: &mut Command) -> (i32, String) {
    let output = command.output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

/// Waits until it has written this file, and so has begun.
fn begun(pod: &Pod, child: &mut Child, file: &str) {
    eventually("a command that runs beside the workload", || pod.has(file).then_some(()));
    assert!(child.try_wait().unwrap().is_none(), "it is to run on");
}

#[test]
fn before_the_grant_nothing_runs_and_a_hook_waits_for_it() {
    let pod = Pod::new();
    let sidecar = pod.sidecar();
    let container = pod.run_script("echo up > $DIR/up; exec sleep 1000");
    let mut guard = sidecar.accept();
    guard.welcome();
    let expected = [("liveness-probe", 0), ("readiness-probe", 1), ("startup-probe", 1), ("pre-stop", 0)];
    for (kind, code) in expected {
        let (found, printed) = outcome(&mut part(&pod, &container, kind, "echo > $DIR/ran"));
        assert_eq!(
            (found, printed.as_str()),
            (code, "not run: the container waits for the lease\n"),
            "{kind}"
        );
    }
    let script = "cat $DIR/up; echo > $DIR/hook; exit 3";
    let mut hook = part(&pod, &container, "post-start", script).spawn().unwrap();
    assert!(guard.is_silent_for(Duration::from_millis(300)));
    assert!(hook.try_wait().unwrap().is_none() && !pod.has("hook") && !pod.has("ran"));
    guard.send(&Instants::far().grant(&holding(1), 42));
    assert_eq!(hook.wait().unwrap().code(), Some(3));
    assert!(pod.has("hook"));
}

#[test]
fn under_the_grant_each_kind_runs_with_its_own_arguments_output_and_code() {
    let pod = Pod::new();
    let sidecar = pod.sidecar();
    let container = pod.run_script("exec sleep 1000");
    let _guard = sidecar.start(&holding(1), Instants::far());
    for kind in PARTS {
        for code in [0, 1, 7] {
            let script = format!("echo '{kind} $X'; exit {code}");
            assert_eq!(outcome(&mut part(&pod, &container, kind, &script)), (code, format!("{kind} $X\n")));
        }
    }
    let mut missing = enter(&container);
    missing.arg(pod.path().join("fencedlease"));
    missing.args(["while-active", "--as", "readiness-probe", "--", "/no/such/program"]);
    let (code, printed) = outcome(&mut missing);
    assert_eq!(code, i32::from(exit::NOT_FOUND), "{printed}");
    assert!(printed.contains("was not found"), "{printed}");
}

#[test]
fn while_the_workload_is_being_ended_nothing_begins() {
    let planned = EndReason::Planned(PlannedEnd::StepDown);
    for reason in [EndReason::Lost(LossReason::RenewalTimeout), planned] {
        let pod = Pod::new();
        let sidecar = pod.sidecar();
        let container =
            pod.run_script("trap 'echo > $DIR/term' TERM; echo > $DIR/up; while :; do sleep 0.05; done");
        let instants = Instants::far();
        let mut guard = sidecar.start(&holding(1), instants);
        pod.read("up");
        guard.send(&end(&holding(1), reason, instants.kill_at, Some(exit::LOST)));
        pod.read("term");
        let codes = PARTS.map(|kind| {
            let (code, printed) = outcome(&mut part(&pod, &container, kind, "echo > $DIR/ran"));
            assert_eq!(printed, "not run: the workload is being ended\n", "{kind}");
            code
        });
        assert_eq!(codes, [0, 1, 1, 1, 0], "{reason}");
        assert!(!pod.has("ran"));
    }
}

#[test]
fn what_runs_beside_the_workload_ends_with_it_at_a_loss() {
    let pod = Pod::new();
    let sidecar = pod.sidecar();
    let mut container = pod.run_script("trap '' TERM; while :; do sleep 0.05; done");
    let instants = Instants::after(Duration::from_secs(4), Duration::from_millis(500));
    let guard = sidecar.start(&holding(1), instants);
    let namespace = Namespace::of(guard.pidfd.try_clone().unwrap());
    let stays = |file: &str| {
        format!("trap '' TERM; (setsid sleep 1000 &) ; echo > $DIR/{file}; while :; do sleep 0.05; done")
    };
    let mut sessions = PARTS.map(|kind| (kind, part(&pod, &container, kind, &stays(kind)).spawn().unwrap()));
    let mut session = enter(&container);
    let mut session = session.args(["sh", "-c", &stays("session")]).env("DIR", pod.path()).spawn().unwrap();
    for (kind, child) in &mut sessions {
        begun(&pod, child, kind);
    }
    begun(&pod, &mut session, "session");
    // Nobody says anything: the guard acts by itself.
    let dead_at = namespace.dead_after_silence("beside the workload", instants);
    for (kind, child) in &mut sessions {
        assert!(!child.wait().unwrap().success(), "{kind}");
    }
    assert!(!session.wait().unwrap().success());
    assert_eq!(container.exit_code(), i32::from(exit::LOST));
    let before = instants.deadline().since(dead_at).as_millis();
    let told = format!(
        "an exec session, three probes and two hooks, all deaf to SIGTERM: none left {before} ms before the deadline"
    );
    shown(&[38], &told).unwrap();
}

#[test]
fn beside_a_first_process_that_is_no_guard_nothing_runs() {
    let pod = Pod::new();
    let mut unguarded = Command::new("unshare");
    unguarded.args(["--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c"]);
    let script = "for kind in liveness-probe readiness-probe startup-probe pre-stop; do $DIR/fencedlease while-active --as $kind -- true; echo $?; done";
    let (_, printed) = outcome(unguarded.arg(script).env("DIR", pod.path()));
    let codes: Vec<&str> = printed.lines().filter(|line| line.parse::<u8>().is_ok()).collect();
    assert_eq!(codes, ["197"; 4], "{printed}");
    assert!(printed.contains("the container's first process is no guard (sh)"), "{printed}");
}

#[test]
fn a_workload_that_takes_the_guards_name_is_not_the_guard() {
    let pod = Pod::new();
    let sidecar = pod.sidecar();
    // The kernel lets a process name itself and nobody else, not even as root.
    let script = "echo guard:active > /proc/$$/comm; echo guard:waiting > /proc/1/comm; cat /proc/1/comm > $DIR/name; exec sleep 1000";
    let _container = pod.run_script(script);
    let _guard = sidecar.start(&holding(1), Instants::far());
    assert_eq!(pod.read("name"), "guard:active\n");
}
