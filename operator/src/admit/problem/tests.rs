use super::{Cause, Problem, Refusal, nearest, shown};

#[test]
fn one_problem_is_a_sentence_and_several_are_numbered() {
    let problem = |field: &str| Problem::new(field, "true", "false or unset", "Remove it.");
    let one = Refusal::new(Cause::Pod, "Pod shop/a cannot be guarded", vec![problem("spec.hostPID")]);
    assert_eq!(
        one.to_string(),
        "Pod shop/a cannot be guarded: spec.hostPID is true; accepted: false or unset. Remove it."
    );
    let two = Refusal::new(Cause::Pod, "Pod", vec![problem("a"), problem("b")]);
    assert_eq!(
        two.to_string(),
        "Pod: (1) a is true; accepted: false or unset. Remove it. (2) b is true; accepted: false or unset. Remove it."
    );
}

#[test]
fn a_typo_finds_the_name_that_was_meant_and_nonsense_finds_none() {
    let known = ["lease", "containers", "command"];
    assert_eq!(nearest("leas", known), Some("lease"));
    assert_eq!(nearest("comand", known), Some("command"));
    assert_eq!(nearest("container", known), Some("containers"));
    assert_eq!(nearest("weather", known), None);
    assert_eq!(nearest("x", []), None);
}

#[test]
fn a_users_value_stays_on_one_line_and_is_cut() {
    assert_eq!(shown("a\nb"), "a b");
    assert_eq!(shown(&"é".repeat(100)), format!("{}…", "é".repeat(80)));
}

#[test]
fn whatever_was_written_a_text_is_one_line_that_ends() {
    let problem = Problem::said(format!("a\nb{}", "x".repeat(5000))).to_string();
    assert!(problem.starts_with("a bx") && problem.ends_with("x…"), "{problem}");
    assert_eq!(problem.chars().count(), 1501);
    let refusal = Refusal::new(Cause::Pod, "Pod shop/a\u{1b}[31mb", vec![Problem::said("wrong")]);
    assert_eq!(refusal.to_string(), "Pod shop/a [31mb: wrong");
}
