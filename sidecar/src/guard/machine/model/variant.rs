//! What is done wrong around the machines, to see that each promise can be broken.

/// The code around the machines as it is, or with one mistake in it, or with an assumption broken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Variant {
    AsBuilt,
    /// `t_s` is when the reply came, 1.5 s after the request was sent.
    StampedAtReply,
    /// A release deletes whatever lease there is.
    ReleaseWithoutToken,
    /// A renewal is confirmed whoever has the lease.
    RenewWithoutToken,
    /// A closed connection counts as proof of death.
    EofIsDeath,
    /// The guard hears the sidecar and nothing else: its own instants pass.
    DeafGuard,
    /// Redis loses the sequence together with the lease.
    ForgottenFence,
    /// A guard acts on each line before it has read the next: on a grant whose end lies behind it.
    ActsOnEachLine,
    /// A guard counts the instants of a grant from its arrival.
    GrantFromArrival,
    /// Nobody compares when it woke with when it meant to.
    GapUnnoticed,
    /// The sidecar's clock stands still while it is frozen, as CLOCK_MONOTONIC does in a suspend.
    ClockStops,
    /// An acquisition without an answer counts as one that succeeded.
    SilenceIsYes,
    /// One owner token for all attempts of a pod.
    OneToken,
    /// The kernel takes 1.5 s longer than `killBudget` allows.
    SlowDeath,
    /// Redis's clock runs 1.5 times as fast as the drift allows.
    FastRedis,
}
