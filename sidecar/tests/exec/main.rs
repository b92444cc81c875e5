//! *exec* as cron, systemd and shells start it, with a real Redis. These tests make PID namespaces: run them as root.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_types,
    reason = "helpers of tests fail like tests, and measure waits of their own"
)]

use std::fs;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use fencedlease_faults::{RedisServer, SHORT_TIMINGS};

const PATIENCE: Duration = Duration::from_secs(60);

/// *exec* with this script, below a folder where it can write.
fn exec(redis: &str, options: &[&str], script: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencedlease"));
    command
        .args(["exec", "--lease", "shop/report", "--redis", redis, "--name", "host-a"])
        .args(SHORT_TIMINGS)
        .args(options)
        .args(["--", "/bin/sh", "-c", script])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn redis() -> (RedisServer, String) {
    let server = RedisServer::start().unwrap();
    let address = server.address().to_string();
    (server, address)
}

fn key(part: &str) -> String {
    format!("fencedlease:v1:{{exec/shop/report}}:{part}")
}

fn eventually(what: &str, mut there: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !there() {
        assert!(Instant::now() < until, "waited {PATIENCE:?} for {what}, in vain");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn ended(child: &mut Child) -> ExitStatus {
    let mut status = None;
    eventually("the end of exec", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap()
}

fn said(child: &mut Child) -> String {
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    text
}

/// A process that has written its number as the machine sees it. In a PID namespace it cannot know that by itself.
fn marked(mark: &str) -> Vec<u32> {
    let has_mark = |pid: &u32| {
        fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|bytes| bytes.split(|byte| *byte == 0).any(|word| word == mark.as_bytes()))
    };
    let numbers =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    numbers.filter(has_mark).collect()
}

#[test]
fn a_command_runs_with_its_fence_and_its_exit_code_comes_back() {
    let (server, address) = redis();
    let run = |script: &str| exec(&address, &[], script).output().unwrap();
    let first =
        run("echo fence $FENCEDLEASE_FENCE; cat $FENCEDLEASE_DIR/fence; echo $FENCEDLEASE_RESOURCE; exit 7");
    assert_eq!(first.status.code(), Some(7), "{first:?}");
    assert_eq!(String::from_utf8(first.stdout).unwrap(), "fence 1\n1\nshop/report\n");
    assert!(first.stderr.is_empty(), "cron would mail this: {}", String::from_utf8_lossy(&first.stderr));
    assert_eq!(server.cli(&["EXISTS", &key("lease")]).unwrap(), "0", "released");
    assert_eq!(server.cli(&["EXISTS", &key("clean")]).unwrap(), "1");
    let second = run("echo $FENCEDLEASE_FENCE");
    assert_eq!((second.status.code(), &second.stdout[..]), (Some(0), &b"2\n"[..]));
    assert_eq!(run("kill -9 $$").status.code(), Some(137));
    let missing = Command::new(env!("CARGO_BIN_EXE_fencedlease"))
        .args(["exec", "--lease", "shop/report", "--redis", &address, "--", "/does/not/exist"])
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(127), "{missing:?}");
    let said = String::from_utf8_lossy(&missing.stderr);
    assert!(said.contains("/does/not/exist") && said.contains("was not found"), "{said}");
}

#[test]
fn the_holder_has_the_machines_name_where_nobody_gave_one() {
    let (server, address) = redis();
    let run = Command::new(env!("CARGO_BIN_EXE_fencedlease"))
        .args(["exec", "--lease", "shop/report", "--redis", &address, "--", "/bin/true"])
        .env_remove("HOSTNAME")
        .output()
        .unwrap();
    assert!(run.status.success(), "{run:?}");
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let holder = server.cli(&["GET", &key("holder")]).unwrap();
    assert!(holder.contains(host.trim()), "{holder}");
}

#[test]
fn the_command_is_alone_in_a_pid_namespace_that_proc_shows() {
    let (_server, address) = redis();
    let output = exec(&address, &[], "cat /proc/1/comm; ls -d /proc/[0-9]* | wc -l").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("guard:active"), "{text}");
    let count: u32 = lines.next().unwrap().trim().parse().unwrap();
    assert!(count < 8, "{count} processes are seen");
}

#[test]
fn who_does_not_want_to_wait_is_told_who_holds_and_nothing_runs() {
    let (_server, address) = redis();
    let folder = tempfile::tempdir().unwrap();
    let (up, ran) = (folder.path().join("up"), folder.path().join("ran"));
    let mut holder = exec(&address, &[], &format!("touch {}; sleep 60", up.display())).spawn().unwrap();
    eventually("the holder's work", || up.exists());
    for wait in ["0s", "500ms"] {
        let script = format!("touch {}", ran.display());
        let refused = exec(&address, &["--wait", wait], &script).output().unwrap();
        let text = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(198), "{text}");
        assert!(text.contains("shop/report is held by host-a"), "{text}");
        assert!(!ran.exists());
    }
    // Who waits follows at once.
    let mut next = exec(&address, &["--wait", "20s"], &format!("touch {}", ran.display())).spawn().unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_child(&holder), rustix::process::Signal::TERM)
        .unwrap();
    assert_eq!(ended(&mut holder).code(), Some(143), "{}", said(&mut holder));
    assert_eq!(ended(&mut next).code(), Some(0), "{}", said(&mut next));
    assert!(ran.exists());
}

