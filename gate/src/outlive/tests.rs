use tokio::sync::oneshot;

use super::*;

#[tokio::test]
async fn what_is_waited_for_ends_in_its_place() {
    assert_eq!(Outlive::new(async { 7 }).await, 7);
}

#[tokio::test]
async fn what_is_dropped_before_its_end_goes_on() {
    let (go, may_go) = oneshot::channel();
    let (tell, told) = oneshot::channel();
    let mut future = Outlive::new(async move {
        let word = may_go.await;
        let _ = tell.send(word);
    });
    let polled = std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut future).poll(cx))).await;
    assert!(polled.is_pending());
    drop(future);
    go.send("went on").unwrap();
    assert_eq!(told.await.unwrap(), Ok("went on"));
}
