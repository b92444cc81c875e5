use super::*;

const TTL: Duration = Duration::from_secs(15);

fn at(milliseconds: u64) -> BootTime {
    BootTime::from_millis(milliseconds)
}

#[test]
fn a_standby_sleeps_until_the_expiry_it_was_told_and_a_little_longer() {
    let mut standby = Standby::new(TTL, at(0));
    standby.held(Some(Duration::from_secs(4)), at(1000), 0);
    assert_eq!(standby.next_try(), at(5000));
    standby.held(Some(Duration::from_secs(4)), at(1000), u64::MAX);
    assert!(standby.next_try() > at(6400) && standby.next_try() <= at(6500));
}

#[test]
fn a_release_wakes_within_ten_milliseconds_but_not_out_of_a_back_off() {
    let mut standby = Standby::new(TTL, at(0));
    standby.held(Some(TTL), at(0), 0);
    standby.released(at(100), u64::MAX / 2);
    assert!(standby.next_try() <= at(110));
    standby.failed(at(200), u64::MAX);
    let waiting = standby.next_try();
    standby.released(at(201), 0);
    assert_eq!(standby.next_try(), waiting);
}

#[test]
fn failures_back_off_up_to_five_seconds_and_success_forgets_them() {
    let mut standby = Standby::new(TTL, at(0));
    for _ in 0..40 {
        standby.failed(at(0), u64::MAX);
        assert!(standby.next_try() <= at(5000));
    }
    assert!(standby.next_try() >= at(4999));
    standby.held(None, at(0), 0);
    standby.failed(at(0), u64::MAX);
    assert!(standby.next_try() <= at(100));
}

#[test]
fn an_absurd_remaining_time_is_never_slept_through() {
    let mut standby = Standby::new(TTL, at(0));
    standby.held(Some(Duration::from_hours(24)), at(0), 0);
    assert_eq!(standby.next_try(), at(15_000));
}

#[test]
fn no_release_wakes_a_pod_that_has_to_leave_the_lease_to_others() {
    let mut standby = Standby::new(TTL, at(0));
    standby.not_before(at(5000));
    standby.released(at(100), 0);
    assert_eq!(standby.next_try(), at(5000));
    standby.held(Some(TTL), at(6000), 0);
    standby.released(at(7000), 0);
    assert_eq!(standby.next_try(), at(7000));
}
