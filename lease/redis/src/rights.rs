//! What must a Redis user be allowed? The least with which every script and a standby's ears work.

use fencedlease_wire::{ResourceName, ResourceNameError};

use crate::LeaseKeys;

/// The commands, as an ACL names them. HELLO and AUTH need no right.
pub const COMMANDS: [&str; 13] = [
    "eval",
    "get",
    "set",
    "incr",
    "del",
    "exists",
    "pttl",
    "pexpire",
    "time",
    "publish",
    "subscribe",
    // Without these two all goes on, but Redis notes each refusal in its ACL LOG.
    "ping",
    "client|setname",
];

/// Which leases a user is for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rights {
    pattern: String,
    has_database: bool,
}

// === impl Rights ===

impl Rights {
    /// The leases of one namespace of an installation, or without one those of all its namespaces, in this database.
    /// An error names the part that is no name.
    pub fn new(
        installation: &str,
        namespace: Option<&str>,
        database: i64,
    ) -> Result<Self, ResourceNameError> {
        // Any name will do: the pattern has a star in its place.
        ResourceName::new(installation, namespace.unwrap_or("any"), "any")?;
        Ok(Self { pattern: LeaseKeys::pattern(installation, namespace), has_database: database != 0 })
    }

    /// What follows the user's name and password in `ACL SETUSER`.
    pub fn rules(&self) -> Vec<String> {
        let select = self.has_database.then_some("select");
        let commands = COMMANDS.into_iter().chain(select).map(|command| format!("+{command}"));
        [format!("~{}", self.pattern), format!("&{}", self.pattern)].into_iter().chain(commands).collect()
    }
}

#[cfg(test)]
mod tests;
