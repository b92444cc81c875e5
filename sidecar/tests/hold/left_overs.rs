//! Files of an earlier holding lie in the pod's volumes when its sidecar starts: they count as LOST, and nobody runs
//! under what they say.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;

use fencedlease_core::BootTime;
use fencedlease_faults::matrix::shown;
use fencedlease_sidecar::clock;
use serde_json::{Value, json};

use crate::support::eventually;
use crate::support::pod::Pod;
use crate::support::world::World;

const HOLDING: &str = "4d4d4d4d4d4d4d4d";
/// Tells what it was started under, each time that it is.
const TELLS: &str = "echo $FENCEDLEASE_FENCE >> $DIR/starts; exec sleep 1000";

/// A pod whose sidecar is not there, with an earlier holding's files in the shared volume.
fn without_sidecar(world: &World) -> Pod {
    let mut pod = Pod::start("one", world.redis.address(), |_| {});
    pod.kill_sidecar();
    fs::write(pod.path().join("fence"), "41\n").unwrap();
    fs::write(pod.path().join("lost"), "{\"reason\":\n").unwrap();
    pod
}

/// A note of fence 41 that nobody ended.
fn note(boot_id: &str) -> Vec<u8> {
    let guards = json!([{"container": "app", "secret": "of another life"}]);
    json!({"bootId": boot_id, "holding": HOLDING, "fence": 41, "guards": guards}).to_string().into_bytes()
}

/// The last confirmation, in both of its places.
fn confirmed(pod: &Pod, at: BootTime) {
    let page = File::options().write(true).open(pod.state_path().join("page")).unwrap();
    for place in [32, 40] {
        page.write_all_at(&at.as_millis().to_ne_bytes(), place).unwrap();
    }
}

/// Starts the sidecar, and answers the flag that it writes over the one that lay there.
fn lost_at_start(pod: &mut Pod) -> Value {
    pod.start_sidecar();
    assert!(!pod.has("fence"), "nobody holds it");
    let flag = eventually("a flag of the sidecar's own", || {
        serde_json::from_str::<Value>(&fs::read_to_string(pod.path().join("lost")).ok()?).ok()
    });
    assert_eq!(flag["reason"], "SidecarRestarted", "{flag}");
    assert_eq!((&flag["holding"], &flag["fence"]), (&HOLDING.into(), &41.into()), "{flag}");
    flag
}

#[test]
fn a_holding_of_another_boot_is_lost_and_the_next_fence_is_above_it() {
    let world = World::new();
    let mut pod = without_sidecar(&world);
    fs::write(pod.state_path().join("holding.json"), note("of another boot")).unwrap();
    // Instants of another boot mean nothing, however late they lie.
    confirmed(&pod, BootTime::from_millis(u64::MAX / 2));
    lost_at_start(&mut pod);
    let _container = pod.run("app", TELLS);
    assert_eq!(pod.until("ACTIVE")["fence"], 42);
    assert_eq!(pod.read("starts"), "42\n", "it ran once, and under the new fence");
    assert!(!pod.has("lost"));
    assert!(!pod.log().contains("may still be alive there"), "nobody of another boot is: {}", pod.log());
    shown(&[43], "a note, a fence and a flag of another boot: SidecarRestarted, then fence 42 after 41")
        .unwrap();
}

#[test]
fn a_holding_of_this_boot_is_lost_and_nobody_starts_before_its_guards_must_be_dead() {
    let world = World::new();
    let mut pod = without_sidecar(&world);
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    fs::write(pod.state_path().join("holding.json"), note(boot_id.trim())).unwrap();
    confirmed(&pod, clock::now());
    let flag = lost_at_start(&mut pod);
    let deadline = flag["deadlineBoottimeMs"].as_u64().unwrap();
    let _container = pod.run("app", TELLS);
    eventually("a guard that is sent away", || pod.log().contains("may still be alive there").then_some(()));
    let lease = pod.until("ACTIVE");
    let active_at = clock::now();
    assert!(active_at.as_millis() >= deadline, "ACTIVE at {active_at}, before the deadline {deadline}");
    assert_eq!(lease["fence"], 42);
    assert_eq!(pod.read("starts"), "42\n", "it ran once, and under the new fence");
    let after = active_at.as_millis() - deadline;
    shown(&[43], &format!("a note whose guard does not come back: ACTIVE {after} ms after its deadline"))
        .unwrap();
}

#[test]
fn what_was_planted_in_the_places_of_sockets_and_files_is_replaced_and_led_by_nowhere() {
    let world = World::new();
    let mut pod = without_sidecar(&world);
    let elsewhere = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join("somebody's");
    fs::write(&target, "not ours").unwrap();
    let mode = || fs::metadata(&target).unwrap().permissions().mode();
    let mode_before = mode();
    for name in ["lease.sock", "fence", "lost"] {
        let place = pod.path().join(name);
        let _ = fs::remove_file(&place);
        symlink(&target, place).unwrap();
    }
    let guards = pod.path().join("guard.sock");
    fs::remove_file(&guards).unwrap();
    let planted = UnixListener::bind(&guards).unwrap();
    planted.set_nonblocking(true).unwrap();

    pod.start_sidecar();
    let _container = pod.run("app", TELLS);
    let fence = pod.until("ACTIVE")["fence"].clone();
    assert_eq!(pod.read("fence"), format!("{fence}\n"));
    for name in ["lease.sock", "guard.sock", "fence"] {
        assert!(!pod.path().join(name).is_symlink(), "{name} is the sidecar's own");
    }
    assert_eq!(fs::read_to_string(&target).unwrap(), "not ours");
    assert_eq!(mode(), mode_before);
    assert_eq!(planted.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "no guard came there");
    let outcome =
        "links and a foreign socket are replaced; what they led to is untouched, and no guard connects there";
    shown(&[47], outcome).unwrap();
}

#[test]
fn files_that_nobody_can_read_count_as_none_and_no_fence_of_theirs_is_shown() {
    let world = World::new();
    let mut pod = without_sidecar(&world);
    fs::write(pod.state_path().join("holding.json"), &note("cut short")[..40]).unwrap();
    File::options()
        .write(true)
        .open(pod.state_path().join("page"))
        .unwrap()
        .write_all_at(&[0xff; 64], 0)
        .unwrap();
    pod.start_sidecar();
    assert!(!pod.has("fence"), "nobody holds it");
    let _container = pod.run("app", TELLS);
    assert_eq!(pod.until("ACTIVE")["fence"], 1);
    assert_eq!((pod.read("starts"), pod.read("fence")), ("1\n".to_owned(), "1\n".to_owned()));
    assert!(!pod.has("lost"));
}
