//! Where a guard cannot guard, and what it hides from its workload.

use fencedlease_wire::exit;
use fencedlease_wire::guard::{FromGuard, MAX_LINE_BYTES};

use crate::support::container::{Options, Pod};
use crate::support::{Instants, holding};

#[test]
fn a_guard_that_is_not_the_first_process_refuses() {
    let pod = Pod::new();
    let options = Options { own_namespace: false, ..Options::default() };
    let mut container = pod.run_with(options, &["/bin/sh", "-c", "echo ran > $DIR/ran"]);
    assert_eq!(container.exit_code(), i32::from(exit::CANNOT_GUARD));
    for text in [pod.termination_message(), container.log()] {
        assert!(text.contains("only as process 1") && text.contains("shareProcessNamespace"), "{text}");
    }
    assert!(!pod.has("ran"));
}

#[test]
fn a_guard_without_the_shared_volume_refuses() {
    let pod = Pod::new();
    let options = Options { shared_dir: Some("/nowhere-to-be-found"), ..Options::default() };
    let mut container = pod.run_with(options, &["true"]);
    assert_eq!(container.exit_code(), i32::from(exit::CANNOT_GUARD));
    let message = pod.termination_message();
    assert!(message.contains("/nowhere-to-be-found is not a folder"), "{message}");
}

/// Lets every pidfd_open below fail as on a kernel that has none: a filter, loaded by the number of prctl.
const WITHOUT_PIDFD: &str = r"
    my $prctl = (POSIX::uname())[4] eq q(x86_64) ? 157 : 167;
    my $filter = pack(q(SCCL)x4, 0x20,0,0,0, 0x15,0,1,434, 0x06,0,0,0x50026, 0x06,0,0,0x7fff0000);
    syscall($prctl, 22, 2, pack(q(S x6 P), 4, $filter)) == 0 or die $!;
    exec @ARGV or die $!";

#[test]
fn a_guard_on_a_kernel_without_pidfds_refuses_and_names_the_version() {
    let pod = Pod::new();
    let prepare = format!("set -- perl -MPOSIX -e '{WITHOUT_PIDFD}' \"$@\"");
    let options = Options { prepare: &prepare, ..Options::default() };
    let mut container = pod.run_with(options, &["/bin/sh", "-c", "echo ran > $DIR/ran"]);
    assert_eq!(container.exit_code(), i32::from(exit::CANNOT_GUARD));
    let message = pod.termination_message();
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert!(message.contains(release.trim()) && message.contains("5.3 or newer"), "{message}");
    assert!(!pod.has("ran"));
}

#[test]
fn arguments_that_are_wrong_are_settings_that_are_wrong() {
    for arguments in [&["guard"][..], &["guard", "--container=app"], &["guard", "--container=app", "--"], &[]]
    {
        let run =
            std::process::Command::new(env!("CARGO_BIN_EXE_fencedlease")).args(arguments).output().unwrap();
        assert_eq!(run.status.code(), Some(i32::from(exit::BAD_SETTINGS)), "{arguments:?}");
        assert!(!run.stderr.is_empty());
    }
}

#[test]
fn a_workload_of_the_same_user_cannot_look_into_the_guard() {
    let pod = Pod::new();
    let sidecar = pod.sidecar();
    let script = "for f in environ mem maps; do cat /proc/1/$f > /dev/null 2>> $DIR/refused && echo $f >> $DIR/read; done; \
                  cat /proc/self/environ > /dev/null && echo up > $DIR/up; sleep 1000";
    let options = Options { user: 1000, ..Options::default() };
    let _container = pod.run_with(options, &["/bin/sh", "-c", script]);
    let _guard = sidecar.start(&holding(1), Instants::far());
    pod.read("up");
    assert!(!pod.has("read"), "{}", pod.read("read"));
    assert_eq!(pod.read("refused").matches("Permission denied").count(), 3);
}

#[test]
fn a_guard_at_rest_is_small() {
    let pod = Pod::new();
    let sidecar = pod.sidecar();
    let container = pod.run_script("sleep 1000");
    let _guard = sidecar.start(&holding(1), Instants::far());
    let path = format!("/proc/{}/smaps_rollup", container.guard_pid());
    let rollup = std::fs::read_to_string(path).unwrap();
    let kib = |field: &str| -> u64 {
        let found =
            rollup.lines().find_map(|line| line.strip_prefix(field)?.split_whitespace().next()?.parse().ok());
        found.unwrap()
    };
    // The program's text is one copy for sidecar and guards; what counts is what each has for itself.
    println!("guard at rest: {} KiB of its own, PSS {} KiB", kib("Anonymous:"), kib("Pss:"));
    assert!(kib("Anonymous:") < 2048, "{rollup}");
}

#[test]
fn a_command_with_a_very_long_name_is_told_in_a_line_that_a_sidecar_takes() {
    let pod = Pod::new();
    let sidecar = pod.sidecar();
    let mut container = pod.run(&[&format!("/{}", "\u{1}".repeat(4000))]);
    let mut guard = sidecar.accept();
    guard.welcome();
    guard.send(&Instants::far().grant(&holding(1), 42));
    let failed = guard.expect();
    assert!(matches!(failed, FromGuard::StartFailed { exit_code: 126, .. }), "{failed:?}");
    assert!(serde_json::to_vec(&failed).unwrap().len() < MAX_LINE_BYTES);
    assert_eq!(container.exit_code(), 126);
}
