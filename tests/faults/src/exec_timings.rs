//! The timing with which tests run *exec*, so that all of them meet the same bounds.

/// Options of `fencedlease exec`: the ttl is the least that is legal, the rest as short as a busy machine can keep.
pub const SHORT_TIMINGS: [&str; 12] = [
    "--ttl",
    "5s",
    "--renew-interval",
    "400ms",
    "--renew-timeout",
    "300ms",
    "--grace-period",
    "300ms",
    "--kill-budget",
    "500ms",
    "--commit-margin",
    "200ms",
];
