//! A gate of its own for one test.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use tempfile::TempDir;

use super::{Client, KEY};

/// What outlives a gate: its store and its keys.
#[derive(Debug)]
pub(crate) struct Store {
    folder: TempDir,
}

/// How a gate is started.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) backend: SocketAddr,
    pub(crate) flags: Vec<String>,
    /// A shell script around the gate, which runs it as `"$@"`.
    pub(crate) around: Option<String>,
}

/// A gate process. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Gate {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
    log: Arc<Mutex<String>>,
}

impl Store {
    pub(crate) fn new() -> Self {
        let store = Self { folder: TempDir::new().unwrap() };
        std::fs::create_dir(store.keys()).unwrap();
        store.set_key("shop_report", KEY);
        store
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(crate) fn keys(&self) -> PathBuf {
        self.folder.path().join("keys")
    }

    pub(crate) fn set_key(&self, file: &str, text: &str) {
        let new = self.folder.path().join("new-key");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, self.keys().join(file)).unwrap();
    }
}

impl Setup {
    pub(crate) fn new(backend: SocketAddr) -> Self {
        Self { backend, flags: Vec::new(), around: None }
    }

    pub(crate) fn with(mut self, flags: &[&str]) -> Self {
        self.flags.extend(flags.iter().map(|flag| (*flag).to_owned()));
        self
    }

    pub(crate) fn command(&self, store: &Store) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        if let Some(script) = &self.around {
            command.args(["sh", "-c", script, "sh"]);
        }
        command.arg(env!("CARGO_BIN_EXE_fencedlease-gate"));
        command.args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
        if !self.flags.iter().any(|flag| flag == "--backend") {
            command.arg("--backend").arg(format!("http://{}", self.backend));
        }
        command.arg("--data").arg(store.data()).arg("--keys").arg(store.keys());
        if !self.flags.iter().any(|flag| flag == "--guard") {
            command.args(["--guard", "shop/report=/"]);
        }
        if !self.flags.iter().any(|flag| flag == "--drain-ms") {
            command.args(["--drain-ms", "300"]);
        }
        command.args(&self.flags).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// Starts a gate that has to come up.
    pub(crate) fn start(&self, store: &Store) -> Gate {
        let mut child = self.command(store).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let log = Arc::new(Mutex::new(String::new()));
        let (listen, admin) = (next_address(&mut lines, &log), next_address(&mut lines, &log));
        let copy = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                copy.lock().unwrap().push_str(&(line + "\n"));
            }
        });
        Gate { child, address: listen, admin, log }
    }

    /// Starts a gate that has to refuse; its log.
    pub(crate) fn refused(&self, store: &Store) -> String {
        let mut child = self.command(store).spawn().unwrap();
        let mut stderr = child.stderr.take().unwrap();
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            let mut log = String::new();
            stderr.read_to_string(&mut log).unwrap();
            tell.send(log).unwrap();
        });
        let log = told.recv_timeout(Duration::from_secs(30));
        let _ = child.kill();
        assert!(!child.wait().unwrap().success());
        log.expect("it went on instead of refusing")
    }
}

impl Gate {
    pub(crate) fn client(&self) -> Client {
        Client::connect(self.address)
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn terminate(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    pub(crate) fn wait(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    pub(crate) fn admin(&self, path: &str) -> (u16, String) {
        let answer = Client::connect(self.admin).send("GET", path, &[], b"");
        (answer.status, answer.text())
    }

    pub(crate) fn metric(&self, line: &str) -> u64 {
        let (_, text) = self.admin("/metrics");
        let value = text.lines().find_map(|it| it.strip_prefix(line)?.strip_prefix(' '));
        value.map_or(0, |value| value.parse().unwrap())
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn next_address(lines: &mut impl std::io::BufRead, log: &Mutex<String>) -> SocketAddr {
    loop {
        let mut line = String::new();
        let read = lines.read_line(&mut line).unwrap();
        log.lock().unwrap().push_str(&line);
        assert!(read > 0, "the gate ended: {}", log.lock().unwrap());
        if let Some((_, rest)) = line.split_once("address=") {
            return rest.split(' ').next().unwrap().parse().unwrap();
        }
    }
}

/// The store's log.
impl AsRef<Path> for Store {
    fn as_ref(&self) -> &Path {
        self.folder.path()
    }
}
