//! The serving side: one table of components behind one lock, under which children are started and reaped,
//! so that no child's end is taken for another's.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use super::protocol::{ComponentState, ComponentStatus, Request, Response, Start};
use crate::error::{Error, Result};
use crate::machine::Machine;
use crate::paths::Paths;

/// How long an ended child may wait to be reaped.
const REAP_EVERY: Duration = Duration::from_millis(100);

type Table = Arc<Mutex<Vec<ComponentStatus>>>;

/// Serves requests until the process is killed. Returns only with an error: the socket cannot be bound.
pub(super) fn serve(paths: &Paths, machine: Machine) -> Result<()> {
    let table = Table::default();
    let socket = paths.socket(machine);
    let listener = UnixListener::bind(&socket).map_err(Error::file("listen on", &socket))?;
    let reaped = Arc::clone(&table);
    thread::spawn(move || {
        loop {
            with(&reaped, |components| reap(components));
            thread::sleep(REAP_EVERY);
        }
    });
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        let table = Arc::clone(&table);
        thread::spawn(move || answer(&stream, &table));
    }
    Ok(())
}

fn with<T>(table: &Table, work: impl FnOnce(&mut Vec<ComponentStatus>) -> T) -> T {
    work(&mut table.lock().unwrap_or_else(PoisonError::into_inner))
}

fn answer(stream: &UnixStream, table: &Table) {
    let mut line = String::new();
    if BufReader::new(stream).read_line(&mut line).is_err() {
        return;
    }
    let response = match serde_json::from_str(&line) {
        Ok(request) => with(table, |components| handle(request, components)),
        Err(error) => Response::Refused(format!("the request cannot be read: {error}")),
    };
    if let Ok(text) = serde_json::to_string(&response) {
        // The asker may be gone; then nobody misses the answer.
        let _ = writeln!(&*stream, "{text}");
    }
}

fn handle(request: Request, components: &mut Vec<ComponentStatus>) -> Response {
    reap(components);
    match request {
        Request::List => Response::Components(components.clone()),
        Request::Start(start) => match running(components, &start.name) {
            Some(_) => Response::Refused(format!("{} runs already", start.name)),
            None => started(&start, components),
        },
        Request::Signal { name, signal } => match (running(components, &name), signal_of(signal)) {
            (None, _) => Response::Refused(format!("{name} does not run")),
            (_, None) => Response::Refused(format!("signal {signal} is not one of 1, 9, 15, 18 and 19")),
            (Some(pid), Some(signal)) => match rustix::process::kill_process(pid, signal) {
                Ok(()) => Response::Done,
                Err(error) => Response::Refused(format!("{name} cannot be signalled: {error}")),
            },
        },
    }
}

fn running(components: &[ComponentStatus], name: &str) -> Option<Pid> {
    let found = components.iter().find(|it| it.name == name && it.state == ComponentState::Running)?;
    i32::try_from(found.pid).ok().and_then(Pid::from_raw)
}

fn signal_of(number: i32) -> Option<Signal> {
    [Signal::HUP, Signal::KILL, Signal::TERM, Signal::CONT, Signal::STOP]
        .into_iter()
        .find(|signal| signal.as_raw() == number)
}

fn started(start: &Start, components: &mut Vec<ComponentStatus>) -> Response {
    let spawned = OpenOptions::new().create(true).append(true).open(&start.log).and_then(|log| {
        let [program, arguments @ ..] = start.argv.as_slice() else {
            return Err(std::io::ErrorKind::InvalidInput.into());
        };
        Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
    });
    match spawned {
        Ok(child) => {
            components.retain(|it| it.name != start.name);
            components.push(ComponentStatus {
                name: start.name.clone(),
                pid: child.id(),
                state: ComponentState::Running,
            });
            Response::Done
        }
        Err(error) => Response::Refused(format!("{} cannot be started: {error}", start.argv.join(" "))),
    }
}

fn reap(components: &mut [ComponentStatus]) {
    while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        let pid = pid.as_raw_nonzero().get().unsigned_abs();
        if let Some(component) =
            components.iter_mut().find(|it| it.pid == pid && it.state == ComponentState::Running)
        {
            component.state = ComponentState::Ended(how_it_ended(status));
        }
    }
}

fn how_it_ended(status: WaitStatus) -> String {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (_, Some(signal)) => format!("signal {signal}"),
        (None, None) => "unknown".to_owned(),
    }
}
