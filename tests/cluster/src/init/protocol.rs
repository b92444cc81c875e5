//! What is said between the harness and the first process of a machine: one line of JSON each way.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A program to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Start {
    /// Its name in this machine; one that runs already is refused.
    pub name: String,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Where its output goes; appended to.
    pub log: PathBuf,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Request {
    /// Starts a component.
    Start(Start),
    /// Sends a signal, by number, to a component.
    #[serde(rename_all = "camelCase")]
    Signal {
        /// The component.
        name: String,
        /// The signal's number, one of 1, 9, 15, 18 and 19.
        signal: i32,
    },
    /// Asks what all components are doing.
    List,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Response {
    /// It was done.
    Done,
    /// All components that were ever started, in order.
    Components(Vec<ComponentStatus>),
    /// It was not done, and why.
    Refused(String),
}

/// What a component is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ComponentStatus {
    /// Its name.
    pub name: String,
    /// Its process id inside the machine.
    pub pid: u32,
    /// Whether it runs.
    pub state: ComponentState,
}

/// Whether a component runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ComponentState {
    /// It has not ended.
    Running,
    /// It ended; the text says how.
    Ended(String),
}
