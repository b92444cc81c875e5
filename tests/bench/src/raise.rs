//! What does a raise cost, beside the disk's own sync?

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use fencedlease_wire::gate::RAISE_PATH;
use rustix::process::{Pid, Signal, kill_process};

use crate::connection::Connection;
use crate::figures::{count, ms, percentile};
use crate::proxies::{Proxy, ticket};
use crate::table::{Bound, Line, Table};

/// How many raises are timed, and how many are counted.
const RAISES: usize = 200;
/// About as long as a record of the store.
const RECORD: &[u8] = &[b'x'; 80];
/// How often it is looked whether the gate is traced, and how many times.
const ASK_EVERY: Duration = Duration::from_millis(10);
const ASKS: u32 = 1000;

/// Times raises in turns with syncs of a file beside the store, then counts the gate's syncs.
pub fn measure(gate: &Proxy) -> anyhow::Result<Table> {
    let mut holder = Raises { connection: Connection::to(gate.address)?, fence: 1 };
    let mut file = File::options().create(true).append(true).open(gate.folder.path().join("own-sync"))?;
    let (mut raise_times, mut sync_times) = (Vec::new(), Vec::new());
    for _ in 0..RAISES {
        let start = Instant::now();
        holder.raise()?;
        raise_times.push(start.elapsed());
        let start = Instant::now();
        file.write_all(RECORD)?;
        file.sync_data()?;
        sync_times.push(start.elapsed());
    }
    let syncs = syncs(gate, || (0..RAISES).try_for_each(|_| holder.raise()))?;
    let (raise, sync) = (ms(percentile(&raise_times, 500)), ms(percentile(&sync_times, 500)));
    let lines = vec![
        Line {
            what: "syncs a raise".to_owned(),
            of: format!("{syncs} calls of fsync or fdatasync in {RAISES} raises"),
            figure: count(syncs) / count(RAISES),
            unit: "",
            bound: Bound::AtMost(1.0),
        },
        Line {
            what: "a raise, beside a sync".to_owned(),
            of: format!("raise {raise:.3} ms, write and fdatasync of a file {sync:.3} ms; p50"),
            figure: raise / sync,
            unit: "×",
            bound: Bound::None,
        },
    ];
    Ok(Table {
        title: format!("A raise of the gate, beside its disk's own sync: {RAISES} of each in turns"),
        lines,
    })
}

/// Raises one fence after the other.
struct Raises {
    connection: Connection,
    fence: u64,
}

impl Raises {
    fn raise(&mut self) -> anyhow::Result<()> {
        self.fence += 1;
        let ticket = ticket(self.fence)?;
        let head = format!("POST {RAISE_PATH} HTTP/1.1\r\nhost: gate\r\ncontent-length: 0\r\n{ticket}\r\n");
        self.connection.exchange(&head, b"")
    }
}

/// How often the gate synced a file meanwhile, as the kernel saw it.
fn syncs(gate: &Proxy, meanwhile: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<usize> {
    let calls = gate.folder.path().join("calls");
    let mut strace = trace(gate.pid(), &calls)?;
    let done = meanwhile();
    // It lets the gate go on and ends.
    let _ = kill_process(Pid::from_child(&strace), Signal::INT);
    strace.wait()?;
    done?;
    let text = fs::read_to_string(&calls)?;
    Ok(text.lines().filter(|line| line.contains("sync(")).count())
}

fn trace(pid: u32, calls: &Path) -> anyhow::Result<Child> {
    let mut strace = Command::new("strace")
        .args(["--follow-forks", "--quiet=all", "--trace=fsync,fdatasync", "--output"])
        .arg(calls)
        .args(["--attach", &pid.to_string()])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot run strace; install it with `apt-get install -y strace`")?;
    for _ in 0..ASKS {
        if let Some(status) = strace.try_wait()? {
            bail!("strace ended ({status}) instead of counting the gate's calls; run this as root");
        }
        if is_traced(pid)? {
            return Ok(strace);
        }
        thread::sleep(ASK_EVERY);
    }
    let _ = strace.kill();
    bail!("strace did not attach to the gate in time")
}

/// Whether each of its threads is.
fn is_traced(pid: u32) -> anyhow::Result<bool> {
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let status = fs::read_to_string(task?.path().join("status"))?;
        if status.contains("TracerPid:\t0\n") {
            return Ok(false);
        }
    }
    Ok(true)
}
