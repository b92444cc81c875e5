use super::*;

const HOLD_REPLIES: Fault = Fault::Hold { direction: Direction::Replies };

#[test]
fn a_client_of_its_own_entry_is_not_touched_by_the_fault_of_all() {
    let mut faults = Faults::default();
    faults.set(Clients::All, Fault::Cut);
    faults.set(Clients::One([10, 0, 0, 1].into()), Fault::Pass);
    assert_eq!(faults.of([10, 0, 0, 1].into()), Fault::Pass);
    assert_eq!(faults.of([10, 0, 0, 2].into()), Fault::Cut);
}

#[test]
fn a_fault_for_all_replaces_those_of_single_clients() {
    let mut faults = Faults::default();
    faults.set(Clients::One([10, 0, 0, 1].into()), Fault::Cut);
    faults.set(Clients::All, Fault::Pass);
    assert_eq!(faults, Faults::default());
}

#[test]
fn an_ipv4_client_of_an_ipv6_socket_is_the_same_client() {
    let mut faults = Faults::default();
    faults.set(Clients::One([10, 0, 0, 1].into()), Fault::Cut);
    assert_eq!(faults.of("::ffff:10.0.0.1".parse().unwrap()), Fault::Cut);
}

#[test]
fn a_fault_of_one_direction_leaves_the_other_alone() {
    assert_eq!(HOLD_REPLIES.treatment(Way::Replies), Treatment::Keep);
    assert_eq!(HOLD_REPLIES.treatment(Way::Requests), Treatment::Forward(Duration::ZERO));
    let delay = Fault::Delay { delay_ms: 20, direction: Direction::Requests };
    assert_eq!(delay.treatment(Way::Requests), Treatment::Forward(Duration::from_millis(20)));
    assert_eq!(delay.treatment(Way::Replies), Treatment::Forward(Duration::ZERO));
}

#[test]
fn a_fault_is_read_from_json_with_both_directions_as_the_default() {
    let fault: Fault = serde_json::from_str(r#"{"kind":"drop"}"#).unwrap();
    assert_eq!(fault, Fault::Drop { direction: Direction::Both });
    assert_eq!(serde_json::to_string(&HOLD_REPLIES).unwrap(), r#"{"kind":"hold","direction":"replies"}"#);
    serde_json::from_str::<Fault>(r#"{"kind":"delay","delay":3}"#).unwrap_err();
}
