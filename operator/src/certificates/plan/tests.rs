use super::*;
use crate::certificates::Leaf;

fn at(day: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + days(20_000 + day)
}

fn names() -> Vec<String> {
    vec!["fencedlease-operator.system.svc".to_owned()]
}

fn authority(name: &str, made: i64) -> Authority {
    Authority {
        name: name.to_owned(),
        certificate_pem: String::new(),
        key_pem: String::new(),
        made_at: at(made),
        expires_at: at(made) + AUTHORITY_LIFE,
    }
}

fn material(authorities: &[(&str, i64)], signed_by: &str, leaf_made: i64) -> Material {
    Material {
        authorities: authorities.iter().map(|(name, made)| authority(name, *made)).collect(),
        leaf: Leaf {
            signed_by: signed_by.to_owned(),
            names: names(),
            certificate_pem: String::new(),
            key_pem: String::new(),
            made_at: at(leaf_made),
            expires_at: at(leaf_made) + LEAF_LIFE,
        },
    }
}

fn leaf_by(name: &str) -> Step {
    Step::ReplaceLeaf { signed_by: name.to_owned() }
}

#[test]
fn without_anything_everything_is_made() {
    assert_eq!(plan(None, &names(), at(0)), Step::StartOver);
}

#[test]
fn fresh_certificates_are_kept() {
    assert_eq!(plan(Some(&material(&[("a", 0)], "a", 0)), &names(), at(29)), Step::Keep);
}

#[test]
fn a_leaf_is_replaced_two_months_before_its_end() {
    let material = material(&[("a", 0)], "a", 0);
    assert_eq!(plan(Some(&material), &names(), at(30)), leaf_by("a"));
}

#[test]
fn a_leaf_for_other_names_is_replaced_at_once() {
    let material = material(&[("a", 0)], "a", 0);
    assert_eq!(plan(Some(&material), &["other.system.svc".to_owned()], at(1)), leaf_by("a"));
}

#[test]
fn a_new_authority_joins_half_a_year_before_the_old_one_ends() {
    let material = material(&[("a", 0)], "a", 540);
    assert_eq!(plan(Some(&material), &names(), at(549)), Step::Keep);
    assert_eq!(plan(Some(&material), &names(), at(550)), Step::AddAuthority);
}

#[test]
fn a_new_authority_signs_only_after_two_days_in_the_bundle() {
    let material = material(&[("a", 0), ("b", 550)], "a", 540);
    assert_eq!(plan(Some(&material), &names(), at(551)), Step::Keep);
    assert_eq!(plan(Some(&material), &names(), at(552)), leaf_by("b"));
}

#[test]
fn an_expiring_leaf_does_not_hurry_a_new_authority() {
    let material = material(&[("a", 0), ("b", 550)], "a", 500);
    assert_eq!(plan(Some(&material), &names(), at(551)), leaf_by("a"));
}

#[test]
fn the_old_authority_leaves_two_days_after_its_last_leaf() {
    let material = material(&[("a", 0), ("b", 550)], "b", 552);
    assert_eq!(plan(Some(&material), &names(), at(553)), Step::Keep);
    let dropped = Step::DropAuthorities { names: vec!["a".to_owned()] };
    assert_eq!(plan(Some(&material), &names(), at(554)), dropped);
}

#[test]
fn after_years_switched_off_it_starts_over() {
    assert_eq!(plan(Some(&material(&[("a", 0)], "a", 0)), &names(), at(731)), Step::StartOver);
}

#[test]
fn a_young_authority_signs_if_the_old_one_has_ended() {
    let material = material(&[("a", 0), ("b", 730)], "a", 700);
    assert_eq!(plan(Some(&material), &names(), at(731)), leaf_by("b"));
}

#[test]
fn a_leaf_of_an_authority_that_nobody_knows_is_replaced() {
    assert_eq!(plan(Some(&material(&[("a", 0)], "gone", 5)), &names(), at(6)), leaf_by("a"));
}

#[test]
fn a_clock_set_back_changes_nothing_but_that_leaves_are_kept() {
    let material = material(&[("a", 0)], "a", 0);
    assert_eq!(plan(Some(&material), &names(), at(-1)), Step::Keep);
}
