//! How the operator ends when it is told to. A process of its own, since a signal is for all of a process.

use std::process::Command;

use fencedlease_operator::tasks::Tasks;

#[tokio::test]
async fn a_signal_lets_go_first_and_then_ends_in_order() {
    let mut tasks = Tasks::default();
    let mut stop = tasks.stop();
    let seen = tasks.stop();
    tasks.add("waits", async move {
        let _ = stop.wait_for(|stop| *stop).await;
    });
    let pid = std::process::id().to_string();
    let (left, was_left) = tokio::sync::oneshot::channel();
    let run = tokio::spawn(tasks.run(move || async move {
        left.send(*seen.borrow()).unwrap();
    }));
    // The handler is there once the first poll of `run` is over, which a yield sees to on this runtime.
    tokio::task::yield_now().await;
    let sent = Command::new("kill").args(["-TERM", &pid]).status().unwrap();
    assert!(sent.success());
    assert!(!was_left.await.unwrap(), "tasks run on while the operator takes its leave");
    run.await.unwrap().unwrap();
}
