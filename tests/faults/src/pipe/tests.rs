use std::time::Duration;

use super::*;

const PASS: Treatment = Treatment::Forward(Duration::ZERO);
const DELAY: Treatment = Treatment::Forward(Duration::from_millis(100));

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn sent(text: &str, late: bool) -> Step {
    Step::Send { bytes: text.into(), late }
}

#[test]
fn bytes_pass_in_order_and_then_the_end() {
    let (mut pipe, now) = (Pipe::default(), Instant::now());
    pipe.push(now, b"a".to_vec());
    pipe.push(now, b"b".to_vec());
    pipe.push(now, Vec::new());
    assert!(!pipe.reads());
    assert_eq!(pipe.step(PASS, now), sent("a", false));
    assert_eq!(pipe.step(PASS, now), sent("b", false));
    assert_eq!(pipe.step(PASS, now), Step::Finish);
}

#[test]
fn delayed_bytes_go_out_at_their_own_instants() {
    let (mut pipe, start) = (Pipe::default(), Instant::now());
    pipe.push(start, b"a".to_vec());
    pipe.push(start + ms(30), b"b".to_vec());
    assert_eq!(pipe.step(DELAY, start + ms(99)), Step::Wait(Some(start + ms(100))));
    assert_eq!(pipe.step(DELAY, start + ms(100)), sent("a", true));
    assert_eq!(pipe.step(DELAY, start + ms(100)), Step::Wait(Some(start + ms(130))));
    assert_eq!(pipe.step(DELAY, start + ms(130)), sent("b", true));
}

#[test]
fn dripping_bytes_go_out_one_by_one_and_the_rest_at_once_when_it_ends() {
    const DRIP: Treatment = Treatment::Drip(Duration::from_millis(100));
    let (mut pipe, start) = (Pipe::default(), Instant::now());
    pipe.push(start, b"abcd".to_vec());
    pipe.push(start, Vec::new());
    assert_eq!(pipe.step(DRIP, start + ms(99)), Step::Wait(Some(start + ms(100))));
    assert_eq!(pipe.step(DRIP, start + ms(100)), sent("a", true));
    assert_eq!(pipe.step(DRIP, start + ms(150)), Step::Wait(Some(start + ms(200))));
    assert_eq!(pipe.step(DRIP, start + ms(200)), sent("b", true));
    assert_eq!(pipe.step(PASS, start + ms(201)), sent("cd", true));
    assert_eq!(pipe.step(DRIP, start + ms(201)), Step::Finish);
}

#[test]
fn held_bytes_are_released_in_order() {
    let (mut pipe, now) = (Pipe::default(), Instant::now());
    pipe.push(now, b"a".to_vec());
    assert_eq!(pipe.step(Treatment::Keep, now), Step::Wait(None));
    pipe.push(now, b"b".to_vec());
    assert_eq!(pipe.step(Treatment::Keep, now), Step::Wait(None));
    assert_eq!(pipe.step(PASS, now + ms(1)), sent("a", true));
    assert_eq!(pipe.step(PASS, now + ms(1)), sent("b", true));
    assert_eq!(pipe.step(PASS, now + ms(1)), Step::Wait(None));
}

#[test]
fn held_bytes_can_be_dropped_and_nothing_follows_them() {
    let (mut pipe, now) = (Pipe::default(), Instant::now());
    pipe.push(now, b"abc".to_vec());
    assert_eq!(pipe.step(Treatment::Keep, now), Step::Wait(None));
    assert_eq!(pipe.step(Treatment::Swallow, now), Step::Dropped(3));
    assert_eq!(pipe.step(Treatment::Swallow, now), Step::Wait(None));
    pipe.push(now, b"d".to_vec());
    assert_eq!(pipe.step(Treatment::Keep, now), Step::Wait(None));
    assert_eq!(pipe.step(PASS, now), Step::Reset);
}

#[test]
fn a_pipe_that_dropped_nothing_goes_on() {
    let (mut pipe, now) = (Pipe::default(), Instant::now());
    assert_eq!(pipe.step(Treatment::Swallow, now), Step::Wait(None));
    pipe.push(now, b"a".to_vec());
    assert_eq!(pipe.step(PASS, now), sent("a", false));
}

#[test]
fn a_full_pipe_stops_reading() {
    let (mut pipe, now) = (Pipe::default(), Instant::now());
    pipe.push(now, vec![0; MAX_KEPT]);
    assert!(!pipe.reads());
    assert_eq!(pipe.step(Treatment::Swallow, now), Step::Dropped(MAX_KEPT));
    assert!(pipe.reads());
}
