//! What is ours in a guarded pod, and how is it told from what is the user's?

use serde_json::Value;

/// The sidecar container.
pub const SIDECAR: &str = "fencedlease";
/// The sidecar's command, by which it is known as ours.
pub const SIDECAR_COMMAND: [&str; 2] = ["/fencedlease", "hold"];
/// The volume that sidecar and guarded containers share.
pub const SHARED_VOLUME: &str = "fencedlease";
/// The volume that only the sidecar mounts.
pub const STATE_VOLUME: &str = "fencedlease-state";
/// The volume with the token for the operator's endpoint, and with the FencedLease's own Redis Secret.
pub const CREDENTIALS_VOLUME: &str = "fencedlease-credentials";
/// Where [`CREDENTIALS_VOLUME`] is mounted; [`fencedlease_wire::paths`] names the files in it.
pub const CREDENTIALS_DIR: &str = "/var/run/secrets/fencedlease.dev";
/// The guard as the guarded containers see it.
pub const GUARD_PATH: &str = "/run/fencedlease/fencedlease";
/// What the command of a probe or a hook begins with; then follow what it is to Kubernetes, `--`, and the user's own.
pub(super) const WHILE_ACTIVE: [&str; 3] = [GUARD_PATH, "while-active", "--as"];
/// The port of probes and metrics, unless a container of the pod has it.
pub const ADMIN_PORT: u16 = 7475;
/// What variables of ours begin with.
pub(super) const ENV_PREFIX: &str = "FENCEDLEASE_";

const VOLUMES: [&str; 3] = [SHARED_VOLUME, STATE_VOLUME, CREDENTIALS_VOLUME];

/// Whether a volume of this name is ours.
pub(super) fn is_our_volume(name: &str) -> bool {
    VOLUMES.contains(&name)
}

/// Whether an init container is a sidecar of ours, to be made anew. One that merely has its name is not.
pub(super) fn is_our_sidecar(container: &Value) -> bool {
    let command = container["command"].as_array().map_or(&[][..], Vec::as_slice);
    container["name"] == SIDECAR && command.iter().eq(SIDECAR_COMMAND.iter())
}

/// A path as the kernel takes it: without empty and dot parts, and with `..` taken out.
pub(super) fn normal_path(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}
