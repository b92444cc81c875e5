//! The FencedLease custom resource, `fencedlease.dev/v1alpha1`: what a user writes, what the operator answers,
//! and the rules that the API server checks. The YAML in `yaml/` is generated from this.

pub mod conditions;
pub mod gates;
#[cfg(feature = "generate")]
pub mod generate;
pub mod lease;
mod rules;
pub mod status;

pub use conditions::ConditionType;
pub use gates::GateSpec;
pub use lease::{
    AuthoritiesKind, AuthoritiesReference, CertificateReference, FencedLease, FencedLeaseSpec, RedisAuth,
    RedisSpec, RedisTls, SecretReference, StandbyMode, StandbyReadiness, StandbySpec,
};
pub use status::{FencedLeaseStatus, GuardKind, Holder, LastLoss, Phase, ResolvedTiming, Workload};
