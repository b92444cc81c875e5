//! The real *exec*, which holds the lease and raises at a gate.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::Context as _;
use fencedlease_faults::{RedisServer, SHORT_TIMINGS};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::http::{Answer, over_socket, over_tcp};
use crate::{KEY, Place, RESOURCE, build, eventually, free_port, signal};

/// A Redis and a place for a gate.
#[derive(Debug)]
pub struct World {
    /// Where the lease lies.
    pub redis: RedisServer,
    /// Where the gate is.
    pub place: Place,
    program: PathBuf,
}

/// One *exec* with its sidecar and guard. It is killed when this is dropped, and they with it.
#[derive(Debug)]
pub struct Holder {
    child: Child,
    folder: TempDir,
    metrics_port: u16,
}

// === impl World ===

impl World {
    /// Nobody holds, and no gate runs.
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self {
            redis: RedisServer::start()?,
            place: Place::new()?,
            program: build::program("fencedlease-sidecar", "fencedlease")?,
        })
    }

    /// Somebody who wants the lease, with [`KEY`] and the gate over plain HTTP.
    pub fn holder(&self, name: &str) -> anyhow::Result<Holder> {
        let gate = format!("reports=http://{}", self.place.address);
        self.holder_with(name, &["--gate", &gate])
    }

    /// The same with options of its own. The workload notes that it was started, and then waits.
    pub fn holder_with(&self, name: &str, options: &[&str]) -> anyhow::Result<Holder> {
        let folder = TempDir::new()?;
        let key = folder.path().join("key");
        fs::write(&key, KEY)?;
        let log = File::create(folder.path().join("log"))?;
        let metrics_port = free_port()?;
        let child = Command::new(&self.program)
            .args(["exec", "--lease", RESOURCE, "--redis", &self.redis.address().to_string()])
            .args(["--name", name, "--log-level", "info", "--metrics-port", &metrics_port.to_string()])
            .args(SHORT_TIMINGS)
            .arg("--gate-key-file")
            .arg(&key)
            .args(options)
            .args(["--", "/bin/sh", "-c", "echo $FENCEDLEASE_FENCE >>$STARTED; exec sleep 1000"])
            .env("STARTED", folder.path().join("started"))
            // Where its sockets lie.
            .env("XDG_RUNTIME_DIR", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("cannot start exec")?;
        Ok(Holder { child, folder, metrics_port })
    }

    /// The milliseconds after which the lease runs out in Redis; negative if there is none.
    pub fn lease_ms(&self) -> anyhow::Result<i64> {
        Ok(self.redis.cli(&["PTTL", &format!("fencedlease:v1:{{exec/{RESOURCE}}}:lease")])?.trim().parse()?)
    }
}

// === impl Holder ===

impl Holder {
    /// The file with its key.
    pub fn key_file(&self) -> PathBuf {
        self.folder.path().join("key")
    }

    /// What the socket says of the lease.
    pub fn lease(&self) -> anyhow::Result<Value> {
        over_socket(&self.socket()?, "GET", "/v1/lease")?.json()
    }

    /// Asks whether a commit may start.
    pub fn commit_check(&self) -> anyhow::Result<Answer> {
        over_socket(&self.socket()?, "POST", "/v1/commit-check")
    }

    /// The headers for the gate, signed now.
    pub fn headers(&self) -> anyhow::Result<Value> {
        let headers = self.commit_check()?.json()?["headers"].clone();
        anyhow::ensure!(headers["FencedLease"].is_string(), "no ticket: {headers}");
        Ok(headers)
    }

    /// Waits until it holds: the fence.
    pub fn active(&self) -> anyhow::Result<u64> {
        eventually("a holder that is ACTIVE", || {
            let lease = self.lease().ok().filter(|lease| lease["state"] == "ACTIVE");
            Ok(lease.and_then(|lease| lease["fence"].as_u64()))
        })
        .with_context(|| self.log())
    }

    /// Waits until it says this of why it waits: the whole message.
    pub fn waits_saying(&self, words: &str) -> anyhow::Result<String> {
        eventually(words, || {
            let lease = self.lease().ok().filter(|lease| lease["state"] == "WAITING");
            let message = lease.and_then(|lease| lease["message"].as_str().map(str::to_owned));
            Ok(message.filter(|message| message.contains(words)))
        })
        .with_context(|| self.log())
    }

    /// The fences under which its workload was started.
    pub fn started(&self) -> String {
        fs::read_to_string(self.folder.path().join("started")).unwrap_or_default()
    }

    /// One of its series, as it stands now.
    pub fn metric(&self, series: &str) -> anyhow::Result<f64> {
        let at = (std::net::Ipv4Addr::LOCALHOST, self.metrics_port).into();
        let text = over_tcp(at, "GET", "/metrics", &Value::Null, "")?.body;
        let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        Ok(value.with_context(|| format!("no series {series} in {text}"))?.parse()?)
    }

    /// Sends SIGTERM, as an init system does.
    pub fn terminate(&self) -> anyhow::Result<()> {
        signal(self.child.id(), Signal::TERM)
    }

    /// Stops the part that renews, as a starved machine would.
    pub fn freeze(&self) -> anyhow::Result<()> {
        signal(self.sidecar()?, Signal::STOP)
    }

    /// Lets it go on.
    pub fn thaw(&self) -> anyhow::Result<()> {
        signal(self.sidecar()?, Signal::CONT)
    }

    /// Waits for its end.
    pub fn ended(&mut self) -> anyhow::Result<ExitStatus> {
        eventually("the end of exec", || Ok(self.child.try_wait()?))
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// The socket, once it is there.
    pub fn socket(&self) -> anyhow::Result<PathBuf> {
        let is_run_folder = |path: &PathBuf| path.join("shared").is_dir();
        let mut entries = fs::read_dir(self.folder.path())?.flatten().map(|entry| entry.path());
        Ok(entries.find(is_run_folder).context("no socket yet")?.join("shared/lease.sock"))
    }

    fn sidecar(&self) -> anyhow::Result<u32> {
        let exec = self.child.id();
        let children = fs::read_to_string(format!("/proc/{exec}/task/{exec}/children"))?;
        let is_sidecar = |pid: &&str| {
            let words = fs::read(Path::new("/proc").join(pid).join("cmdline")).unwrap_or_default();
            words.split(|byte| *byte == 0).any(|word| word == b"exec-hold")
        };
        Ok(children.split_whitespace().find(is_sidecar).context("no sidecar")?.parse()?)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // A part that was stopped takes no signal but SIGKILL, which its parent's death brings.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
