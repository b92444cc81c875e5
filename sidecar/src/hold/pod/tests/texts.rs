//! What people are told, and that nobody can make it too much.

use fencedlease_wire::guard::MAX_LINE_BYTES;

use super::*;

fn line(message: &ToGuard) -> usize {
    serde_json::to_vec(message).unwrap().len() + 1
}

#[test]
fn the_word_of_an_end_fits_into_a_line_whatever_the_reason_says() {
    let mut bench = Bench::holding(&["a"]);
    bench.pass(Duration::from_secs(5));
    bench.fail_saying(LossReason::RenewalError, &"\u{1}".repeat(10_000));
    let told = bench.last_told(1);
    assert!(matches!(told, ToGuard::End { .. }), "{told:?}");
    assert!(line(&told) <= MAX_LINE_BYTES, "a guard cuts a line of {} bytes", line(&told));
}

#[test]
fn the_dismissal_of_an_unknown_container_fits_into_a_line_whatever_its_name_is() {
    let mut bench = Bench::new(&["a"], |_| {});
    bench.hello(7, &"\u{1}".repeat(3000));
    let told = bench.last_told(7);
    assert!(matches!(told, ToGuard::Dismiss { .. }), "{told:?}");
    assert!(line(&told) <= MAX_LINE_BYTES, "a guard cuts a line of {} bytes", line(&told));
}

#[test]
fn a_flood_of_refused_hellos_is_told_at_most_once_a_minute() {
    let mut bench = Bench::holding(&["a"]);
    let refused = |bench: &Bench| {
        let told = |fact: &&Fact| matches!(fact, Fact::GuardRefused { .. });
        bench.facts.iter().filter(told).cloned().collect::<Vec<_>>()
    };
    for connection in 100..1100 {
        bench.hello(connection, if connection % 2 == 0 { "a" } else { "nobody" });
    }
    assert_eq!(refused(&bench).len(), 1);
    assert_eq!(bench.closed.len(), 1000, "each of them is turned away all the same");
    bench.pass_renewing(Duration::from_secs(61));
    bench.hello(2000, "a");
    let told = refused(&bench);
    assert_eq!(told.len(), 2);
    assert!(matches!(&told[1], Fact::GuardRefused { untold: 999, .. }), "{:?}", told[1]);
}

#[test]
fn a_loss_that_is_about_redis_names_its_address() {
    let told = |bench: &Bench| match bench.last_told(1) {
        ToGuard::End { message, .. } => message,
        other => panic!("no end: {other:?}"),
    };
    let mut silent = Bench::holding(&["a"]);
    silent.pass(Duration::from_secs(7));
    assert_eq!(silent.lost(), Some(LossReason::RenewalTimeout));
    let mut gone = Bench::holding(&["a"]);
    gone.pass(Duration::from_secs(5));
    gone.fail_saying(LossReason::KeyGone, "there is no lease in Redis");
    for bench in [&silent, &gone] {
        assert!(told(bench).contains("redis.shop:6379"), "{}", told(bench));
        let State::Lost { message, .. } = bench.pod.published().state else { panic!("not lost") };
        assert!(message.contains("redis.shop:6379"), "{message}");
    }
    let mut named = Bench::holding(&["a"]);
    named.pass(Duration::from_secs(5));
    named.fail_saying(LossReason::ConnectionClosed, "redis.shop:6379 closed the connection");
    assert_eq!(told(&named).matches("redis.shop:6379").count(), 1, "{}", told(&named));
    let mut late = Bench::holding(&["a"]);
    let planned = late.now;
    late.pass_silently(Duration::from_secs(1));
    late.feed(Event::Late { planned });
    assert!(!told(&late).contains("redis.shop"), "{}", told(&late));
}
