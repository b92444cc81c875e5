//! A process of the tests: it is waited for with patience, and killed when it is forgotten.
#![allow(clippy::disallowed_types, reason = "these waits belong to the tests and judge no lease")]

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tempfile::tempfile;

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running process whose output is kept.
#[derive(Debug)]
pub struct Job {
    child: Option<Child>,
    // Files, not pipes: the end of a pipe is waited for as long as anything that the process left behind holds it.
    stdout: File,
    stderr: File,
    patience: Duration,
}

/// How a process ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its exit code; `None` for a signal.
    pub code: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it complained of.
    pub stderr: String,
}

// === impl Job ===

impl Job {
    pub(crate) fn start(command: &mut Command) -> anyhow::Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let (stdout, stderr) = (tempfile()?, tempfile()?);
        command.stdin(Stdio::null()).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
        let child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        Ok(Self { child: Some(child), stdout, stderr, patience: PATIENCE })
    }

    /// The same, waited for longer.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Waits for its end.
    pub fn ended(mut self) -> anyhow::Result<Ended> {
        let until = Instant::now() + self.patience;
        let child = self.child.as_mut().context("a job ends once")?;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if Instant::now() > until {
                child.kill()?;
                bail!("still running after {:?}: {:?}", self.patience, child.wait()?);
            }
            thread::sleep(Duration::from_millis(10));
        };
        self.child = None;
        Ok(Ended { code: status.code(), stdout: text(&mut self.stdout)?, stderr: text(&mut self.stderr)? })
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Its death is wanted, however it comes about.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// All that was written to a file.
fn text(file: &mut File) -> anyhow::Result<String> {
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// Waits until something is there.
pub(crate) fn eventually<T>(
    what: &str,
    mut look: impl FnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if Instant::now() > until {
            bail!("waited {PATIENCE:?} for {what}, in vain");
        }
        thread::sleep(Duration::from_millis(20));
    }
}
