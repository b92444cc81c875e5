//! Programs that are built, and the processes of one *exec*.

use std::env;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::history::Said;

/// How long the lease lasts in Redis: the least that is legal.
pub const TTL: Duration = Duration::from_secs(5);

/// Builds a program of the workspace beside this one, and gives its place.
pub fn program(package: &str, name: &str) -> anyhow::Result<PathBuf> {
    let own = env::current_exe()?;
    let folder = own.parent().context("a program lies in a folder")?;
    let profile = if folder.ends_with("deps") { folder.parent().unwrap_or(folder) } else { folder };
    let target = profile.parent().context("a profile's folder lies in the target folder")?;
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "--quiet", "-p", package, "--bin", name]);
    cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR"))).arg("--target-dir").arg(target);
    let output = cargo.output().context("cannot run cargo")?;
    ensure!(output.status.success(), "cargo: {}", String::from_utf8_lossy(&output.stderr));
    Ok(target.join("debug").join(name))
}

/// One *exec*, with its hold, its guard and its workload.
#[derive(Debug)]
pub struct Exec {
    /// Its number among all of its lease's.
    pub run: u64,
    /// Whether it was killed, so that its end proves nothing.
    pub is_killed: bool,
    folder: PathBuf,
    child: Child,
}

/// Which process of an *exec*.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Part {
    /// The one that was started.
    Exec,
    /// The sidecar.
    Hold,
    /// The guard.
    Guard,
}

// === impl Exec ===

impl Exec {
    /// Starts one for this lease with these timings and a workload, below a folder of its own.
    pub fn start(
        binary: &Path,
        lease: &str,
        redis: &str,
        run: u64,
        folder: PathBuf,
        timings: &[&str],
        workload: &[String],
    ) -> anyhow::Result<Self> {
        fs::create_dir(&folder)?;
        let log = File::create(folder.join("log"))?;
        let child = Command::new(binary)
            .args(["exec", "--lease", lease, "--redis", redis, "--name", &format!("run-{run}")])
            .args(timings)
            .args(["--stop-timeout", "5s"])
            .args(["--log-level", "info", "--"])
            .args(workload)
            .env("XDG_RUNTIME_DIR", &folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("cannot start exec")?;
        Ok(Self { run, is_killed: false, folder, child })
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> anyhow::Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    /// Signals each process that plays this part, and answers to how many.
    pub fn signal(&self, part: Part, signal: Signal) -> usize {
        let id = self.child.id();
        let word = match part {
            Part::Exec => "exec",
            Part::Hold => "exec-hold",
            Part::Guard => "exec-guard",
        };
        let mut waiting = vec![id];
        let mut signalled = 0;
        while let Some(process) = waiting.pop() {
            let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            let plays = line.split(|byte| *byte == 0).nth(1) == Some(word.as_bytes());
            let children =
                fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
            waiting.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
            if plays && let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) {
                signalled += usize::from(kill_process(pid, signal).is_ok());
            }
        }
        signalled
    }

    /// Who holds, as its sidecar was told by Redis; `None` while it does not know or does not wait.
    pub fn knows_holder(&self) -> Option<String> {
        let folders = fs::read_dir(&self.folder).ok()?.flatten();
        let socket =
            folders.map(|entry| entry.path().join("shared/lease.sock")).find(|path| path.exists())?;
        let mut stream = UnixStream::connect(socket).ok()?;
        stream.set_read_timeout(Some(Duration::from_millis(300))).ok()?;
        stream.write_all(b"GET /v1/lease HTTP/1.1\r\nhost: lease\r\nconnection: close\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let body: Value = serde_json::from_str(text.split_once("\r\n\r\n")?.1).ok()?;
        Some(body["holder"].as_str()?.to_owned())
    }

    /// What its sidecar said of its holding.
    pub fn said(&self) -> Vec<Said> {
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines
            .filter_map(|line| {
                let fence = line["fence"].as_u64()?;
                match line["message"].as_str()? {
                    "acquired" => Some(Said::Active { fence }),
                    text if text.starts_with("the lease is lost") => {
                        Some(Said::Lost { fence, at: line["at_boottime_ms"].as_u64()? * 1_000_000 })
                    }
                    _ => None,
                }
            })
            .collect()
    }
}

impl Drop for Exec {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            for part in [Part::Guard, Part::Hold, Part::Exec] {
                self.signal(part, Signal::KILL);
            }
        }
        let _ = self.child.wait();
        // Where exec was killed, its sidecar still has files there.
        if !self.is_killed {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}
