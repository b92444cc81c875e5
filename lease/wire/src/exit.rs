//! Exit codes of our own. They lie above 128 + SIGRTMAX and below systemd's 200.

/// Ended because another guarded container of the pod ended.
pub const OTHER_CONTAINER_ENDED: u8 = 194;
/// The lease was lost. Also when the workload caught SIGTERM and exited 0.
pub const LOST: u8 = 195;
/// A planned end: `maxHold`, or the application stepped down.
pub const PLANNED_END: u8 = 196;
/// The guard cannot guard here.
pub const CANNOT_GUARD: u8 = 197;
/// *exec* only: somebody else holds the lease, and `--wait` is over.
pub const HELD_BY_ANOTHER: u8 = 198;
/// *exec* only: Redis could not be used before anything was run.
pub const REDIS_UNUSABLE: u8 = 199;
/// Our own settings are wrong.
pub const BAD_SETTINGS: u8 = 125;
/// The workload's command cannot be executed.
pub const NOT_EXECUTABLE: u8 = 126;
/// The workload's command was not found.
pub const NOT_FOUND: u8 = 127;
