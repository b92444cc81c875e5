//! Each how-to where the sidecar or the database answers late, only half, or not at all.
#![allow(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::io::{self, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use fencedlease_client_tests::scripted::{ScriptedSidecar, active, allowed, answer, events, hang};
use fencedlease_client_tests::{Ended, Program, World};

static PROGRAMS: LazyLock<Vec<Program>> = LazyLock::new(|| Program::all().unwrap());

const COMPLETE: i32 = 0;
const FAILED: i32 = 1;
const CANCELLED: i32 = 10;
const TOO_LATE: i32 = 11;
const REFUSED: i32 = 12;
const UNKNOWN: i32 = 13;

/// Longer than any request's answer is late here. Work is cut short in it, if it is.
const PAUSE: (&str, &str) = ("REPORT_LINE_MS", "20000");

/// Runs every how-to at once under one sidecar, and gives how each ended.
fn all(
    world: &World,
    settings: &[(&str, &str)],
    script: impl Fn(&str, &mut UnixStream) -> io::Result<bool> + Send + Sync + 'static,
) -> Vec<(&'static str, Ended)> {
    let sidecar = ScriptedSidecar::start(script).unwrap();
    let start = |program: &Program| {
        let named = [&[("REPORT_RUN", program.language), ("REPORT_LINES", "1")], settings].concat();
        (program.language, world.under(&sidecar, program, &named).unwrap())
    };
    let jobs: Vec<_> = PROGRAMS.iter().map(start).collect();
    jobs.into_iter().map(|(language, job)| (language, job.ended().unwrap())).collect()
}

/// A script for one path; the others are answered as ever.
fn at(
    path: &'static str,
    script: impl Fn(&mut UnixStream) -> io::Result<()> + Send + Sync + 'static,
) -> impl Fn(&str, &mut UnixStream) -> io::Result<bool> + Send + Sync + 'static {
    move |asked, stream| if asked == path { script(stream).map(|()| true) } else { Ok(false) }
}

#[test]
fn a_refusal_that_cannot_be_reported_is_a_refusal_all_the_same() {
    let world = World::start().unwrap();
    world.raise(100).unwrap();
    let cut = at("/v1/fence-rejected", |_| Ok(()));
    let silent = at("/v1/fence-rejected", hang);
    for ended in [all(&world, &[], cut), all(&world, &[], silent)] {
        for (run, ended) in ended {
            assert_eq!(ended.code, Some(REFUSED), "{run}: {ended:?}");
            let says = ended.stdout.starts_with("refused: ");
            assert!(
                says && ended.stdout.contains("fence 100 of holder another was here"),
                "{run}: {ended:?}"
            );
            assert!(ended.stderr.contains("could not be reported"), "{run}: {ended:?}");
        }
    }
}

#[test]
fn a_yes_that_comes_when_nothing_remains_starts_no_write() {
    let world = World::start().unwrap();
    let late = at("/v1/commit-check", |stream| {
        thread::sleep(Duration::from_secs(1));
        answer(stream, "200 OK", &allowed(500))
    });
    for (run, ended) in all(&world, &[], late) {
        assert_eq!(ended.code, Some(TOO_LATE), "{run}: {ended:?}");
        assert!(ended.stdout.starts_with("too late: "), "{run}: {ended:?}");
        assert_eq!(world.lines(run).unwrap(), [], "{run}");
    }
}

#[test]
fn a_yes_that_breaks_off_starts_no_write() {
    let world = World::start().unwrap();
    let half = at("/v1/commit-check", |stream| {
        let text = allowed(60_000);
        let length = text.len();
        let (begin, _) = text.split_once(",\"headers").unwrap_or_default();
        write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{begin}")
    });
    for (run, ended) in all(&world, &[], half) {
        assert!([Some(FAILED), Some(TOO_LATE)].contains(&ended.code), "{run}: {ended:?}");
        let says = run != "Java" || ended.stdout.contains("broke off: 46 of 60 bytes");
        assert!(says, "{run}: {ended:?}");
        assert_eq!(world.lines(run).unwrap(), [], "{run}");
    }
}

#[test]
fn java_which_knows_no_chunks_says_so() {
    let world = World::start().unwrap();
    let java = PROGRAMS.iter().find(|program| program.language == "Java").unwrap();
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for path in ["/v1/commit-check", "/v1/events"] {
        let sidecar = ScriptedSidecar::start(at(path, move |stream| {
            let text = if path == "/v1/events" { active(60_000) } else { allowed(60_000) };
            write!(stream, "{head}{:x}\r\n{text}\r\n", text.len())?;
            // The stream of events goes on, so that it is not its end that ends the work.
            if path == "/v1/events" { hang(stream) } else { stream.write_all(b"0\r\n\r\n") }
        }))
        .unwrap();
        let settings = [("REPORT_RUN", path), ("REPORT_LINES", "1"), ("REPORT_LINE_MS", "3000")];
        let ended = world.under(&sidecar, java, &settings).unwrap().ended().unwrap();
        assert!([Some(FAILED), Some(CANCELLED)].contains(&ended.code), "{path}: {ended:?}");
        assert!(ended.stdout.contains("in chunks"), "{path}: {ended:?}");
        assert_eq!(world.lines(path).unwrap(), [], "{path}");
    }
}

