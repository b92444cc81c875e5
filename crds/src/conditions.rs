//! The names of a FencedLease's conditions. True is well for each of them, except that `Held` is False
//! whenever nobody holds the lease.

/// The type of a condition in `status.conditions`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ConditionType {
    /// A pod could hold the lease now.
    Ready,
    /// A pod holds the lease.
    Held,
    /// Redis answers the sidecars.
    RedisReachable,
    /// Fences grow whatever happens to Redis.
    FenceDurable,
    /// Every gate has stored the fence. There only where the spec names gates.
    GatesReady,
    /// Every pod runs with the present spec.
    PodsCurrent,
    /// Annotated pods are admitted.
    AdmissionOk,
}

impl ConditionType {
    /// Every type, in the order in which the status shows them.
    pub const ALL: [Self; 7] = [
        Self::Ready,
        Self::Held,
        Self::RedisReachable,
        Self::FenceDurable,
        Self::GatesReady,
        Self::PodsCurrent,
        Self::AdmissionOk,
    ];

    /// The name as it stands in the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Held => "Held",
            Self::RedisReachable => "RedisReachable",
            Self::FenceDurable => "FenceDurable",
            Self::GatesReady => "GatesReady",
            Self::PodsCurrent => "PodsCurrent",
            Self::AdmissionOk => "AdmissionOK",
        }
    }
}
