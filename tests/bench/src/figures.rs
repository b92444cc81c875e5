//! What many measurements say. Pure.

use std::time::Duration;

/// The value below which so many thousandths of all lie, the nearest rank. Zero for none.
pub fn percentile(values: &[Duration], thousandths: usize) -> Duration {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * thousandths).div_ceil(1000);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

/// The middle one, or the mean of the two in the middle. Zero for none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.get(middle.wrapping_sub(1)), sorted.get(middle)) {
        (_, Some(upper)) if sorted.len() % 2 == 1 => *upper,
        (Some(lower), Some(upper)) => f64::midpoint(*lower, *upper),
        _ => 0.0,
    }
}

/// A count as a figure.
pub fn count(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::INFINITY, f64::from)
}

/// In ms.
pub fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests;
