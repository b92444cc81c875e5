//! The part of the nemesis run that belongs to every test run.
#![allow(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use fencedlease_faults::matrix::shown;
use fencedlease_nemesis::board::now;
use fencedlease_nemesis::faults::Fault;
use fencedlease_nemesis::run::play;

/// Rows of the fault matrix that random faults show as well.
const ROWS: [(u8, Fault); 8] = [
    (4, Fault::AnswersLost),
    (6, Fault::Cut),
    (9, Fault::AnswersHeld),
    (13, Fault::RedisStopped),
    (16, Fault::RedisKilled),
    (30, Fault::SidecarStopped),
    (31, Fault::SidecarKilled),
    (35, Fault::GuardKilled),
];

#[test]
fn three_hundred_handovers_under_random_faults_show_one_holder_at_a_time() {
    let seed = std::env::var("FENCEDLEASE_SEED").map_or_else(|_| now(), |seed| seed.parse().unwrap());
    println!("FENCEDLEASE_SEED={seed}");
    let report = play(300, seed).unwrap();
    println!("{}", report.text());
    assert!(report.violations.is_empty(), "seed {seed}:\n{}", report.text());
    assert!(report.handovers >= 300 && report.faults.len() > 10, "{report:?}");
    for (row, fault) in ROWS {
        if let Some(count) = report.faults.get(&fault) {
            let outcome = format!("{count} times among {} handovers: one holder at a time", report.handovers);
            shown(&[row], &outcome).unwrap();
        }
    }
}
