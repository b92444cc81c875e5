//! The connection to the sidecar breaks, is abused, or is not there yet.

use std::time::Duration;

use fencedlease_core::timing::STALL;
use fencedlease_sidecar::clock;
use fencedlease_wire::guard::{FromGuard, MAX_LINE_BYTES, ToGuard};
use rustix::process::Signal;

use crate::support::container::{Namespace, Pod};
use crate::support::{Instants, holding};

fn soon() -> Instants {
    Instants::after(Duration::from_millis(800), Duration::from_millis(200))
}

const STUBBORN: &str = "trap '' TERM; echo up > $DIR/up; while :; do sleep 0.05; done";

#[test]
fn a_guard_waits_for_a_sidecar_that_is_not_there_yet() {
    let pod = Pod::new();
    let mut container = pod.run_script("echo ran > $DIR/ran");
    std::thread::sleep(Duration::from_millis(700));
    assert!(container.is_running() && !pod.has("ran"));
    pod.sidecar().start(&holding(1), Instants::far());
    pod.read("ran");
}

#[test]
fn a_guard_that_waits_comes_back_with_its_secret() {
    let pod = Pod::new();
    let sidecar = pod.sidecar();
    let _container = pod.run_script("true");
    let mut guard = sidecar.accept();
    guard.welcome();
    drop(guard);
    let mut guard = sidecar.accept();
    while !matches!(&guard.hello, FromGuard::Hello { secret: Some(_), .. }) {
        // It may have found the end before it read the welcome.
        guard.welcome();
        std::thread::sleep(Duration::from_millis(50));
        guard = sidecar.accept();
    }
    let hello = FromGuard::Hello {
        container: "app".to_owned(),
        secret: Some("s3cret".to_owned()),
        holding: None,
        acted: false,
    };
    assert_eq!(guard.hello, hello);
}

#[test]
fn a_guard_with_a_workload_comes_back_with_secret_and_holding_and_can_be_extended() {
    let pod = Pod::new();
    let instants = soon();
    let sidecar = pod.sidecar();
    let mut container = pod.run_script(STUBBORN);
    drop(sidecar.start(&holding(1), instants));
    drop(sidecar);
    let sidecar = pod.sidecar();
    let mut guard = sidecar.accept();
    let hello = |acted| FromGuard::Hello {
        container: "app".to_owned(),
        secret: Some("s3cret".to_owned()),
        holding: Some(holding(1)),
        acted,
    };
    assert_eq!(guard.hello, hello(false));
    let extended = Instants::after(Duration::from_millis(2500), Duration::from_millis(800));
    guard.send(&extended.extend(&holding(1)));
    assert!(guard.is_silent_for(instants.kill_at.since(clock::now()) + STALL));
    assert!(container.is_running());
    assert!(matches!(guard.expect(), FromGuard::Acted { .. }));
    drop(guard);
    let guard = sidecar.accept();
    assert_eq!(guard.hello, hello(true), "it says that it has acted");
    Namespace::of(guard.pidfd).dead_after_silence("reconnected guard", extended);
    assert_eq!(container.exit_code(), 195);
}

#[test]
fn a_new_sidecar_is_told_that_the_pod_is_being_deleted() {
    let pod = Pod::new();
    let sidecar = pod.sidecar();
    let container = pod.run_script(STUBBORN);
    let mut guard = sidecar.start(&holding(1), Instants::far());
    pod.read("up");
    container.signal(Signal::TERM);
    assert_eq!(guard.expect(), FromGuard::Terminating { holding: holding(1) });
    drop(guard);
    assert_eq!(sidecar.accept().expect(), FromGuard::Terminating { holding: holding(1) });
}

#[test]
fn what_is_no_message_closes_the_connection_and_nothing_else() {
    let long = vec![b' '; MAX_LINE_BYTES];
    let long_line = [b" ".repeat(MAX_LINE_BYTES - 2).as_slice(), b"{}\n"].concat();
    let cases: [&[u8]; 7] = [
        b"\n",
        b"hello\n",
        b"{\"type\":\"grant\"}\n",
        b"{\"type\":\"extend\",\"holding\":\"0101010101010101\",\"termAtMs\":-1,\"killAtMs\":1}\n",
        b"\xff\xfe\x00\n",
        &long,
        &long_line,
    ];
    let pod = Pod::new();
    let sidecar = pod.sidecar();
    let mut container = pod.run_script(STUBBORN);
    let mut guard = sidecar.start(&holding(1), Instants::far());
    for garbage in cases {
        guard.send_raw(garbage).unwrap();
        assert_eq!(guard.next(), None, "closed after {:?}", String::from_utf8_lossy(garbage));
        guard = sidecar.accept();
        assert!(matches!(guard.hello, FromGuard::Hello { acted: false, holding: Some(_), .. }));
    }
    assert!(container.is_running());
    guard.send(&ToGuard::Dismiss { exit_code: 3, message: "enough".to_owned() });
    assert_eq!(container.exit_code(), 3, "a good message is still understood");
    assert_eq!(container.log().matches("connection to the sidecar dropped").count(), 1, "told once");
}

#[test]
fn a_message_before_garbage_counts() {
    let pod = Pod::new();
    let sidecar = pod.sidecar();
    let _container = pod.run_script("echo ran > $DIR/ran; sleep 1000");
    let mut guard = sidecar.accept();
    let mut bytes = serde_json::to_vec(&Instants::far().grant(&holding(1), 42)).unwrap();
    bytes.extend_from_slice(b"\ngarbage\n");
    guard.send_raw(&bytes).unwrap();
    pod.read("ran");
    let FromGuard::Hello { holding: told, .. } = sidecar.accept().hello else { panic!("no hello") };
    assert_eq!(told, Some(holding(1)));
}

/// Writes the same line without a pause until the guard is gone.
fn flood(line: &ToGuard) {
    let pod = Pod::new();
    let sidecar = pod.sidecar();
    let mut container = pod.run_script(STUBBORN);
    let instants = soon();
    let mut guard = sidecar.start(&holding(1), instants);
    let namespace = Namespace::of(guard.pidfd.try_clone().unwrap());
    pod.read("up");
    let mut lines = serde_json::to_vec(line).unwrap();
    lines.push(b'\n');
    let lines = lines.repeat(1000);
    let flooding = std::thread::spawn(move || {
        let mut count = 0_u64;
        while clock::now() < instants.term_at {
            // It may have been closed because nobody reads the answers. Then the next one is flooded.
            if guard.send_raw(&lines).is_err() {
                guard = sidecar.accept();
            }
            count += 1000;
        }
        count
    });
    namespace.dead_after_silence("flood", instants);
    assert!(flooding.join().unwrap() > 1000, "it was a flood");
    assert_eq!(container.exit_code(), 195);
}

#[test]
fn a_flood_of_foreign_extensions_delays_no_kill() {
    flood(&Instants::far().extend(&holding(2)));
}

#[test]
fn a_flood_that_asks_for_answers_which_nobody_reads_delays_no_kill() {
    flood(&Instants::far().grant(&holding(2), 43));
}