#[test]
fn without_redis_it_ends_with_a_code_of_its_own() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let output = exec(&port.to_string(), &["--wait", "1s"], "true").output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(199), "{text}");
    assert!(text.contains(&port.to_string()) && text.contains("Nothing was run"), "{text}");
}

#[test]
fn redis_is_spoken_to_over_tls_and_never_in_plain_text() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let signed = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    fs::write(file("ca.crt"), signed.cert.pem()).unwrap();
    fs::write(file("server.key"), signed.signing_key.serialize_pem()).unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let _server = RedisServer::with_args(&[
        "--tls-port",
        &port.to_string(),
        "--tls-cert-file",
        &file("ca.crt"),
        "--tls-key-file",
        &file("server.key"),
        "--tls-ca-cert-file",
        &file("ca.crt"),
        "--tls-auth-clients",
        "no",
    ])
    .unwrap();
    let address = format!("127.0.0.1:{port}");
    let run =
        |options: &[&str]| exec(&address, &[&["--wait", "5s"], options].concat(), "true").output().unwrap();
    let trusted = run(&["--redis-tls-dir", &folder.path().display().to_string()]);
    assert_eq!(trusted.status.code(), Some(0), "{trusted:?}");
    for options in [&[][..], &["--redis-tls"]] {
        let refused = run(options);
        assert_eq!(refused.status.code(), Some(199), "{refused:?}");
    }
    let empty = tempfile::tempdir().unwrap();
    let mistaken = run(&["--redis-tls-dir", &empty.path().display().to_string()]);
    let text = String::from_utf8(mistaken.stderr).unwrap();
    assert_eq!(mistaken.status.code(), Some(125), "{text}");
    assert!(text.contains("ca.crt"), "{text}");
}

#[test]
fn a_bad_option_is_named_with_what_is_accepted() {
    for (options, word) in
        [(["--ttl", "soon"], "--ttl"), (["--ttl", "1s"], "ttl"), (["--wait", "1x"], "--wait")]
    {
        let output = Command::new(env!("CARGO_BIN_EXE_fencedlease"))
            .args(["exec", "--lease", "shop/report", "--redis", "127.0.0.1:1"])
            .args(options)
            .args(["--", "true"])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(125), "{text}");
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn a_lost_lease_ends_every_process_with_the_code_that_was_asked_for() {
    let (server, address) = redis();
    let folder = tempfile::tempdir().unwrap();
    let up = folder.path().join("up");
    let mark = format!("EXEC_TEST_MARK={}", up.display());
    // Ignores SIGTERM, and has a grandchild that has left session and parent.
    let script = format!(
        "trap '' TERM; (setsid sh -c 'trap \"\" TERM; while :; do sleep 0.1; done' &); touch {}; while :; do sleep 0.1; done",
        up.display()
    );
    let mut child =
        exec(&address, &["--lost-exit-code", "75"], &script).env("EXEC_TEST_MARK", &up).spawn().unwrap();
    eventually("the work", || up.exists());
    assert!(marked(&mark).len() >= 5, "exec, hold, guard and two shells at least");
    server.cli(&["DEL", &key("lease")]).unwrap();
    assert_eq!(ended(&mut child).code(), Some(75));
    eventually("nothing left", || marked(&mark).is_empty());
}

#[test]
fn a_signal_goes_to_the_command_and_the_lease_is_released_after_it() {
    let (server, address) = redis();
    let folder = tempfile::tempdir().unwrap();
    let up = folder.path().join("up");
    let script =
        format!("trap 'sleep 0.3; exit 9' TERM; touch {}; while :; do sleep 0.05; done", up.display());
    let mut child = exec(&address, &[], &script).spawn().unwrap();
    eventually("the work", || up.exists());
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM)
        .unwrap();
    assert_eq!(ended(&mut child).code(), Some(9), "{}", said(&mut child));
    assert_eq!(server.cli(&["EXISTS", &key("lease")]).unwrap(), "0");
}

