use super::*;

#[test]
fn what_is_missing_is_named_until_it_is_there() {
    let readiness = Readiness::default();
    assert_eq!(readiness.missing(), None);
    readiness.needs("the list of pods");
    readiness.needs("the list of FencedLeases");
    assert_eq!(readiness.missing().as_deref(), Some("the list of FencedLeases, the list of pods"));
    readiness.done("the list of pods");
    readiness.done("the list of FencedLeases");
    assert_eq!(readiness.missing(), None);
}

#[tokio::test]
async fn an_operator_that_ends_is_not_ready_and_says_so() {
    let readiness = Readiness::default();
    readiness.needs("the operator ends");
    let (leases, _) = kube::runtime::reflector::store();
    let admin = Admin { readiness, metrics: Arc::new(Metrics::new().unwrap()), leases };
    let (status, text) = readyz(State(admin)).await;
    assert_eq!((status, text.as_str()), (StatusCode::SERVICE_UNAVAILABLE, "not ready: the operator ends\n"));
}
