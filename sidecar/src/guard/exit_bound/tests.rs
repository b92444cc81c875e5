use std::process::Command;

use super::*;

const IN_CHILD: &str = "FENCEDLEASE_TEST_HANGS";
const BOUND: Duration = Duration::from_millis(200);

/// Runs itself as the child that hangs.
#[test]
fn a_process_that_hangs_in_its_exit_is_gone_at_the_instant_and_with_the_code() {
    if std::env::var_os(IN_CHILD).is_some() {
        let bound = ExitBound::start().unwrap();
        bound.exit_by(clock::now() + BOUND, 195);
        pause(Duration::from_secs(30));
        sys::exit_now(1);
    }
    let own =
        "guard::exit_bound::tests::a_process_that_hangs_in_its_exit_is_gone_at_the_instant_and_with_the_code";
    let begun = clock::now();
    let ended = Command::new(std::env::current_exe().unwrap())
        .args([own, "--exact", "--nocapture"])
        .env(IN_CHILD, "1")
        .output()
        .unwrap();
    let took = clock::now().since(begun);
    assert_eq!(ended.status.code(), Some(195), "{ended:?}");
    assert!(took >= BOUND && took < Duration::from_secs(20), "{took:?}");
}
