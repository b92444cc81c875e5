//! How much may requests weigh together? One pod of thousands of containers, which anybody may write, costs some
//! kilobytes for each JSON object in it; unbounded, it would end the operator for everybody.

use tokio::sync::{Semaphore, SemaphorePermit};

/// The most objects that one request may have, and that those may have together which are answered at a time. Three
/// of four say who wrote a field; with 7 KiB for each of the others that is less than half of the memory that the
/// chart gives.
pub(super) const MOST_OBJECTS: usize = 24_000;
/// So many bytes of body weigh as much as an object.
const BYTES_OF_AN_OBJECT: usize = 128;

/// What is being answered now.
pub(super) struct Load {
    room: Semaphore,
}

/// A request weighs more than may be answered at all.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct TooHeavy {
    /// How many objects it has or weighs.
    pub(super) objects: usize,
}

impl Load {
    /// Nothing is being answered.
    pub(super) fn none() -> Self {
        Self { room: Semaphore::new(MOST_OBJECTS) }
    }

    /// Waits until there is room for this body; it is taken until the answer is dropped.
    pub(super) async fn take(&self, body: &[u8]) -> Result<Option<SemaphorePermit<'_>>, TooHeavy> {
        let objects = weight(body);
        let Some(permits) = u32::try_from(objects).ok().filter(|_| objects <= MOST_OBJECTS) else {
            return Err(TooHeavy { objects });
        };
        // Nobody closes it.
        Ok(self.room.acquire_many(permits).await.ok())
    }
}

fn weight(body: &[u8]) -> usize {
    let objects = body.split(|byte| *byte == b'{').count() - 1;
    objects.max(body.len() / BYTES_OF_AN_OBJECT)
}

#[cfg(test)]
mod tests;
