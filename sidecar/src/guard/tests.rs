use std::io::Write as _;
use std::process::{Command, Stdio};

use rustix::pipe::{fcntl_getpipe_size, pipe};

use super::*;

const IN_CHILD: &str = "FENCEDLEASE_TEST_PANICS";

/// Runs itself as the child that panics: a hook is the whole process's.
#[test]
fn a_panic_ends_the_guard_at_once_though_its_standard_error_is_stuck() {
    if std::env::var_os(IN_CHILD).is_some() {
        end_at_panic();
        panic!("of the test");
    }
    let (_unread, full) = pipe().unwrap();
    let size = fcntl_getpipe_size(&full).unwrap();
    std::fs::File::from(full.try_clone().unwrap()).write_all(&vec![0; size]).unwrap();
    let own = "guard::tests::a_panic_ends_the_guard_at_once_though_its_standard_error_is_stuck";
    let ended = Command::new(std::env::current_exe().unwrap())
        .args([own, "--exact", "--nocapture"])
        .env(IN_CHILD, "1")
        .stdout(Stdio::null())
        .stderr(full)
        .status()
        .unwrap();
    assert_eq!(ended.code(), Some(exit::CANNOT_GUARD.into()));
}
