//! Clients that are many, slow or broken delay no renewal and no kill; and what a sidecar costs at rest.

use std::fs;
use std::io::{BufRead as _, BufReader, IoSlice, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fencedlease_faults::matrix::shown;
use fencedlease_faults::{Clients, Fault};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::support::container::Container;
use crate::support::eventually;
use crate::support::pod::{Pod, command, pass, settings};
use crate::support::world::World;

const STUBBORN: &str = "trap '' TERM; echo up > $DIR/up; while :; do sleep 0.02; done";

/// The sum of all renewals that were sent more than 100 ms late.
fn late_renewals(pod: &Pod) -> f64 {
    let count = pod.metric("fencedlease_renewal_lateness_seconds_count");
    count - pod.metric("fencedlease_renewal_lateness_seconds_bucket{le=\"0.25\"}")
}

#[test]
fn idle_and_slow_clients_of_the_admin_port_keep_no_probe_out() {
    let world = World::new();
    let pod = Pod::start("one", world.redis.address(), |_| {});
    let _container = pod.run("app", "sleep 60");
    pod.until("ACTIVE");
    let mut clients = Vec::new();
    for number in 0..300 {
        let mut client = TcpStream::connect(pod.admin()).unwrap();
        let words: &[u8] = if number % 2 == 0 { b"" } else { b"GET /ready HTT" };
        client.write_all(words).unwrap();
        clients.push(client);
        if number % 50 == 0 {
            assert_eq!(pod.probe("/ready").status, 200, "after {number}");
        }
    }
    assert_eq!(pod.probe("/ready").status, 200);
    clients[0].set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    assert_eq!(clients[0].read(&mut [0; 1]).unwrap(), 0, "the oldest has made room");
}

#[test]
fn five_hundred_idle_slow_and_garbage_clients_delay_nothing() {
    let world = World::new();
    let proxy = world.proxy();
    let pod = Pod::start("one", proxy.address, |_| {});
    let mut container = pod.run("app", STUBBORN);
    pod.until("ACTIVE");
    let mut clients: Vec<UnixStream> = Vec::new();
    for number in 0..500 {
        let Ok(mut client) = UnixStream::connect(pod.path().join("lease.sock")) else { continue };
        let words: &[u8] = match number % 5 {
            0 => b"",
            1 => b"GET /v1/lease HTT",
            2 => b"POST /v1/commit-check HTTP/1.1\r\nhost: x\r\ncontent-length: 4000\r\n\r\n{",
            3 => &[0xff; 8192],
            _ => b"GET /v1/events HTTP/1.1\r\nhost: x\r\n\r\n",
        };
        // One that was turned away already cannot be written to.
        let _ = client.write_all(words);
        client.set_nonblocking(true).unwrap();
        clients.push(client);
    }
    let before = pod.metric("fencedlease_renewals_total{result=\"confirmed\"}");
    pass(Duration::from_secs(3));
    let renewals = pod.metric("fencedlease_renewals_total{result=\"confirmed\"}") - before;
    let turned_away = clients.iter_mut().filter(|client| {
        let mut answer = [0; 12];
        let mut client: &UnixStream = client;
        client.read(&mut answer).is_ok() && answer.starts_with(b"HTTP/1.1 503")
    });
    let turned_away = turned_away.count();
    println!("{} clients, {turned_away} turned away, {renewals} renewals in 3 s", clients.len());
    assert!(turned_away >= 32, "only {turned_away} were told that there are too many");
    assert!(clients.len() > 400, "it was a crowd");
    assert!(renewals >= 6.0, "{renewals} renewals in 3 s, every 400 ms one is due");
    assert!(late_renewals(&pod) < 1.0, "a renewal was late");
    assert!(pod.has("fence") && container.is_running());
    proxy.handle.set(Clients::All, Fault::Cut);
    let flag = pod.lost();
    let at = container.dead();
    assert!(at.as_millis() < flag["deadlineBoottimeMs"].as_u64().unwrap(), "dead after the deadline");
    let crowd = clients.len();
    shown(
        &[46],
        &format!(
            "{crowd} idle, slow and broken clients of the socket: {renewals} renewals in 3 s, none late"
        ),
    )
    .unwrap();
    drop(clients);
    eventually("an answer for an honest client", || {
        pod.ask("GET", "/v1/lease", "").ok().filter(|a| a.status == 200)
    });
}

#[test]
fn a_flood_on_the_guards_socket_delays_nothing() {
    let world = World::new();
    let pod = Pod::start("one", world.redis.address(), |_| {});
    let mut container = pod.run("app", STUBBORN);
    pod.until("ACTIVE");
    let socket = pod.path().join("guard.sock");
    let stop = std::sync::atomic::AtomicBool::new(false);
    let count = std::thread::scope(|scope| {
        let flood = || {
            let mut bytes = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let Ok(mut client) = UnixStream::connect(&socket) else { continue };
                let hello = b"{\"type\":\"hello\",\"container\":\"app\"}\n".repeat(200);
                while client.write_all(&hello).is_ok() {
                    bytes += hello.len();
                }
            }
            bytes
        };
        let flooding = scope.spawn(flood);
        let idle: Vec<_> = (0..200).filter_map(|_| UnixStream::connect(&socket).ok()).collect();
        pass(Duration::from_secs(3));
        assert!(idle.len() > 50, "there was a crowd");
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        flooding.join().unwrap()
    });
    println!("{count} bytes of flood");
    assert!(count > 100_000, "it was a flood");
    assert_eq!(pod.lease()["state"], "ACTIVE");
    assert!(late_renewals(&pod) < 1.0, "a renewal was late");
    assert!(container.is_running());
    shown(&[46], &format!("{} KiB on the guards' socket in 3 s: no renewal late", count / 1024)).unwrap();
    container.signal(rustix::process::Signal::TERM);
    pass(Duration::from_millis(100));
    assert!(pod.has("fence"), "its guard is still heard: the end has begun, and the lease is renewed");
}

