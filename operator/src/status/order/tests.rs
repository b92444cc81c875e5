use super::*;

fn run(number: u8) -> HoldingId {
    HoldingId::from_random([number; 8])
}

#[test]
fn a_repeated_report_is_taken_and_an_older_one_is_not() {
    let mut order = Order::default();
    assert!(order.accept("pod", &run(1), 1));
    assert!(order.accept("pod", &run(1), 3));
    assert!(order.accept("pod", &run(1), 3));
    assert!(!order.accept("pod", &run(1), 2));
}

#[test]
fn an_old_run_is_over_once_a_new_one_has_spoken() {
    let mut order = Order::default();
    assert!(order.accept("pod", &run(1), 9));
    assert!(order.accept("pod", &run(2), 1));
    assert!(!order.accept("pod", &run(1), 10));
    assert!(order.accept("pod", &run(2), 2));
}

#[test]
fn pods_do_not_disturb_each_other() {
    let mut order = Order::default();
    assert!(order.accept("one", &run(1), 9));
    assert!(order.accept("two", &run(2), 1));
}

#[test]
fn a_pod_that_is_gone_is_forgotten() {
    let mut order = Order::default();
    assert!(order.accept("pod", &run(1), 9));
    order.retain(|uid| uid != "pod");
    assert!(order.pods.is_empty());
}

#[test]
fn a_pod_with_endless_restarts_costs_bounded_memory() {
    let mut order = Order::default();
    for number in 0..100 {
        assert!(order.accept("pod", &run(number), 1));
    }
    assert_eq!(order.pods["pod"].retired.len(), RETIRED);
}
