use super::*;

#[test]
fn images_of_ours_are_looked_for_in_the_registry_and_others_where_they_are() {
    let manifest = r#"{"image":"fencedlease.dev/busybox:dev"},{"image":"docker.io/library/busybox:1.37"}"#;
    let there = referred_to(Some("r.example/team/"), manifest);
    assert_eq!(there, r#"{"image":"r.example/team/busybox:dev"},{"image":"docker.io/library/busybox:1.37"}"#);
    assert_eq!(referred_to(None, manifest), manifest);
    assert_eq!(referred_to(Some("r.example"), "fencedlease.dev/annotation"), "fencedlease.dev/annotation");
}
