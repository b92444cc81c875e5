use super::*;

#[test]
fn names_are_those_that_people_are_told() {
    let keys = LeaseKeys::new(&ResourceName::new("c1", "shop", "report").unwrap());
    assert_eq!(keys.lease, "fencedlease:v1:{c1/shop/report}:lease");
    assert_eq!(keys.fence, "fencedlease:v1:{c1/shop/report}:fence");
    assert_eq!(keys.holder, "fencedlease:v1:{c1/shop/report}:holder");
    assert_eq!(keys.clean, "fencedlease:v1:{c1/shop/report}:clean");
    assert_eq!(keys.released, "fencedlease:v1:{c1/shop/report}:released");
}
