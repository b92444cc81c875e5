//! A Python program that uses the recipes as applications do: how is it asked, and how does it answer?

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use fencedlease_cluster::paths::Paths;
use fencedlease_cluster::tools;
use serde_json::{Value, json};

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/driver/objects.py");
const RECIPES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guards/object-stores");

/// How long one answer is waited for.
const LIMIT: Duration = Duration::from_secs(60);

/// The running program. It ends when its input does: with this, and with the tests.
#[derive(Debug)]
pub(super) struct Driver {
    child: Child,
    input: Mutex<ChildStdin>,
    waiting: Waiting,
    numbers: AtomicU64,
}

/// Who waits for the answer to which request.
type Waiting = Arc<Mutex<HashMap<u64, Sender<Value>>>>;

// === impl Driver ===

impl Driver {
    /// Starts the program. Fails if Python or its packages are not there.
    pub(super) fn start() -> anyhow::Result<Self> {
        let packages = tools::python_packages(&Paths::from_env()?)?;
        let mut child = Command::new("python3")
            .arg(PROGRAM)
            .env("PYTHONPATH", format!("{RECIPES}:{}", packages.display()))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("python3 cannot be run; install it with `apt-get install -y python3`")?;
        let (input, output) =
            child.stdin.take().zip(child.stdout.take()).context("the driver has no pipes")?;
        let waiting = Waiting::default();
        let readers = Arc::clone(&waiting);
        thread::Builder::new().name("driver".to_owned()).spawn(move || deliver(output, &readers))?;
        Ok(Self { child, input: Mutex::new(input), waiting, numbers: AtomicU64::new(1) })
    }

    /// Sends a request and waits for its answer. `before_put` is called when a request that says `pause` is about
    /// to put, which then goes on.
    pub(super) fn ask(&self, mut request: Value, before_put: &dyn Fn()) -> anyhow::Result<Value> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        request["id"] = json!(number);
        let (sender, answers) = mpsc::channel();
        lock(&self.waiting).insert(number, sender);
        let answer = self.send(&request).and_then(|()| self.answer(number, &answers, before_put));
        lock(&self.waiting).remove(&number);
        answer
    }

    fn answer(&self, number: u64, answers: &Receiver<Value>, before_put: &dyn Fn()) -> anyhow::Result<Value> {
        loop {
            let answer = answers.recv_timeout(LIMIT).map_err(|error| anyhow!("no answer: {error}"))?;
            if answer["putting"] != json!(true) {
                return Ok(answer);
            }
            before_put();
            self.send(&json!({ "go": number }))?;
        }
    }

    fn send(&self, line: &Value) -> anyhow::Result<()> {
        Ok(writeln!(lock(&self.input), "{line}")?)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // It is gone already, or is killed now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Brings each answer to who waits for it, until the program ends.
fn deliver(output: ChildStdout, waiting: &Waiting) {
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        let answer: Value = serde_json::from_str(&line).unwrap_or_default();
        let number = answer["id"].as_u64().unwrap_or_default();
        if let Some(waiter) = lock(waiting).get(&number) {
            // Who waited too long is gone.
            let _ = waiter.send(answer);
        }
    }
    lock(waiting).clear();
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
