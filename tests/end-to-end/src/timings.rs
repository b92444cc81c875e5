//! How the leases of tests are timed.

use std::time::Duration;

use serde_json::{Value, json};

/// How long a lease with [`short`] timings lasts in Redis.
pub const TTL: Duration = Duration::from_secs(10);
/// How long a workload with [`short`] timings has for its end.
pub const GRACE: Duration = Duration::from_secs(1);
/// From the kill instant to the deadline with [`short`] timings: killBudget and the stall that is allowed for.
pub const KILL_TO_DEADLINE: Duration = Duration::from_millis(1500);

/// A lease that is lost and followed within seconds, and whose renewals may take two seconds all the same: a test on
/// a busy machine is to see the losses that it makes, and no others.
pub fn short() -> Value {
    json!({
        "ttl": "10s", "renewInterval": "2s", "renewTimeout": "2s", "gracePeriod": "1s", "killBudget": "1s",
        "commitMargin": "500ms",
    })
}
