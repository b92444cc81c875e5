//! Containers that run one after another: what the next one waits for does not exist while the first one waits.

use super::*;

fn pod() -> Bench {
    Bench::new(&["set-up", "app"], |config| {
        config.standby_mode = StandbyMode::Cold;
        config.init_containers = 1;
    })
}

fn ended(bench: &mut Bench, connection: u64, exit_code: u8) {
    let holding = bench.holding_id();
    bench.say(connection, FromGuard::Started { holding: holding.clone() });
    bench.say(connection, FromGuard::Ended { holding, exit_code });
    bench.died(connection);
}

#[test]
fn an_init_container_that_failed_waits_alone_for_the_next_holding_and_hands_it_on() {
    let mut bench = pod();
    bench.acquired(41);
    bench.filed();
    bench.hello(1, "set-up");
    assert_eq!(bench.granted(), [1]);
    ended(&mut bench, 1, 3);
    assert_eq!(bench.releases(), [true]);
    bench.answer_release();
    bench.pass(Duration::from_mins(1));
    assert_eq!(bench.acquire_calls(), 1, "nothing is there that could use it");

    bench.hello(2, "set-up");
    assert_eq!(bench.acquire_calls(), 2, "nobody else is to be waited for");
    bench.acquired(42);
    bench.filed();
    assert_eq!(bench.granted(), [1, 2]);
    ended(&mut bench, 2, 0);
    assert_eq!(bench.releases(), [true], "the holding goes on");
    bench.hello(3, "app");
    assert_eq!(bench.granted(), [1, 2, 3]);
}

#[test]
fn once_they_have_ended_the_others_are_waited_for_as_in_any_pod() {
    let mut bench = pod();
    bench.acquired(41);
    bench.filed();
    bench.hello(1, "set-up");
    ended(&mut bench, 1, 0);
    bench.hello(2, "app");
    ended(&mut bench, 2, 1);
    assert_eq!(bench.releases(), [true]);
    bench.answer_release();
    bench.hello(3, "app");
    assert_eq!(bench.acquire_calls(), 2);
}

#[test]
fn an_init_container_that_went_away_before_its_turn_gives_the_lease_back() {
    let mut bench = pod();
    bench.acquired(41);
    bench.filed();
    bench.hello(1, "set-up");
    ended(&mut bench, 1, 3);
    bench.answer_release();
    bench.hello(2, "set-up");
    bench.died(2);
    bench.acquired(42);
    assert_eq!(bench.releases(), [true, true]);
    assert_eq!(bench.granted(), [1]);
}

#[test]
fn the_holding_of_a_job_ends_with_its_command_though_nobody_saw_its_init_container() {
    let mut bench = Bench::new(&["set-up", "app"], |config| {
        config.standby_mode = StandbyMode::Cold;
        config.init_containers = 1;
        config.restart_policy = RestartPolicy::OnFailure;
    });
    bench.acquired(41);
    bench.filed();
    bench.hello(1, "app");
    ended(&mut bench, 1, 0);
    assert_eq!(bench.releases(), [true]);
}

#[test]
fn where_only_an_init_container_is_guarded_its_success_ends_the_holding() {
    let mut bench = Bench::new(&["set-up"], |config| {
        config.standby_mode = StandbyMode::Cold;
        config.init_containers = 1;
    });
    bench.acquired(41);
    bench.filed();
    bench.hello(1, "set-up");
    ended(&mut bench, 1, 0);
    assert_eq!(bench.releases(), [true]);
    bench.answer_release();
    bench.pass(Duration::from_mins(1));
    assert_eq!(bench.acquire_calls(), 1, "nothing is left that could use it");
}