/// Says hello as container app with this descriptor as proof; gives the first line of the answer, if there is one.
fn hello_with(socket: &Path, proof: BorrowedFd<'_>) -> Option<String> {
    let client = UnixStream::connect(socket).unwrap();
    let fds = [proof];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
    let line = b"{\"type\":\"hello\",\"container\":\"app\"}\n";
    sendmsg(&client, &[IoSlice::new(line)], &mut control, SendFlags::NOSIGNAL).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut answer = String::new();
    BufReader::new(client).read_line(&mut answer).ok().filter(|length| *length > 0).map(|_| answer)
}

#[test]
fn only_the_pidfd_of_the_process_that_speaks_is_a_proof() {
    let world = World::new();
    let pod = Pod::start("one", world.redis.address(), |_| {});
    let socket = pod.path().join("guard.sock");
    let mut other = Command::new("sleep").arg("1000").spawn().unwrap();
    let others = pidfd_open(Pid::from_child(&other), PidfdFlags::empty()).unwrap();
    let file = fs::File::open("/dev/null").unwrap();
    assert_eq!(hello_with(&socket, others.as_fd()), None, "another process's");
    assert_eq!(hello_with(&socket, file.as_fd()), None, "no pidfd at all");
    assert!(!world.has_lease(), "nobody was taken for a guard");
    let own = pidfd_open(rustix::process::getpid(), PidfdFlags::empty()).unwrap();
    let answer = hello_with(&socket, own.as_fd()).unwrap();
    assert!(answer.contains("\"type\":\"welcome\""), "{answer}");
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn a_sidecar_may_have_as_many_descriptors_as_it_is_allowed_at_all() {
    let (dir, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for volume in [dir.path(), state.path()] {
        fs::set_permissions(volume, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut settings = settings(([127, 0, 0, 1], 1).into());
    settings["adminPort"] = port.into();
    let hold = command(dir.path(), state.path(), &settings, "one");
    let mut sidecar = Command::new("prlimit")
        .arg("--nofile=200:4096")
        .arg(hold.get_program())
        .args(hold.get_args())
        .env("FENCEDLEASE_SETTINGS", settings.to_string())
        .spawn()
        .unwrap();
    eventually("a lease.sock", || dir.path().join("lease.sock").exists().then_some(()));
    let limits = fs::read_to_string(format!("/proc/{}/limits", sidecar.id())).unwrap();
    sidecar.kill().unwrap();
    sidecar.wait().unwrap();
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    assert_eq!(files.split_whitespace().skip(3).take(2).collect::<Vec<_>>(), ["4096", "4096"]);
}

/// The proportional set size in KiB.
fn pss(pid: Pid) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/smaps_rollup", pid.as_raw_nonzero())).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn a_sidecar_at_rest_is_small() {
    let world = World::new();
    let pod = Pod::start("one", world.redis.address(), |settings| settings["logLevel"] = "info".into());
    let _container: Container = pod.run("app", "exec sleep 1000");
    pod.until("ACTIVE");
    pod.probe("/metrics");
    pass(Duration::from_secs(2));
    let sidecar = pss(pod.sidecar_pid());
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    println!("the sidecar at rest, {build} build: PSS {sidecar} KiB");
    // A debug build has far more code to touch; it is measured so that a leak shows there as well.
    let limit = if cfg!(debug_assertions) { 40 * 1024 } else { 8 * 1024 };
    assert!(sidecar <= limit, "{sidecar} KiB, at most {limit} KiB");
}
