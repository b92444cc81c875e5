//! What is wrong with what a user wrote, and what is to be done? One text for `kubectl`, Events and conditions.

use std::fmt;

/// One thing that is wrong.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Problem(String);

/// What kind of thing was wrong, for the metric that counts refusals.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cause {
    /// The request is none that the webhook can read.
    Request,
    /// An annotation or label.
    Annotation,
    /// The pod's spec.
    Pod,
    /// The FencedLease's spec.
    Lease,
    /// There is no such FencedLease, or it could not be looked up.
    LeaseUnknown,
    /// Guarded and unguarded pods would run side by side.
    Overlap,
    /// What cannot be changed once it exists.
    Immutable,
}

/// Why a request is refused: everything that is wrong with it, not only the first thing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refusal {
    /// The kind of the first thing.
    pub cause: Cause,
    /// What the texts speak of, such as `Pod shop/report-0 cannot be guarded`.
    pub subject: String,
    /// What is wrong. Never empty.
    pub problems: Vec<Problem>,
}

/// The longest part of a user's value that a text repeats.
const MOST_SHOWN: usize = 80;
/// The longest text about one problem. What a parser says may repeat a value of any length.
const MOST_TEXT: usize = 1500;

impl Problem {
    /// A field, the value found in it, what is accepted, and the next step as a full sentence.
    pub fn new(field: impl fmt::Display, found: &str, accepted: &str, next: &str) -> Self {
        Self::said(format!("{field} is {}; accepted: {accepted}. {next}", shown(found)))
    }

    /// A text that says all of this already.
    pub fn said(text: impl Into<String>) -> Self {
        Self(readable(&text.into(), MOST_TEXT))
    }
}

impl Cause {
    /// The value of the metric's label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Request => "Request",
            Self::Annotation => "Annotation",
            Self::Pod => "Pod",
            Self::Lease => "Lease",
            Self::LeaseUnknown => "LeaseUnknown",
            Self::Overlap => "Overlap",
            Self::Immutable => "Immutable",
        }
    }
}

impl Refusal {
    /// A refusal for these problems.
    pub fn new(cause: Cause, subject: impl Into<String>, problems: Vec<Problem>) -> Self {
        Self { cause, subject: readable(&subject.into(), MOST_TEXT), problems }
    }
}

// === impl Problem ===

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// === impl Refusal ===

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.subject)?;
        if let [problem] = self.problems.as_slice() {
            return write!(f, "{problem}");
        }
        for (index, problem) in self.problems.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(f, "{space}({}) {problem}", index + 1)?;
        }
        Ok(())
    }
}

impl std::error::Error for Refusal {}

/// A user's value as texts show it: on one line, and cut where it is long.
pub fn shown(value: &str) -> String {
    readable(value, MOST_SHOWN)
}

/// A text on one line, cut after so many characters.
pub(crate) fn readable(text: &str, most: usize) -> String {
    let plain = text.chars().map(|char| if char.is_control() { ' ' } else { char });
    let mut cut: String = plain.clone().take(most).collect();
    if plain.count() > most {
        cut.push('…');
    }
    cut
}

/// The known name that `found` was probably meant to be, if one is near enough.
pub fn nearest<'a>(found: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let best =
        known.into_iter().map(|name| (distance(found, name), name)).min_by_key(|(distance, _)| *distance);
    best.filter(|(distance, name)| *distance <= 1 + name.chars().count() / 3).map(|(_, name)| name)
}

/// How many characters must be added, removed or changed to make one text of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, char) in one.chars().take(MOST_SHOWN).enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, counterpart) in other.iter().enumerate() {
            let changed = diagonal + usize::from(char != *counterpart);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests;
