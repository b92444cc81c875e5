use super::*;
use crate::certificates::plan::plan;

fn names() -> Vec<String> {
    vec!["fencedlease-operator.system.svc".to_owned(), "127.0.0.1".to_owned()]
}

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

#[test]
fn what_is_made_needs_nothing_more() {
    let made = carry_out(&Step::StartOver, None, &names(), now()).unwrap().unwrap();
    assert_eq!(plan(Some(&made), &names(), now()), Step::Keep);
    assert_eq!(made.authorities.len(), 1);
    assert_eq!(made.bundle_pem(), made.authorities[0].certificate_pem);
}

#[test]
fn a_leaf_never_outlives_what_signed_it() {
    let made = carry_out(&Step::StartOver, None, &names(), now()).unwrap().unwrap();
    let authority = made.authorities[0].clone();
    let late = authority.expires_at - SignedDuration::from_hours(24);
    let step = Step::ReplaceLeaf { signed_by: authority.name };
    let renewed = carry_out(&step, Some(&made), &names(), late).unwrap().unwrap();
    assert_eq!(renewed.leaf.expires_at, authority.expires_at);
}

#[test]
fn a_bundle_holds_both_authorities_while_they_overlap() {
    let made = carry_out(&Step::StartOver, None, &names(), now()).unwrap().unwrap();
    let later = now() + SignedDuration::from_hours(24 * 600);
    let grown = carry_out(&Step::AddAuthority, Some(&made), &names(), later).unwrap().unwrap();
    assert_eq!(grown.bundle_pem().matches("BEGIN CERTIFICATE").count(), 2);
    assert_eq!(grown.leaf, made.leaf);
    let step = Step::DropAuthorities { names: vec![made.authorities[0].name.clone()] };
    let shrunk = carry_out(&step, Some(&grown), &names(), later).unwrap().unwrap();
    assert_eq!(shrunk.authorities, grown.authorities[1..]);
}

#[test]
fn an_unknown_signer_is_an_error() {
    let made = carry_out(&Step::StartOver, None, &names(), now()).unwrap().unwrap();
    let step = Step::ReplaceLeaf { signed_by: "nobody".to_owned() };
    let error = carry_out(&step, Some(&made), &names(), now()).unwrap_err();
    assert_eq!(error.to_string(), "there is no certificate authority named nobody");
}

#[test]
fn keys_do_not_show_in_debug() {
    let made = carry_out(&Step::StartOver, None, &names(), now()).unwrap().unwrap();
    assert!(!format!("{made:?}").contains("PRIVATE KEY"));
    assert!(serde_json::to_string(&made).unwrap().contains("PRIVATE KEY"));
}
