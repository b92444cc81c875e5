//! Events, as `kubectl get events` shows them.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::Event;

use crate::cluster::Items;
use crate::stage::Stage;

impl Stage {
    /// The messages of the events with this reason on a FencedLease.
    pub fn events(&self, lease: &str, reason: &str) -> Result<Vec<String>> {
        let selector = format!("involvedObject.kind=FencedLease,involvedObject.name={lease},reason={reason}");
        let events: Items<Event> = self.get(&["events", "--field-selector", &selector])?;
        Ok(events.items.into_iter().filter_map(|event| event.message).collect())
    }

    /// Waits until a FencedLease has an event with this reason whose message holds these words, and gives it.
    pub fn until_event(&self, lease: &str, reason: &str, words: &str, within: Duration) -> Result<String> {
        let what = format!("FencedLease {lease} has an event {reason} with {words:?}");
        self.eventually(within, &what, |stage| {
            Ok(stage.events(lease, reason)?.into_iter().find(|message| message.contains(words)))
        })
    }
}
