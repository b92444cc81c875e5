use super::*;

#[test]
fn a_cluster_that_answers_with_the_rules_has_them() {
    assert!(keeps_rules(&trial()));
}

#[test]
fn a_cluster_that_drops_them_in_silence_has_not() {
    let mut answer = trial();
    for container in &mut answer.spec.as_mut().unwrap().containers {
        container.restart_policy = None;
        container.restart_policy_rules = None;
    }
    assert!(!keeps_rules(&answer));
    assert!(!keeps_rules(&Pod::default()));
}

#[test]
fn the_trial_passes_pod_security_restricted() {
    let pod = trial();
    let spec = pod.spec.unwrap();
    let security = spec.containers[0].security_context.as_ref().unwrap();
    assert_eq!(security.run_as_non_root, Some(true));
    assert_eq!(security.allow_privilege_escalation, Some(false));
    assert_eq!(security.capabilities.as_ref().unwrap().drop.as_deref(), Some(&["ALL".to_owned()][..]));
    assert_eq!(security.seccomp_profile.as_ref().unwrap().type_, "RuntimeDefault");
}
