use super::*;

fn times(ms: impl IntoIterator<Item = u64>) -> Vec<Duration> {
    ms.into_iter().map(Duration::from_millis).collect()
}

#[test]
fn a_percentile_is_the_nearest_rank() {
    let hundred = times((1..=100).rev());
    assert_eq!(percentile(&hundred, 500), Duration::from_millis(50));
    assert_eq!(percentile(&hundred, 990), Duration::from_millis(99));
    assert_eq!(percentile(&hundred, 1000), Duration::from_millis(100));
    assert_eq!(percentile(&times([7]), 990), Duration::from_millis(7));
    assert_eq!(percentile(&[], 990), Duration::ZERO);
}

#[test]
fn a_median_is_in_the_middle() {
    assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
    assert!((median(&[4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-9);
    assert!(median(&[]).abs() < 1e-9);
}
