//! Two holders that race for one lease never have it at once, and their fences only grow.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper of tests fails as tests do"
)]

mod support;

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use fencedlease_faults::RedisServer;
use fencedlease_redis::{Acquire, AcquireReply, Client, ReleaseReply};
use fencedlease_wire::Fence;
use support::{PATIENCE, acquire, client};

const ACQUISITIONS: usize = 1_000;

/// What both racers write to: the guarded resource.
#[derive(Default)]
struct Course {
    holder: Option<usize>,
    fences: Vec<Fence>,
    wins: [usize; 2],
    met: usize,
}

/// Acquires, holds for a moment and ends, until the course has seen enough. How a holding ends is told by its
/// number.
fn race(server: &RedisServer, course: &Mutex<Course>, racer: usize, ends: fn(usize) -> bool) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut client: Client = client(server);
        while course.lock().unwrap().fences.len() < ACQUISITIONS {
            let acquire = Acquire { ttl: Duration::from_secs(30), ..acquire(&format!("racer-{racer}")) };
            match client.acquire(&acquire, PATIENCE).await.unwrap() {
                AcquireReply::Held { .. } => course.lock().unwrap().met += 1,
                AcquireReply::Acquired { fence, .. } => {
                    let number = {
                        let mut course = course.lock().unwrap();
                        assert_eq!(course.holder, None, "two at once at fence {fence}");
                        course.holder = Some(racer);
                        course.fences.push(fence);
                        course.wins[racer] += 1;
                        course.fences.len()
                    };
                    // The other one finds it held.
                    tokio::time::sleep(Duration::from_micros(300)).await;
                    assert_eq!(course.lock().unwrap().holder.take(), Some(racer));
                    let release = fencedlease_redis::Release { token: acquire.token, clean: ends(number) };
                    let reply = client.release(&release, PATIENCE).await.unwrap();
                    assert!(matches!(reply, ReleaseReply::Released { .. }), "{reply:?}");
                }
            }
        }
    });
}

#[test]
fn a_thousand_acquisitions_by_two_are_never_two_at_once_and_strictly_up() {
    let server = RedisServer::start().unwrap();
    let course = Mutex::new(Course::default());
    thread::scope(|threads| {
        for racer in 0..2 {
            let (server, course) = (&server, &course);
            threads.spawn(move || race(server, course, racer, |number| number.is_multiple_of(2)));
        }
    });
    let course = course.into_inner().unwrap();
    assert!(course.fences.len() >= ACQUISITIONS);
    assert!(course.fences.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", course.fences);
    assert!(course.wins.iter().all(|wins| *wins > 0), "nobody raced: {:?}", course.wins);
    assert!(course.met > 0, "they never met");
    println!("acquired {:?} times, met {} times", course.wins, course.met);
}
