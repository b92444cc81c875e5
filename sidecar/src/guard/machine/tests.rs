use fencedlease_wire::{LossReason, PlannedEnd};
use proptest::prelude::*;

use super::*;

const TERM_MS: u64 = 10_000;
const KILL_MS: u64 = 12_500;

fn at(milliseconds: u64) -> BootTime {
    BootTime::from_millis(milliseconds)
}

fn holding(bits: u8) -> HoldingId {
    HoldingId::from_random([bits; 8])
}

fn grant(bits: u8, term_at_ms: u64, kill_at_ms: u64) -> ToGuard {
    let fence = Fence::new(42).unwrap();
    ToGuard::Grant {
        holding: holding(bits),
        fence,
        resource: "shop/ledger".to_owned(),
        term_at_ms,
        kill_at_ms,
    }
}

fn extend(bits: u8, term_at_ms: u64, kill_at_ms: u64) -> ToGuard {
    ToGuard::Extend { holding: holding(bits), term_at_ms, kill_at_ms }
}

fn end(reason: EndReason, kill_at_ms: u64, exit_code: Option<u8>) -> ToGuard {
    ToGuard::End { holding: holding(1), reason, kill_at_ms, exit_code, message: reason.to_string() }
}

fn actions(machine: &mut Machine) -> Vec<Action> {
    std::iter::from_fn(|| machine.poll_action()).collect()
}

/// Lets the machine look at the clock, as the driver does after a wake.
fn wake(machine: &mut Machine, now: u64) -> Vec<Action> {
    machine.woke(at(now));
    machine.settle(at(now));
    actions(machine)
}

/// Wakes it as often as it asks to, up to and including this instant.
fn run_until(machine: &mut Machine, until: u64) -> Vec<Action> {
    let mut done = Vec::new();
    while let Some(next) = machine.next_instant().filter(|next| *next <= at(until)) {
        let now = next.as_millis();
        done.extend(wake(machine, now));
        if machine.exiting {
            return done;
        }
    }
    done.extend(wake(machine, until));
    done
}

/// A machine that is connected, and whose workload runs since instant 0.
fn running() -> Machine {
    let mut machine = Machine::new("app".to_owned(), at(0));
    wake(&mut machine, 0);
    machine.connected();
    machine.message(at(0), ToGuard::Welcome { secret: "s".to_owned() });
    machine.message(at(0), grant(1, TERM_MS, KILL_MS));
    machine.started();
    wake(&mut machine, 0);
    machine
}

fn exit_of(actions: &[Action]) -> Option<&Exit> {
    actions.iter().find_map(|action| match action {
        Action::Exit(exit) => Some(exit),
        _ => None,
    })
}

fn acted(actions: &[Action]) -> bool {
    actions.iter().any(|action| matches!(action, Action::Send(FromGuard::Acted { .. })))
}

#[test]
fn it_connects_says_hello_and_waits_without_a_wake() {
    let mut machine = Machine::new("app".to_owned(), at(5));
    assert_eq!(wake(&mut machine, 5), [Action::Connect]);
    machine.connected();
    let hello = FromGuard::Hello { container: "app".to_owned(), secret: None, holding: None, acted: false };
    assert_eq!(actions(&mut machine), [Action::Send(hello)]);
    assert_eq!(machine.next_instant(), None, "a guard that waits for a grant sleeps");
}

#[test]
fn pauses_between_attempts_grow_to_a_bound() {
    let mut machine = Machine::new("app".to_owned(), at(0));
    let mut now = 0;
    let mut pauses = Vec::new();
    for _ in 0..6 {
        assert_eq!(wake(&mut machine, now), [Action::Connect]);
        machine.disconnected(at(now));
        let next = machine.next_instant().unwrap().as_millis();
        pauses.push(next - now);
        now = next;
    }
    assert_eq!(pauses, [20, 40, 80, 160, 250, 250]);
}

