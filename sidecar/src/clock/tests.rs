use super::*;

fn reading(boot_before: u64, monotonic: u64, boot_after: u64) -> ClockReading {
    let ms = Duration::from_millis;
    ClockReading { boot_before: ms(boot_before), monotonic: ms(monotonic), boot_after: ms(boot_after) }
}

#[test]
fn a_preempted_reading_is_no_suspend() {
    let mut watch = SuspendWatch::new(reading(1000, 900, 1000));
    assert_eq!(watch.observe(reading(2000, 1900, 2184)), None);
    assert_eq!(watch.observe(reading(2900, 2984, 3084)), None);
}

#[test]
fn boottime_that_gains_on_monotonic_is_a_suspend_of_that_length() {
    let mut watch = SuspendWatch::new(reading(1000, 900, 1001));
    assert_eq!(watch.observe(reading(9000, 1899, 9001)), Some(Duration::from_secs(7)));
    assert_eq!(watch.observe(reading(9010, 1909, 9011)), None, "it is told once");
}

#[test]
fn a_wide_reading_does_not_blind_the_watch() {
    let mut watch = SuspendWatch::new(reading(1000, 900, 1001));
    assert_eq!(watch.observe(reading(2000, 1900, 2500)), None);
    assert_eq!(watch.observe(reading(3050, 2900, 3051)), Some(Duration::from_millis(49)));
}

#[test]
fn this_machine_did_not_sleep_between_two_readings() {
    let mut watch = SuspendWatch::new(ClockReading::take());
    assert_eq!(watch.observe(ClockReading::take()), None);
}

#[test]
fn a_timer_is_readable_at_its_instant_and_not_before() {
    use rustix::event::{PollFd, PollFlags, poll};
    let timer = BootTimer::new().unwrap();
    let readable = |timeout_ms: i64| {
        let timeout = Timespec { tv_sec: 0, tv_nsec: timeout_ms * 1_000_000 };
        poll(&mut [PollFd::new(&timer, PollFlags::IN)], Some(&timeout)).unwrap() == 1
    };
    let at = now() + Duration::from_millis(30);
    timer.set(Some(at)).unwrap();
    while !readable(100) {}
    assert!(now() >= at);
    timer.set(None).unwrap();
    assert!(!readable(0));
    timer.set(Some(BootTime::default())).unwrap();
    assert!(readable(0), "an instant in the past is readable at once");
}
