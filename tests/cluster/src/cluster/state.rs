//! What is written down about the cluster that runs.

use std::fs;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::machine::Machine;
use crate::paths::Paths;

/// Written when a cluster is complete, and again for each node that joins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    /// Of all configurations and programs that it was started with.
    pub fingerprint: String,
    /// How many nodes it has.
    pub nodes: u8,
}

impl State {
    /// The state of the cluster that was started last, if its start was completed.
    pub fn read(paths: &Paths) -> Option<Self> {
        serde_json::from_str(&fs::read_to_string(paths.run().join("state.json")).ok()?).ok()
    }

    /// All machines of the cluster, the control machine first.
    pub fn machines(&self) -> Vec<Machine> {
        std::iter::once(Machine::Control).chain(self.nodes()).collect()
    }

    /// The machines that run pods.
    pub fn nodes(&self) -> impl Iterator<Item = Machine> + use<> {
        (1..=self.nodes).map(Machine::Node)
    }

    pub(super) fn write(&self, paths: &Paths) -> Result<()> {
        let path = paths.run().join("state.json");
        let text = serde_json::to_string(self)
            .map_err(|source| Error::Document { what: path.display().to_string(), source })?;
        fs::write(&path, text).map_err(Error::file("write", &path))
    }
}