#[test]
fn a_grant_starts_the_workload_once() {
    let mut machine = Machine::new("app".to_owned(), at(0));
    machine.connected();
    actions(&mut machine);
    machine.message(at(0), grant(1, TERM_MS, KILL_MS));
    assert!(matches!(&actions(&mut machine)[..], [Action::Start(started)] if started.holding == holding(1)));
    machine.message(at(0), grant(2, TERM_MS, KILL_MS));
    machine.message(at(0), grant(1, TERM_MS, KILL_MS));
    let told = actions(&mut machine);
    assert_eq!(told.len(), 2);
    assert!(told.iter().all(|action| matches!(action, Action::Send(FromGuard::Acted { .. }))));
}

#[test]
fn a_grant_that_is_found_together_with_its_end_starts_nothing() {
    for reason in [EndReason::Lost(LossReason::OtherOwner), EndReason::Planned(PlannedEnd::StepDown)] {
        let mut machine = Machine::new("app".to_owned(), at(0));
        machine.connected();
        actions(&mut machine);
        machine.message(at(0), grant(1, TERM_MS, KILL_MS));
        machine.message(at(0), end(reason, KILL_MS, Some(exit::LOST)));
        machine.message(at(0), grant(2, TERM_MS, KILL_MS));
        let message = Some(reason.to_string());
        assert_eq!(actions(&mut machine), [Action::Exit(Exit { code: exit::LOST, message })]);
    }
}

#[test]
fn a_grant_at_its_term_instant_or_with_instants_in_the_wrong_order_starts_nothing() {
    for (now, term_at, kill_at) in [(TERM_MS, TERM_MS, KILL_MS), (0, TERM_MS, TERM_MS - 1)] {
        let mut machine = Machine::new("app".to_owned(), at(0));
        machine.connected();
        actions(&mut machine);
        machine.message(at(now), grant(1, term_at, kill_at));
        assert!(matches!(&actions(&mut machine)[..], [Action::Send(FromGuard::Acted { .. })]));
        assert!(machine.run.is_none());
    }
}

#[test]
fn silence_is_term_at_the_term_instant_and_kill_when_the_grace_is_over() {
    let mut machine = running();
    assert_eq!(run_until(&mut machine, TERM_MS - 1), []);
    let at_term = wake(&mut machine, TERM_MS);
    assert!(at_term.contains(&Action::Signal(SIGTERM)) && acted(&at_term));
    // gracePeriod is 2 s here: from term to kill, less a stall.
    assert_eq!(run_until(&mut machine, TERM_MS + 1999), []);
    let killed = wake(&mut machine, TERM_MS + 2000);
    let exit = exit_of(&killed).unwrap();
    assert_eq!(exit.code, exit::LOST);
    assert!(exit.message.as_ref().unwrap().contains("nothing was heard from the sidecar for 10s"));
}

#[test]
fn while_a_workload_runs_it_wakes_every_second() {
    let mut machine = running();
    assert_eq!(machine.next_instant(), Some(at(1000)));
    wake(&mut machine, 1000);
    assert_eq!(machine.next_instant(), Some(at(2000)));
}

#[test]
fn lateness_up_to_a_stall_is_none_and_above_it_a_loss() {
    let mut machine = running();
    assert_eq!(wake(&mut machine, 1500), []);
    // Planned for 2500.
    machine.woke(at(3001));
    let done = actions(&mut machine);
    assert!(done.contains(&Action::Signal(SIGTERM)) && acted(&done));
    machine.message(at(3001), extend(1, TERM_MS * 9, KILL_MS * 9));
    let exit = run_until(&mut machine, 5001);
    let message = exit_of(&exit).unwrap().message.clone().unwrap();
    assert!(message.contains("woke up 0.501s later than planned"), "{message}");
    assert_eq!(exit_of(&exit).unwrap().code, exit::LOST);
}

#[test]
fn lateness_past_the_kill_instant_is_a_kill_at_once() {
    let mut machine = running();
    let done = wake(&mut machine, KILL_MS);
    assert_eq!(exit_of(&done).unwrap().code, exit::LOST);
}

