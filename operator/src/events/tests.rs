use fencedlease_wire::PlannedEnd;

use super::*;

fn fence(number: u64) -> Fence {
    Fence::new(number).unwrap()
}

fn words(news: &News) -> Words {
    news.words("shop/report", "report-7c9-x2k")
}

fn lost(dead_after_ms: Option<u64>, before_deadline_ms: Option<i64>) -> News {
    News::Lost {
        fence: fence(41),
        reason: LossReason::RenewalTimeout,
        message: "no answer from redis:6379 in 1s".to_owned(),
        dead_after_ms,
        before_deadline_ms,
    }
}

#[test]
fn an_acquisition_tells_who_what_and_before_whom() {
    let news = News::Acquired {
        fence: fence(42),
        waited_ms: 412,
        previous_holder: Some("report-7c9-q8d".to_owned()),
        previous_fence: Some(41),
    };
    let words = words(&news);
    assert_eq!((words.reason, words.warning), ("Acquired", false));
    assert_eq!(
        words.note,
        "report-7c9-x2k holds shop/report with fence 42 (waited 0.4s; before it report-7c9-q8d, fence 41)"
    );
}

#[test]
fn a_loss_tells_reason_kill_time_and_what_is_left_to_check() {
    let words = words(&lost(Some(34), Some(5880)));
    assert_eq!((words.reason, words.warning), ("Lost", true));
    assert_eq!(
        words.note,
        "report-7c9-x2k lost fence 41: RenewalTimeout, no answer from redis:6379 in 1s. All processes dead 34 ms later, 5.9s before the deadline. Late writes with fence 41 are refused only where the resource checks it"
    );
}

#[test]
fn a_death_after_the_deadline_is_not_glossed_over() {
    assert!(words(&lost(Some(12_345), Some(-345))).note.contains("0.3s after the deadline"));
}

#[test]
fn a_loss_without_proof_is_another_event() {
    let words = words(&lost(None, None));
    assert_eq!((words.reason, words.warning), ("KillOverdue", true));
    assert!(words.note.contains("not proven dead"), "{}", words.note);
}

#[test]
fn release_and_handover_are_told_in_one_line() {
    let released = News::Released {
        fence: fence(41),
        reason: EndReason::Planned(PlannedEnd::WorkloadEnded),
        held_ms: 3_600_400,
        dead_after_ms: 12,
    };
    assert_eq!(
        words(&released).note,
        "report-7c9-x2k released fence 41 after 1h: WorkloadEnded. All processes were dead 12 ms after the end began"
    );
    let handed_over = News::HandedOver { from: 41, to: fence(42), milliseconds: 8 };
    assert_eq!(words(&handed_over).note, "fence 41 → 42 in 8 ms");
}

#[test]
fn events_of_two_fences_are_never_folded_into_one() {
    let of = |number| {
        let news = News::HandedOver { from: 1, to: fence(number), milliseconds: 8 };
        words(&news).action
    };
    assert_ne!(of(2), of(3));
    assert_eq!(of(2), of(2));
}

#[test]
fn a_note_that_is_too_long_is_cut_between_characters() {
    let news = News::Refused { message: "→".repeat(1000) };
    let event = event(&words(&news), None);
    let note = event.note.unwrap();
    assert!(note.len() <= LONGEST_NOTE && note.chars().all(|character| character == '→'));
}
