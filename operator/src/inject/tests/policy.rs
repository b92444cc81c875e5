//! The chart's policy looks for what injection writes, by the same names.

use fencedlease_wire::paths;

use crate::inject::beside::PARTS;
use crate::inject::names::{
    CREDENTIALS_DIR, CREDENTIALS_VOLUME, GUARD_PATH, SHARED_VOLUME, SIDECAR, SIDECAR_COMMAND, STATE_VOLUME,
    WHILE_ACTIVE,
};

const POLICY: &str = include_str!("../../../../charts/fencedlease/templates/guarded-pods-policy.yaml");

#[test]
fn the_policy_looks_for_what_injection_writes() {
    let mounts = [
        (SHARED_VOLUME, paths::SHARED_DIR),
        (STATE_VOLUME, paths::STATE_DIR),
        (CREDENTIALS_VOLUME, CREDENTIALS_DIR),
    ];
    let mut parts = mounts.map(|(volume, path)| format!("'{volume}={path}'")).to_vec();
    parts.extend([
        format!(
            "c.name == '{SIDECAR}' && c.?command.orValue([]) == ['{}', '{}']",
            SIDECAR_COMMAND[0], SIDECAR_COMMAND[1]
        ),
        format!("c.command[0] == '{GUARD_PATH}' && c.command[1] == 'guard'"),
        format!("m.name == '{SHARED_VOLUME}'"),
        format!("m.mountPath == '{}'", paths::SHARED_DIR),
        format!("'{}={}/{}'", paths::ENV_SOCKET, paths::SHARED_DIR, paths::LEASE_SOCKET),
        format!("'{}={}'", paths::ENV_DIR, paths::SHARED_DIR),
        format!("e.name == '{}'", paths::ENV_SETTINGS),
    ]);
    for (path, kind) in PARTS {
        let path = path.iter().map(|key| format!("?{key}")).collect::<Vec<_>>().join(".");
        parts.push(format!("['{kind}'] + c.{path}.?exec.?command.orValue([])"));
    }
    let [guard, subcommand, option] = WHILE_ACTIVE;
    parts.push(format!(
        "w[1] == '{guard}' && w[2] == '{subcommand}' && w[3] == '{option}' && w[4] == w[0] && w[5] == '--'"
    ));
    let text = POLICY.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in parts {
        assert!(text.contains(&part), "{part} is not in the chart's policy");
    }
}

#[test]
fn the_policy_looks_at_the_pods_that_the_webhook_is_asked_about() {
    let file = |text: &str| text.matches("conditions/new-pods.cel").count();
    assert_eq!(file(POLICY), 1);
    let webhooks = include_str!("../../../../charts/fencedlease/templates/webhooks.yaml");
    assert!(
        webhooks.contains(r#"printf "conditions/%s.cel" .name"#) && webhooks.contains(r#""name" "new-pods""#)
    );
}