#[test]
fn an_extension_moves_each_instant_forward_and_never_back() {
    let mut machine = running();
    machine.message(at(0), extend(1, TERM_MS - 1, KILL_MS + 1));
    machine.message(at(0), extend(1, TERM_MS + 1, KILL_MS - 1));
    machine.message(at(0), extend(2, TERM_MS * 9, KILL_MS * 9));
    let run = machine.run.as_ref().unwrap();
    assert_eq!((run.term_at, run.kill_at), (at(TERM_MS + 1), at(KILL_MS + 1)));
}

#[test]
fn a_term_instant_told_beyond_the_kill_instant_postpones_no_kill() {
    let mut machine = running();
    machine.message(at(0), extend(1, KILL_MS * 9, 0));
    assert_eq!(run_until(&mut machine, KILL_MS - 1), []);
    assert_eq!(exit_of(&wake(&mut machine, KILL_MS)).unwrap().code, exit::LOST);
}

#[test]
fn an_end_is_sigterm_once_and_a_kill_at_the_earliest_instant_told() {
    let mut machine = running();
    let planned = EndReason::Planned(PlannedEnd::StepDown);
    machine.message(at(0), end(planned, 5000, Some(196)));
    machine.message(at(0), end(planned, 4000, Some(196)));
    machine.message(at(0), end(planned, 6000, Some(196)));
    assert_eq!(actions(&mut machine), [Action::Signal(SIGTERM)]);
    assert_eq!(run_until(&mut machine, 3999), []);
    assert_eq!(exit_of(&wake(&mut machine, 4000)).unwrap().code, 196);
}

#[test]
fn a_loss_outranks_a_plan_and_no_plan_outranks_a_loss() {
    let planned = EndReason::Planned(PlannedEnd::MaxHold);
    let lost = EndReason::Lost(LossReason::KeyGone);
    for order in [[planned, lost], [lost, planned]] {
        let mut machine = running();
        for reason in order {
            let code = if reason == lost { exit::LOST } else { exit::PLANNED_END };
            machine.message(at(0), end(reason, 3000, Some(code)));
        }
        machine.child_ended(0);
        let exit = Exit { code: exit::LOST, message: Some("KeyGone".to_owned()) };
        assert_eq!(exit_of(&actions(&mut machine)), Some(&exit), "{order:?}");
    }
}

#[test]
fn an_end_without_a_code_keeps_the_workloads_own() {
    let mut machine = running();
    machine.message(at(0), end(EndReason::Planned(PlannedEnd::PodDeleted), 3000, None));
    let mut killed = running();
    killed.message(at(0), end(EndReason::Planned(PlannedEnd::PodDeleted), 0, None));
    machine.child_ended(7);
    assert_eq!(exit_of(&actions(&mut machine)).unwrap().code, 7);
    assert_eq!(exit_of(&wake(&mut killed, 0)).unwrap().code, 137);
}

#[test]
fn every_signal_is_passed_on_and_only_sigterm_from_outside_is_told_once() {
    let mut machine = running();
    for (number, from_outside) in [(SIGINT, true), (SIGTERM, false), (SIGTERM, true), (SIGTERM, true)] {
        machine.signal(ReceivedSignal { number, from_outside });
    }
    let told = Action::Send(FromGuard::Terminating { holding: holding(1) });
    let expected = [
        Action::Signal(SIGINT),
        Action::Signal(SIGTERM),
        Action::Signal(SIGTERM),
        told,
        Action::Signal(SIGTERM),
    ];
    assert_eq!(actions(&mut machine), expected);
}

#[test]
fn signals_that_end_a_program_end_a_guard_that_waits() {
    for (number, code) in [(SIGTERM, 143), (SIGINT, 130), (SIGQUIT, 131)] {
        let mut machine = Machine::new("app".to_owned(), at(0));
        machine.signal(ReceivedSignal { number: 28, from_outside: true });
        assert_eq!(actions(&mut machine), []);
        machine.signal(ReceivedSignal { number, from_outside: true });
        assert_eq!(actions(&mut machine), [Action::Exit(Exit { code, message: None })]);
    }
}

