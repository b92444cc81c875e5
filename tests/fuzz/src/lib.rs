//! Fuzz targets. Each gives any bytes to a shipped parser or decision, without a socket or a clock, and panics where
//! what must hold does not.
//!
//! The corpora in `corpus/` and mutations of them run as plain tests; `make fuzz` lets libFuzzer look for more.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a target panics where it has found something"
)]

pub mod corpus;
pub mod mutate;

mod admission;
mod annotations;
mod gate;
mod guard_words;
mod replies;
mod socket;

/// One thing that reads what others wrote.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, and that of its folder below `corpus/`.
    pub name: &'static str,
    /// Gives it these bytes; panics where what must hold does not.
    pub run: fn(&[u8]),
    /// Words of its language, which random bytes would hardly meet.
    pub words: &'static [&'static str],
}

/// Every target.
pub const TARGETS: [Target; 6] = [
    Target { name: "replies", run: replies::run, words: replies::WORDS },
    Target { name: "socket", run: socket::run, words: socket::WORDS },
    Target { name: "guard-words", run: guard_words::run, words: guard_words::WORDS },
    Target { name: "annotations", run: annotations::run, words: annotations::WORDS },
    Target { name: "admission", run: admission::run, words: admission::WORDS },
    Target { name: "gate", run: gate::run, words: gate::WORDS },
];

/// The target of this name.
pub fn target(name: &str) -> Option<Target> {
    TARGETS.into_iter().find(|target| target.name == name)
}

/// Whether a text fits into one line of a terminal or a log.
fn is_one_line(text: &str) -> bool {
    !text.chars().any(char::is_control)
}
