//! Waiting for something that happens elsewhere.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Result;

/// The pause between two looks: an eighth of the wait so far, so that a long wait is hardly longer for it and costs the
/// machine little, within these bounds.
const LEAST_PAUSE: Duration = Duration::from_millis(100);
const MOST_PAUSE: Duration = Duration::from_millis(600);

/// How many times longer than a test says its waits on a cluster last at most. What a test says is what a machine at
/// rest needs; a wait ends when its event comes, so that patience costs nothing, and no promise of time is proven by one.
pub const PATIENCE: u32 = 3;

/// A deadline that was missed: what was waited for, the last error, and the state of things. Its debug form
/// is the same text, so that `unwrap` in a test shows it.
pub struct Missed {
    text: String,
}

/// Looks again and again until `look` finds something, and gives it. Looks at least once, and once more after
/// the deadline has passed. An error counts as "not yet"; the last one is part of [`Missed`], and so is what
/// `state` gives.
pub fn eventually<T>(
    within: Duration,
    what: &str,
    mut look: impl FnMut() -> Result<Option<T>>,
    state: impl FnOnce() -> String,
) -> std::result::Result<T, Missed> {
    let began = Instant::now();
    let until = began + within;
    loop {
        let last_look = Instant::now() >= until;
        let problem = match look() {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => String::new(),
            Err(error) => format!("\nthe last look failed: {error}"),
        };
        if last_look {
            let text = format!("not within {} ms: {what}{problem}\n{}", within.as_millis(), state());
            return Err(Missed { text });
        }
        thread::sleep((began.elapsed() / 8).clamp(LEAST_PAUSE, MOST_PAUSE));
    }
}

impl fmt::Display for Missed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl fmt::Debug for Missed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl std::error::Error for Missed {}

#[cfg(test)]
mod tests;
