use super::*;

#[tokio::test]
async fn the_first_task_to_end_ends_all_and_is_named() {
    let mut tasks = Tasks::default();
    let mut stop = tasks.stop();
    let (told, heard) = tokio::sync::oneshot::channel();
    tasks.add("waits", async move {
        let _ = stop.wait_for(|stop| *stop).await;
        let _ = told.send(());
    });
    tasks.add("falls", async {});
    let error = tasks.run(|| async { unreachable!("nobody asked it to end") }).await.unwrap_err();
    assert_eq!(error.to_string(), "the task \"falls\" ended by itself");
    heard.await.unwrap();
}

#[tokio::test]
async fn a_task_that_panics_is_an_error() {
    let mut tasks = Tasks::default();
    tasks.add("panics", async { panic!("for the test") });
    assert!(matches!(tasks.run(|| async {}).await, Err(TaskError::Failed(_))));
}
