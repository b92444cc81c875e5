//! Durations as users write them: the Gateway API form (GEP-2257), such as `15s`, `500ms` or `1m30s`.

use std::fmt::Write as _;
use std::time::Duration;

/// A text that is no duration.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "{found:?} is not a duration: write one to four numbers of at most five digits, each with h, m, s or ms, such as 15s, 500ms or 1m30s"
)]
pub struct DurationError {
    found: String,
}

/// The duration that `text` says, by the pattern `^([0-9]{1,5}(h|m|s|ms)){1,4}$` and at most 24 characters.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let error = || DurationError { found: text.chars().take(40).collect() };
    if text.len() > 24 {
        return Err(error());
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    for _ in 0..4 {
        let (part, after) = component(rest).ok_or_else(error)?;
        total += part;
        rest = after;
        if rest.is_empty() {
            return Ok(total);
        }
    }
    Err(error())
}

/// The duration in the form that [`parse`] reads, whole milliseconds, as short as can be: `9s500ms`, `0s`.
pub fn format(duration: Duration) -> String {
    let milliseconds = duration.as_millis();
    let mut text = String::new();
    let parts = [
        (milliseconds / 3_600_000, "h"),
        (milliseconds / 60_000 % 60, "m"),
        (milliseconds / 1000 % 60, "s"),
        (milliseconds % 1000, "ms"),
    ];
    for (number, unit) in parts {
        if number > 0 {
            // Writing to a String cannot fail.
            let _ = write!(text, "{number}{unit}");
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

/// The duration in seconds as people read sums: `9.2s`, `15s`.
pub fn in_seconds(duration: Duration) -> String {
    let milliseconds = duration.as_millis();
    let text = format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000);
    format!("{}s", text.trim_end_matches('0').trim_end_matches('.'))
}

fn component(text: &str) -> Option<(Duration, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if !(1..=5).contains(&digits) {
        return None;
    }
    let (number, rest) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let (unit, rest) = [("ms", 1), ("h", 3_600_000), ("m", 60_000), ("s", 1000)]
        .into_iter()
        .find_map(|(unit, length)| rest.strip_prefix(unit).map(|rest| (length, rest)))?;
    Some((Duration::from_millis(number * unit), rest))
}

#[cfg(test)]
mod tests;