#[test]
fn after_its_exit_a_guard_does_nothing_more() {
    let mut machine = running();
    machine.child_ended(0);
    actions(&mut machine);
    machine.message(at(0), grant(3, TERM_MS, KILL_MS));
    machine.message(at(0), end(EndReason::Lost(LossReason::KeyGone), 0, Some(195)));
    machine.signal(ReceivedSignal { number: SIGTERM, from_outside: true });
    machine.child_ended(1);
    assert_eq!(wake(&mut machine, KILL_MS * 2), []);
}

#[derive(Clone, Debug)]
enum Event {
    Message(ToGuard),
    Connected,
    Disconnected,
    Signal(c_int),
}

fn event() -> impl Strategy<Value = Event> {
    let instants = || (0_u64..40_000, 0_u64..40_000);
    let reason = prop_oneof![
        Just(EndReason::Lost(LossReason::RenewalTimeout)),
        Just(EndReason::Planned(PlannedEnd::StepDown))
    ];
    prop_oneof![
        (1_u8..3, instants()).prop_map(|(bits, (term, kill))| Event::Message(grant(bits, term, kill))),
        (1_u8..3, instants()).prop_map(|(bits, (term, kill))| Event::Message(extend(bits, term, kill))),
        (reason, 0_u64..40_000).prop_map(|(reason, kill)| Event::Message(end(reason, kill, None))),
        Just(Event::Connected),
        Just(Event::Disconnected),
        prop_oneof![Just(SIGTERM), Just(1)].prop_map(Event::Signal),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever is said in whatever order: one start at most, no start without a term instant ahead, nothing
    /// after an exit, and no life beyond the latest kill instant that was told for the own holding.
    #[test]
    fn no_workload_outlives_its_kill_instant(events in prop::collection::vec((0_u64..3000, event()), 0..40)) {
        let mut machine = Machine::new("app".to_owned(), at(0));
        let mut now = 0;
        let mut bound: Option<(HoldingId, u64)> = None;
        let mut exited = false;
        for (pause, event) in events {
            now += pause;
            machine.woke(at(now));
            let mut done = actions(&mut machine);
            match event {
                Event::Message(message) => {
                    if let (ToGuard::Extend { holding, kill_at_ms, .. }, Some((own, kill_at))) = (&message, &mut bound)
                        && holding == own
                    {
                        *kill_at = (*kill_at).max(*kill_at_ms);
                    }
                    let told = message.clone();
                    machine.message(at(now), message);
                    done.extend(actions(&mut machine));
                    if let (ToGuard::Grant { holding, term_at_ms, kill_at_ms, .. }, true) =
                        (told, done.iter().any(|action| matches!(action, Action::Start(_))))
                    {
                        prop_assert!(bound.is_none(), "a second start");
                        prop_assert!(now < term_at_ms && term_at_ms <= kill_at_ms);
                        bound = Some((holding, kill_at_ms));
                    }
                }
                Event::Connected => machine.connected(),
                Event::Disconnected => machine.disconnected(at(now)),
                Event::Signal(number) => machine.signal(ReceivedSignal { number, from_outside: true }),
            }
            machine.settle(at(now));
            done.extend(actions(&mut machine));
            prop_assert!(!exited || !done.iter().any(|action| matches!(action, Action::Start(_) | Action::Signal(_))));
            exited |= exit_of(&done).is_some();
            if let Some((_, kill_at)) = &bound && !exited {
                prop_assert!(now < *kill_at, "alive at {} after its kill instant {}", now, kill_at);
                prop_assert!(machine.next_instant().unwrap() <= at(*kill_at), "it would sleep over its kill instant");
            }
        }
    }
}
