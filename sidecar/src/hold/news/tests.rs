use std::time::Duration;

use futures::FutureExt as _;

use super::*;
use crate::hold::pod::State;
use crate::hold::socket::tests::{active, published};

fn waiting() -> Published {
    published(State::Waiting { holder: None, next_try: BootTime::from_millis(1), message: None })
}

#[tokio::test]
async fn who_asks_once_something_was_told_is_not_answered_with_what_was_before() {
    let (news, mut receiver) = news(waiting());
    let mut latest = receiver.latest();
    assert_eq!(*latest.get().await, waiting());
    news.view(published(active(0)));
    // It was told, and has not listened yet.
    assert!(latest.get().now_or_never().is_none());
    assert_eq!(*latest.last(), waiting());
    let answer = tokio::spawn(async move { latest.get().await });
    let Some(News::View(view)) = receiver.next().await else { panic!("no view") };
    receiver.publish(*view);
    assert_eq!(
        *tokio::time::timeout(Duration::from_secs(60), answer).await.unwrap().unwrap(),
        published(active(0))
    );
}

#[tokio::test]
async fn who_asks_a_receiver_that_is_gone_gets_its_last_view() {
    let (news, receiver) = news(waiting());
    let mut latest = receiver.latest();
    news.view(published(active(0)));
    drop(receiver);
    assert_eq!(*latest.get().await, waiting());
    assert!(latest.next().await.is_none());
}
