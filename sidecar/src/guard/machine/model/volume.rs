//! The private volume, which outlives a sidecar: the note of a holding and the page beside it.

use fencedlease_core::BootTime;
use fencedlease_wire::{Fence, HoldingId};

use crate::hold::pod::{FileOrder, Interrupted, Mark};

#[derive(Clone, Debug, Default, Hash, PartialEq)]
pub(super) struct Volume {
    note: Option<Note>,
    confirmed_at: BootTime,
    end: Option<(HoldingId, End)>,
}

#[derive(Clone, Debug, Hash, PartialEq)]
struct Note {
    holding: HoldingId,
    fence: Fence,
    grants: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq)]
enum End {
    Lost,
    Released,
}

// === impl Volume ===

impl Volume {
    pub(super) fn mark(&mut self, mark: &Mark) {
        match mark {
            Mark::Confirmed(at) => self.confirmed_at = BootTime::from_millis(at.as_millis()),
            Mark::Lost(holding) => self.end = Some((holding.clone(), End::Lost)),
            Mark::Released(holding) => self.end = Some((holding.clone(), End::Released)),
        }
    }

    /// Writes. Answers which holding is noted now, if that is to be told.
    pub(super) fn write(&mut self, order: FileOrder) -> Option<HoldingId> {
        match order {
            FileOrder::Hold { holding, fence, grants } => {
                self.note = Some(Note { holding: holding.clone(), fence, grants });
                Some(holding)
            }
            FileOrder::Grants { holding, fence, grants } => {
                self.note = Some(Note { holding, fence, grants });
                None
            }
            FileOrder::RemoveNote => {
                self.note = None;
                None
            }
            FileOrder::RemoveFence | FileOrder::Lost(_) => None,
        }
    }

    /// What a sidecar that starts now finds.
    pub(super) fn interrupted(&self, now: BootTime) -> Option<Interrupted> {
        let note = self.note.clone()?;
        let end = self.end.as_ref().filter(|(holding, _)| *holding == note.holding).map(|(_, end)| *end);
        (end != Some(End::Released)).then(|| Interrupted {
            holding: note.holding,
            fence: note.fence,
            confirmed_at: self.confirmed_at.min(now),
            loss_was_noted: end == Some(End::Lost),
            grants: note.grants,
        })
    }
}
