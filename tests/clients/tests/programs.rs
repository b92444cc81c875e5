//! Each how-to does what docs/applications.md says of it, in every language.
#![allow(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::sync::LazyLock;
use std::time::Duration;

use fencedlease_client_tests::{Program, World};

static PROGRAMS: LazyLock<Vec<Program>> = LazyLock::new(|| Program::all().unwrap());

const COMPLETE: i32 = 0;
const CANCELLED: i32 = 10;
const TOO_LATE: i32 = 11;
const REFUSED: i32 = 12;
const LOST: i32 = 195;
const PLANNED_END: i32 = 196;

#[test]
fn a_line_is_written_once_however_often_it_is_sent() {
    let world = World::start().unwrap();
    let mut fence = 0;
    for program in &*PROGRAMS {
        let run = program.language;
        let settings = [("REPORT_RUN", run), ("REPORT_LINES", "3")];
        let first = world.guarded_for_long(program, &[], &settings).unwrap().ended().unwrap();
        assert_eq!((first.code, &*first.stdout), (Some(COMPLETE), "complete\n"), "{run}: {first:?}");
        let written = world.lines(run).unwrap();
        fence += 1;
        assert_eq!(written, [(1, fence), (2, fence), (3, fence)], "{run}");
        // As after a commit whose confirmation did not arrive: the lines are sent again.
        let again = [("REPORT_RUN", run), ("REPORT_LINES", "4"), ("REPORT_FROM", "2")];
        let second = world.guarded_for_long(program, &[], &again).unwrap().ended().unwrap();
        assert_eq!(second.code, Some(COMPLETE), "{run}: {second:?}");
        fence += 1;
        let expected = [written, vec![(4, fence)]].concat();
        assert_eq!(world.lines(run).unwrap(), expected, "{run}");
    }
}

#[test]
fn what_a_loss_cut_short_is_cancelled_and_goes_on_at_its_next_line() {
    let world = World::start().unwrap();
    for program in &*PROGRAMS {
        let run = program.language;
        let settings = [("REPORT_RUN", run), ("REPORT_LINES", "100000"), ("REPORT_LINE_MS", "300")];
        let job = world.guarded(program, &[], &settings).unwrap();
        world.wait_for_lines(run, 3).unwrap();
        world.redis.stop().unwrap();
        let ended = job.ended().unwrap();
        world.redis.cont().unwrap();
        assert_eq!(ended.code, Some(LOST), "{run}: {ended:?}");
        // The loss may come while a commit check is asked, which then says it first.
        let says_so = ["cancelled: ", "too late: "].iter().any(|word| ended.stdout.starts_with(word));
        assert!(says_so, "{run} was killed before it ended: {ended:?}");
        let before = world.lines(run).unwrap();
        let last = before.len() + 2;
        let settings = [("REPORT_RUN", run), ("REPORT_LINES", &*last.to_string())];
        let resumed = world.guarded_for_long(program, &[], &settings).unwrap().ended().unwrap();
        assert_eq!(resumed.code, Some(COMPLETE), "{run}: {resumed:?}");
        let after = world.lines(run).unwrap();
        let (kept, added) = after.split_at(before.len());
        assert_eq!(kept, before, "{run}");
        let numbers: Vec<usize> = after.iter().map(|(line, _)| usize::try_from(*line).unwrap()).collect();
        assert_eq!(numbers, (1..=last).collect::<Vec<_>>(), "{run} left a line out");
        assert!(added.iter().all(|(_, fence)| *fence > before[0].1), "{run}: {after:?}");
    }
}

#[test]
fn the_socket_alone_cancels_a_program_and_says_why() {
    let world = World::start().unwrap();
    let holder = world.hold_until_lost().unwrap();
    // Pauses so long that the loss comes in one of them: it is the events that tell of it, not a commit check.
    let start = |program: &Program| {
        let settings =
            [("REPORT_RUN", program.language), ("REPORT_LINES", "100000"), ("REPORT_LINE_MS", "15000")];
        world.beside(&holder, program, &settings).unwrap()
    };
    let jobs: Vec<_> = PROGRAMS.iter().map(|program| (program.language, start(program))).collect();
    for (run, _) in &jobs {
        world.wait_for_lines(run, 1).unwrap();
    }
    world.redis.stop().unwrap();
    for (run, job) in jobs {
        let ended = job.ended().unwrap();
        assert_eq!(ended.code, Some(CANCELLED), "{run}: {ended:?}");
        let says = ended.stdout.contains("LOST") && ended.stdout.contains("RenewalTimeout");
        assert!(ended.stdout.starts_with("cancelled: ") && says, "{run}: {ended:?}");
    }
    assert_eq!(holder.job.ended().unwrap().code, Some(LOST));
}

#[test]
fn an_older_fence_is_refused_reported_and_counted() {
    let world = World::start().unwrap();
    let holder = world.hold().unwrap();
    world.raise(7).unwrap();
    let series = "fencedlease_fence_rejections_total{resource_kind=\"postgresql\"} ";
    assert_eq!(holder.metric(series).unwrap(), 0);
    for (index, program) in PROGRAMS.iter().enumerate() {
        let run = program.language;
        let settings = [("REPORT_RUN", run), ("REPORT_LINES", "3")];
        let ended = world.beside(&holder, program, &settings).unwrap().ended().unwrap();
        assert_eq!(ended.code, Some(REFUSED), "{run}: {ended:?}");
        assert!(ended.stdout.contains("fence 7 of holder another was here"), "{run}: {ended:?}");
        assert_eq!(world.lines(run).unwrap(), [], "{run}");
        assert_eq!(holder.metric(series).unwrap(), u64::try_from(index + 1).unwrap(), "{run} reported none");
    }
}

#[test]
fn a_commit_for_which_too_little_remains_is_not_started() {
    let world = World::start().unwrap();
    let holder = world.hold().unwrap();
    for program in &*PROGRAMS {
        let run = program.language;
        let settings = [("REPORT_RUN", run), ("REPORT_LINES", "3"), ("REPORT_NEED_MS", "60000")];
        let ended = world.beside(&holder, program, &settings).unwrap().ended().unwrap();
        assert_eq!(ended.code, Some(TOO_LATE), "{run}: {ended:?}");
        assert!(ended.stdout.starts_with("too late: "), "{run}: {ended:?}");
        assert_eq!(world.lines(run).unwrap(), [], "{run}");
    }
}

#[test]
fn a_job_longer_than_max_hold_goes_on_where_it_was() {
    let world = World::start().unwrap();
    let program = Program::shell().unwrap();
    let settings = [("REPORT_RUN", "long"), ("REPORT_LINES", "66"), ("REPORT_LINE_MS", "1000")];
    let run = || {
        let job = world.guarded_for_long(&program, &["--max-hold", "1m"], &settings).unwrap();
        job.with_patience(Duration::from_secs(180)).ended().unwrap()
    };
    let first = run();
    assert_eq!(first.code, Some(PLANNED_END), "{first:?}");
    let says_so = ["cancelled: ", "too late: "].iter().any(|word| first.stdout.starts_with(word));
    assert!(says_so, "{first:?}");
    assert_eq!(run().code, Some(COMPLETE));
    let lines = world.lines("long").unwrap();
    assert_eq!(lines.iter().map(|(line, _)| *line).collect::<Vec<_>>(), (1..=66).collect::<Vec<_>>());
    assert_eq!((lines[0].1, lines[65].1), (1, 2), "two holders wrote it: {lines:?}");
}
