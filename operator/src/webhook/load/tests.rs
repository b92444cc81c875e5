use std::time::Duration;

use tokio::time::timeout;

use super::{Load, MOST_OBJECTS, TooHeavy, weight};

fn objects(count: usize) -> Vec<u8> {
    let one = "{}".to_owned();
    format!("[{}]", vec![one; count].join(",")).into_bytes()
}

#[test]
fn objects_weigh_and_so_do_bytes() {
    assert_eq!(weight(br#"{"a": {"b": 1}}"#), 2);
    assert_eq!(weight(&vec![b' '; 1280]), 10);
}

#[tokio::test]
async fn what_is_too_heavy_alone_is_told_so_at_once() {
    let load = Load::none();
    assert!(load.take(&objects(MOST_OBJECTS)).await.is_ok());
    let heavy = load.take(&objects(MOST_OBJECTS + 1)).await.map(|_| ());
    assert_eq!(heavy, Err(TooHeavy { objects: MOST_OBJECTS + 1 }));
}

#[tokio::test(start_paused = true)]
async fn what_is_too_heavy_together_waits() {
    let load = Load::none();
    let first = load.take(&objects(MOST_OBJECTS - 1)).await.unwrap();
    assert!(load.take(&objects(1)).await.is_ok());
    let second = objects(2);
    assert!(timeout(Duration::from_secs(1), load.take(&second)).await.is_err());
    drop(first);
    assert!(timeout(Duration::from_secs(1), load.take(&second)).await.is_ok());
}
