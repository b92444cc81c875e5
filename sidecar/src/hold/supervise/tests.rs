use super::*;

#[test]
fn the_leaders_end_counts_also_when_a_follower_is_faster() {
    let mut threads = Threads::new();
    let (leaving, left) = mpsc::channel::<()>();
    threads
        .start("follower", move || {
            let _ = left.recv();
            Ok(String::new())
        })
        .unwrap();
    threads
        .start("leader", move || {
            drop(leaving);
            thread::sleep(Duration::from_millis(50));
            Ok("done".to_owned())
        })
        .unwrap();
    let end = threads.decisive_end("leader");
    assert_eq!((end.thread, end.outcome), ("leader", Ok("done".to_owned())));
    threads.all_ended(Duration::from_secs(5));
}

#[test]
fn a_follower_that_ends_by_itself_is_a_failure() {
    let mut threads = Threads::new();
    threads.start("follower", || Ok(String::new())).unwrap();
    let end = threads.decisive_end("leader");
    assert_eq!((end.thread, end.outcome.is_err()), ("follower", true));
}

#[test]
fn a_panic_is_an_end_with_a_reason() {
    let mut threads = Threads::new();
    threads.start("leader", || panic!("on purpose")).unwrap();
    let reason = threads.decisive_end("leader").outcome.unwrap_err();
    assert!(reason.contains("panicked"), "{reason}");
}
