//! What went wrong, by its effect: Redis words one thing differently in and outside of scripts, and from one
//! version to the next.

use std::time::Duration;

use fencedlease_core::duration::in_seconds;
use fencedlease_wire::LossReason;
use fencedlease_wire::endpoint::RedisStandingKind;

/// Why a call to Redis brought no answer that counts. The texts are for people and name the address.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// No connection was made in time. Redis was never asked.
    #[error("no connection to {address} in {}", in_seconds(*.waited))]
    ConnectTimeout {
        /// `host:port`.
        address: String,
        /// The time for the whole call.
        waited: Duration,
    },
    /// The connection was refused, or the name is unknown. Redis was never asked.
    #[error("no connection to {address}: {text}")]
    Connect {
        /// `host:port`.
        address: String,
        /// What the system said.
        text: String,
    },
    /// The connection could not be encrypted, or the server is not who it should be. Redis was never asked.
    #[error("no TLS with {address}: {text}")]
    Tls {
        /// `host:port`.
        address: String,
        /// Why, and what to look at.
        text: String,
    },
    /// User and password could not be had in order to connect. Redis was never asked.
    #[error("no credentials for {address}: {text}")]
    Credentials {
        /// `host:port`.
        address: String,
        /// Why.
        text: String,
    },
    /// The call was sent and not answered in time. Redis may have done it.
    #[error("no answer from {address} in {}", in_seconds(*.waited))]
    Timeout {
        /// `host:port`.
        address: String,
        /// The time for the whole call.
        waited: Duration,
    },
    /// The connection broke before the answer came. Redis may have done it.
    #[error("{address} closed the connection before it answered: {text}")]
    Closed {
        /// `host:port`.
        address: String,
        /// What the system said.
        text: String,
    },
    /// Redis answered with an error. It has not done what was asked.
    #[error("{address} answered: {text}")]
    Refused {
        /// `host:port`.
        address: String,
        /// What the error means.
        refusal: Refusal,
        /// Redis's own words.
        text: String,
    },
    /// The answer is none that the script gives. Redis may have done it.
    #[error("{address} gave an answer of unexpected shape: {text}")]
    Protocol {
        /// `host:port`.
        address: String,
        /// What was expected, and what came.
        text: String,
    },
}

/// What an error of Redis means, whatever its first word is.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Refusal {
    /// User or password are missing or wrong.
    Auth,
    /// The user lacks a right to a command, a key or a channel.
    Permission,
    /// It is a replica, or has become one.
    ReadOnly,
    /// It is reading its data at its start.
    Loading,
    /// It takes no writes because it cannot save them.
    Misconf,
    /// It takes no writes because too few replicas follow.
    NoReplicas,
    /// It is full.
    OutOfMemory,
    /// The stored sequence is not one, or at its end; the text says what to do.
    Sequence,
    /// It is a node of a Redis Cluster, and the keys are another's.
    Cluster,
    /// A script could not run, or met a value of another type.
    Script,
    /// Another error.
    Other,
}

// === impl CallError ===

impl CallError {
    /// Whether Redis may have done what was asked all the same. An acquisition that may have happened is to be
    /// released by its token.
    pub fn may_have_happened(&self) -> bool {
        match self {
            Self::ConnectTimeout { .. }
            | Self::Connect { .. }
            | Self::Tls { .. }
            | Self::Credentials { .. }
            | Self::Refused { .. } => false,
            Self::Timeout { .. } | Self::Closed { .. } | Self::Protocol { .. } => true,
        }
    }

    /// What a renewal that ended so is called.
    pub fn loss_reason(&self) -> LossReason {
        match self {
            Self::ConnectTimeout { .. } | Self::Timeout { .. } => LossReason::RenewalTimeout,
            Self::Connect { .. } | Self::Closed { .. } => LossReason::ConnectionClosed,
            Self::Tls { .. } | Self::Credentials { .. } | Self::Refused { .. } | Self::Protocol { .. } => {
                LossReason::RenewalError
            }
        }
    }

    /// How Redis stands after such a call.
    pub fn standing(&self) -> RedisStandingKind {
        match self {
            Self::ConnectTimeout { .. }
            | Self::Connect { .. }
            | Self::Timeout { .. }
            | Self::Closed { .. } => RedisStandingKind::Timeout,
            Self::Tls { .. } => RedisStandingKind::TlsFailed,
            Self::Credentials { .. } => RedisStandingKind::SecretNotFound,
            Self::Refused { refusal: Refusal::Auth, .. } => RedisStandingKind::AuthFailed,
            Self::Refused { refusal: Refusal::Permission, .. } => RedisStandingKind::PermissionDenied,
            Self::Refused { refusal: Refusal::ReadOnly, .. } => RedisStandingKind::NotMaster,
            Self::Refused { .. } | Self::Protocol { .. } => RedisStandingKind::Failed,
        }
    }
}

// === impl Refusal ===

impl Refusal {
    /// What this error text of Redis means. Words are looked for anywhere, since an error that a script met is
    /// wrapped in others, and the first that fits counts.
    pub fn of(text: &str) -> Self {
        // Our own come first: they quote what somebody stored.
        const EFFECTS: [(&str, Refusal); 36] = [
            ("FENCEDLEASE_SEQUENCE", Refusal::Sequence),
            ("FENCEDLEASE_LIMIT", Refusal::Sequence),
            ("NOAUTH", Refusal::Auth),
            ("WRONGPASS", Refusal::Auth),
            ("Authentication required", Refusal::Auth),
            ("invalid password", Refusal::Auth),
            ("invalid username-password", Refusal::Auth),
            ("without any password configured", Refusal::Auth),
            ("NOPERM", Refusal::Permission),
            ("user executing the script", Refusal::Permission),
            ("has no permissions", Refusal::Permission),
            ("No permissions to access", Refusal::Permission),
            ("READONLY", Refusal::ReadOnly),
            ("write against a read only", Refusal::ReadOnly),
            ("MASTERDOWN", Refusal::ReadOnly),
            ("Link with MASTER is down", Refusal::ReadOnly),
            ("LOADING", Refusal::Loading),
            ("loading the dataset", Refusal::Loading),
            ("MISCONF", Refusal::Misconf),
            ("unable to persist", Refusal::Misconf),
            ("not able to persist", Refusal::Misconf),
            ("writing to the AOF", Refusal::Misconf),
            ("NOREPLICAS", Refusal::NoReplicas),
            ("Not enough good replicas", Refusal::NoReplicas),
            ("OOM", Refusal::OutOfMemory),
            ("used memory >", Refusal::OutOfMemory),
            ("MOVED ", Refusal::Cluster),
            ("ASK ", Refusal::Cluster),
            ("CLUSTERDOWN", Refusal::Cluster),
            ("CROSSSLOT", Refusal::Cluster),
            ("TRYAGAIN", Refusal::Cluster),
            ("BUSY", Refusal::Script),
            ("WRONGTYPE", Refusal::Script),
            ("user_script", Refusal::Script),
            ("Error running script", Refusal::Script),
            ("Error compiling script", Refusal::Script),
        ];
        EFFECTS.iter().find(|(words, _)| text.contains(words)).map_or(Self::Other, |(_, refusal)| *refusal)
    }
}

#[cfg(test)]
mod tests;