#[test]
fn a_database_that_does_not_confirm_is_waited_for_while_something_remains() {
    let world = World::start().unwrap();
    let mut other = world.postgres.connect("other").unwrap();
    other.batch_execute("BEGIN; LOCK TABLE report; SELECT 1").unwrap();
    let settings = [("REPORT_FROM", "1")];
    let short = at("/v1/commit-check", |stream| answer(stream, "200 OK", &allowed(8000)));
    for (run, ended) in all(&world, &settings, short) {
        assert_eq!(ended.code, Some(UNKNOWN), "{run}: {ended:?}");
        assert!(ended.stdout.starts_with("unknown: "), "{run}: {ended:?}");
    }
}

#[test]
fn a_database_that_never_says_a_word_ends_the_work_before_its_first_line() {
    let world = World::start().unwrap();
    // The kernel takes the connections, and nobody serves them.
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let database = format!("postgresql://postgres@{}/postgres", deaf.local_addr().unwrap());
    for (run, ended) in all(&world, &[("REPORT_DATABASE", &database)], |_, _| Ok(false)) {
        assert_eq!(ended.code, Some(FAILED), "{run}: {ended:?}");
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(said.contains("the database did not answer within 5"), "{run}: {ended:?}");
    }
}

#[test]
fn events_that_come_when_nothing_remains_cancel_the_work() {
    let world = World::start().unwrap();
    let late = at("/v1/events", |stream| {
        let state = active(500);
        thread::sleep(Duration::from_secs(1));
        events(stream)?;
        writeln!(stream, "{state}")?;
        loop {
            thread::sleep(Duration::from_millis(50));
            writeln!(stream, r#"{{"type":"alive","remainingMs":600000}}"#)?;
        }
    });
    for (run, ended) in all(&world, &[PAUSE], late) {
        assert_eq!(ended.code, Some(CANCELLED), "{run}: {ended:?}");
        assert!(ended.stdout.contains("silent"), "{run}: {ended:?}");
        assert_eq!(world.lines(run).unwrap(), [], "{run}");
    }
}

#[test]
fn a_sidecar_that_takes_the_request_for_events_and_never_answers_cancels_the_work() {
    let world = World::start().unwrap();
    for (run, ended) in all(&world, &[PAUSE], at("/v1/events", hang)) {
        // The Rust client takes the lease itself from the events, so there is nothing yet to cancel.
        let expected = if run == "Rust" { FAILED } else { CANCELLED };
        assert_eq!(ended.code, Some(expected), "{run}: {ended:?}");
        assert_eq!(world.lines(run).unwrap(), [], "{run}");
    }
}

#[test]
fn a_sidecar_that_falls_silent_cancels_the_work() {
    let world = World::start().unwrap();
    let silent = at("/v1/events", |stream| {
        events(stream)?;
        writeln!(stream, "{}", active(3000))?;
        hang(stream)
    });
    for (run, ended) in all(&world, &[PAUSE], silent) {
        assert_eq!(ended.code, Some(CANCELLED), "{run}: {ended:?}");
        assert_eq!(world.lines(run).unwrap(), [], "{run}");
    }
}

#[test]
fn a_stream_that_ends_with_its_connection_is_followed_to_the_loss() {
    let world = World::start().unwrap();
    let lost = at("/v1/events", |stream| {
        events(stream)?;
        writeln!(stream, "{}", active(60_000))?;
        writeln!(stream, r#"{{"type":"alive","remainingMs":60000}}"#)?;
        thread::sleep(Duration::from_millis(500));
        writeln!(
            stream,
            r#"{{"state":"LOST","resource":"shop/report","fence":42,"reason":"KeyGone","message":"no lease"}}"#
        )
    });
    for (run, ended) in all(&world, &[PAUSE], lost) {
        assert_eq!(ended.code, Some(CANCELLED), "{run}: {ended:?}");
        assert!(ended.stdout.contains("LOST") && ended.stdout.contains("KeyGone"), "{run}: {ended:?}");
    }
    let steady = all(&world, &[], |_, _| Ok(false));
    for (run, ended) in steady {
        assert_eq!((ended.code, &*ended.stdout), (Some(COMPLETE), "complete\n"), "{run}: {ended:?}");
        assert_eq!(world.lines(run).unwrap(), [(1, 42)], "{run}");
    }
}
