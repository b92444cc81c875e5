//! Names of files and environment variables in a guarded pod.

/// The shared volume: read-only in the guarded containers.
pub const SHARED_DIR: &str = "/run/fencedlease";
/// In the shared volume: the application's socket.
pub const LEASE_SOCKET: &str = "lease.sock";
/// In the shared volume: the guards' socket.
pub const GUARD_SOCKET: &str = "guard.sock";
/// In the shared volume: the fence, in digits and a newline; absent unless ACTIVE.
pub const FENCE_FILE: &str = "fence";
/// In the shared volume: the JSON of [`crate::lost::LostFlag`] after a loss.
pub const LOST_FILE: &str = "lost";
/// In the shared volume: our own binary, which the webhook makes the command of guarded containers.
pub const GUARD_BINARY: &str = "fencedlease";
/// The sidecar's private volume.
pub const STATE_DIR: &str = "/var/lib/fencedlease";
/// Where the token for the operator's endpoint is mounted in the sidecar.
pub const ENDPOINT_TOKEN_FILE: &str = "/var/run/secrets/fencedlease.dev/token";
/// The audience of that token. The Kubernetes API does not accept it.
pub const ENDPOINT_AUDIENCE: &str = "fencedlease.dev/operator";
/// Where a FencedLease's own Redis Secret is mounted in the sidecar: files `password`, and `username` if any.
pub const REDIS_SECRET_DIR: &str = "/var/run/secrets/fencedlease.dev/redis";
/// Where what TLS to Redis needs is mounted in the sidecar: `ca.crt`, `tls.crt`, `tls.key`, as far as there is any.
pub const REDIS_TLS_DIR: &str = "/var/run/secrets/fencedlease.dev/redis-tls";
/// Where the key that signs tickets for gates is mounted in the sidecar, in the form of [`crate::gate::GateKey`]'s file.
pub const GATE_KEY_FILE: &str = "/var/run/secrets/fencedlease.dev/gate-key/key";
/// Where gates' certificate authorities are mounted in the sidecar: `NAME/ca.crt` for each gate that has its own.
pub const GATE_TLS_DIR: &str = "/var/run/secrets/fencedlease.dev/gate-tls";

/// For the sidecar: [`crate::SidecarSettings`] as JSON.
pub const ENV_SETTINGS: &str = "FENCEDLEASE_SETTINGS";
/// For the sidecar: the pod's name.
pub const ENV_POD_NAME: &str = "FENCEDLEASE_POD_NAME";
/// For the sidecar: the pod's uid.
pub const ENV_POD_UID: &str = "FENCEDLEASE_POD_UID";
/// For the sidecar: the pod's address, where probes and metrics are served.
pub const ENV_POD_IP: &str = "FENCEDLEASE_POD_IP";
/// For the sidecar: the node's name.
pub const ENV_NODE_NAME: &str = "FENCEDLEASE_NODE_NAME";
/// For the workload: `namespace/name` of the resource.
pub const ENV_RESOURCE: &str = "FENCEDLEASE_RESOURCE";
/// For the workload: the path of the application's socket.
pub const ENV_SOCKET: &str = "FENCEDLEASE_SOCKET";
/// For the workload: the path of the shared volume.
pub const ENV_DIR: &str = "FENCEDLEASE_DIR";
/// For the workload under the entrypoint guard: the fence.
pub const ENV_FENCE: &str = "FENCEDLEASE_FENCE";
/// For the workload under the entrypoint guard: the holding id.
pub const ENV_HOLDING: &str = "FENCEDLEASE_HOLDING";