#[test]
fn killed_itself_it_leaves_nothing_running_and_the_lease_is_released() {
    let (server, address) = redis();
    let folder = tempfile::tempdir().unwrap();
    let up = folder.path().join("up");
    let mark = format!("EXEC_TEST_MARK={}", up.display());
    let script = format!("touch {}; while :; do sleep 0.1; done", up.display());
    let run_folders = tempfile::tempdir().unwrap();
    let in_them = |script: &str| {
        let mut command = exec(&address, &["--wait", "20s"], script);
        command.env("EXEC_TEST_MARK", &up).env("XDG_RUNTIME_DIR", run_folders.path());
        command
    };
    let count = || fs::read_dir(run_folders.path()).unwrap().count();
    let mut child = in_them(&script).spawn().unwrap();
    eventually("the work", || up.exists());
    // Who waits meanwhile removes nothing that is in use.
    let mut waits = in_them("exit 7").spawn().unwrap();
    eventually("the second one's folder", || count() == 2);
    assert!(waits.try_wait().unwrap().is_none());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(ended(&mut waits).code(), Some(7), "{}", said(&mut waits));
    eventually("nothing left", || marked(&mark).is_empty());
    assert_eq!(server.cli(&["EXISTS", &key("lease")]).unwrap(), "0", "released, not run out");
    assert_eq!(count(), 1, "the folder of the one that was killed");
    assert!(in_them("exit 0").status().unwrap().success());
    assert_eq!(count(), 0, "the next one removes it");
}

#[test]
fn a_killed_hold_is_the_end_of_the_work_before_its_deadline() {
    let (server, address) = redis();
    let folder = tempfile::tempdir().unwrap();
    let up = folder.path().join("up");
    let mark = format!("EXEC_TEST_MARK={}", up.display());
    let script = format!("trap '' TERM; touch {}; while :; do sleep 0.1; done", up.display());
    let mut child = exec(&address, &[], &script).env("EXEC_TEST_MARK", &up).spawn().unwrap();
    eventually("the work", || up.exists());
    let holds = |pid: &&u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == b"exec-hold")
    };
    let hold = *marked(&mark).iter().find(holds).unwrap();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(hold.cast_signed()).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    assert_eq!(ended(&mut child).code(), Some(195), "{}", said(&mut child));
    assert!(marked(&mark).is_empty());
    let left: i64 = server.cli(&["PTTL", &key("lease")]).unwrap().parse().unwrap();
    assert!(left > 0, "the lease was to outlast the work; PTTL {left}");
}

#[test]
fn another_user_is_told_what_to_do_and_can_use_a_user_namespace() {
    let (_server, address) = redis();
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("fencedlease");
    // By another process: a file that this one has open for writing, also in a fork of another test, cannot be run.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_fencedlease")).arg(&program).status().unwrap();
    assert!(copied.success());
    open_to_all(folder.path());
    let run = |options: &[&str]| {
        Command::new(&program)
            .args(["exec", "--lease", "shop/report", "--redis", &address])
            .args(SHORT_TIMINGS)
            .args(options)
            .args(["--", "/bin/sh", "-c", "echo $FENCEDLEASE_FENCE; id -u"])
            .env("TMPDIR", folder.path())
            .uid(65534)
            .gid(65534)
            .output()
            .unwrap()
    };
    let refused = run(&[]);
    let text = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(197), "{text}");
    assert!(text.contains("--user-namespace"), "{text}");
    let allowed = run(&["--user-namespace"]);
    let text = String::from_utf8_lossy(&allowed.stderr);
    assert_eq!(String::from_utf8_lossy(&allowed.stdout), "1\n65534\n", "{text}");
}

fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
}
