//! A process of the tests: it is waited for with patience, and killed when it is forgotten.
#![allow(clippy::disallowed_types, reason = "these waits belong to the tests and judge no lease")]

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running process whose output is kept.
#[derive(Debug)]
pub struct Job {
    child: Option<Child>,
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
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.with_context(|| format!("cannot start {name}"))?;
        Ok(Self { child: Some(child), patience: PATIENCE })
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
        loop {
            let child = self.child.as_mut().context("a job ends once")?;
            if child.try_wait()?.is_some() {
                break;
            }
            if Instant::now() > until {
                child.kill()?;
                bail!("still running after {:?}: {:?}", self.patience, child.wait()?);
            }
            thread::sleep(Duration::from_millis(10));
        }
        let child = self.child.take().context("a job ends once")?;
        let output = child.wait_with_output()?;
        Ok(Ended {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout)?,
            stderr: String::from_utf8(output.stderr)?,
        })
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
