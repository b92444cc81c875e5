//! The faults, by number, and what must follow.

/// One fault.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Row {
    /// Its number, which never changes.
    pub number: u8,
    /// What goes wrong.
    pub fault: &'static str,
    /// What must follow.
    pub must: &'static str,
}

const fn row(number: u8, fault: &'static str, must: &'static str) -> Row {
    Row { number, fault, must }
}

const DEAD: &str = "LOST; the workload is dead before the deadline";
const GUARD: &str = "the guard ends the workload at its own instants, before the deadline";
const FENCE: &str = "no fence is handed out twice";

/// All faults.
pub const ROWS: [Row; 55] = [
    row(1, "Redis is slow, within renewTimeout", "the holder holds"),
    row(2, "a renewal's answer is later than renewTimeout", "LOST; the late answer changes nothing"),
    row(3, "everything to and from Redis is dropped", DEAD),
    row(4, "only the answers of Redis are lost", "LOST; an acquisition that may have happened is released"),
    row(5, "Redis accepts connections and says nothing", DEAD),
    row(6, "Redis resets every connection", "LOST; the next attempts back off within bounds"),
    row(7, "half of the packets are lost", "held or dead, never two at once"),
    row(8, "an answer drips, a byte a second", "LOST at renewTimeout; the rest is never read"),
    row(9, "an answer arrives after LOST", "it stays LOST"),
    row(
        10,
        "an acquisition is executed after it was given up",
        "nobody is ACTIVE by it; it is released or runs out",
    ),
    row(
        11,
        "a release is executed after somebody else acquired",
        "it changes nothing: only the owner's token deletes",
    ),
    row(12, "what answers speaks no RESP, or a hostile one", "an error, no panic, never ACTIVE"),
    row(13, "Redis is stopped and goes on later", DEAD),
    row(14, "Redis sleeps in a command", DEAD),
    row(15, "Redis pauses its clients", DEAD),
    row(16, "Redis is killed and comes back empty", "LOST; the next fence is greater than all known"),
    row(17, "power fails while Redis syncs every second", FENCE),
    row(18, "an old RDB file is restored", FENCE),
    row(19, "a replica that lags is promoted", FENCE),
    row(20, "a failover while held", "held or dead, never two at once"),
    row(
        21,
        "two masters each hand the lease to somebody",
        "the fence check lets the greatest fence through, and no older one after it",
    ),
    row(
        22,
        "Redis answers an error (READONLY, LOADING, MISCONF, NOREPLICAS, NOAUTH, NOPERM, full)",
        "not ACTIVE or LOST, by the error's effect, with its words",
    ),
    row(
        23,
        "the lease is deleted or evicted by somebody else",
        "LOST at the next renewal, without grace; the next fence is greater",
    ),
    row(24, "Redis's clock jumps", "LOST at the renewal that shows it"),
    row(25, "Redis's clock runs 20 % fast or slow", "held within the drift, LOST outside"),
    row(26, "the holder's wall clock is set", "nothing: it decides nothing"),
    row(
        27,
        "the holder's clock is slow",
        "safe within the drift; outside it the fence check is what is left",
    ),
    row(28, "the machine was suspended", "LOST before anything else"),
    row(29, "a pause that no clock shows", "the fence check refuses what comes late"),
    row(30, "the sidecar is stopped", GUARD),
    row(31, "the sidecar is killed or panics", GUARD),
    row(32, "the sidecar is frozen in its cgroup", GUARD),
    row(33, "the sidecar gets 2 % of a processor", "LOST or the guard, in time"),
    row(34, "every runtime thread of the sidecar hangs", "the watching thread or the guard, in time"),
    row(35, "the guard is killed", "every process of the container ends; the lease is given back after that"),
    row(
        36,
        "the guard is stopped while the sidecar lives",
        "LOST is noticed; no release before death is proven",
    ),
    row(37, "the workload ignores SIGTERM", "SIGKILL in time"),
    row(38, "fork storms, double forks, sessions, other users, exec sessions", "nothing is left"),
    row(39, "a process that cannot be killed", "no release, loud; the lease runs out by itself"),
    row(40, "the workload is frozen in its cgroup", "no release before death is proven"),
    row(
        41,
        "a large memory, many threads, a busy machine",
        "dead within killBudget, or refused at admission",
    ),
    row(42, "the shared volume is full, read-only or frozen", "no kill is delayed"),
    row(43, "files of an earlier holding lie there", "they count as LOST"),
    row(
        44,
        "the container is restarted at once after LOST",
        "it waits until a lease of its own, with a new fence",
    ),
    row(
        45,
        "the sidecar restarts alone while the workload runs",
        "the old workload dies before anybody is ACTIVE",
    ),
    row(46, "floods, half requests and slow readers on the sockets", "no renewal and no kill is delayed"),
    row(47, "the socket's path is a link or somebody else's socket", "refused"),
    row(
        48,
        "a write is on its way when its writer dies, and arrives after the next one's",
        "refused where the fence is checked",
    ),
    row(49, "the gate is killed at any point", "the highest fence that was answered is kept"),
    row(50, "the gate's disk is full, or a sync fails", "no fence is raised; older fences stay refused"),
    row(51, "two gates on one store", "the second refuses to start"),
    row(
        52,
        "a password is changed, a certificate expires",
        "connected again in time or LOST; never plaintext",
    ),
    row(53, "the API server is away where a fence must be recorded", "nobody becomes ACTIVE"),
    row(54, "two operators lead", "no effect on any fence"),
    row(
        55,
        "a pod is deleted, a rollout, a scale to zero",
        "the workload dies first, then the lease is released, then the next one starts",
    ),
];
