//! The real gate.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::http::{Answer, over_tcp};
use crate::{Backend, KEY, RESOURCE, build, eventually, free_port, replace, signal};

/// What a gate needs and what outlives it: store, keys, a port, and the backend behind it.
#[derive(Debug)]
pub struct Place {
    /// Where the gate listens.
    pub address: SocketAddr,
    /// What is behind it.
    pub backend: Backend,
    folder: TempDir,
    program: PathBuf,
}

/// A gate process. It is killed when this is dropped.
#[derive(Debug)]
pub struct Gate {
    child: Child,
    address: SocketAddr,
}

// === impl Place ===

impl Place {
    /// A place for a gate whose key is [`KEY`].
    pub fn new() -> anyhow::Result<Self> {
        let folder = TempDir::new()?;
        fs::create_dir(folder.path().join("keys"))?;
        let place = Self {
            address: (Ipv4Addr::LOCALHOST, free_port()?).into(),
            backend: Backend::start()?,
            program: build::program("fencedlease-gate", "fencedlease-gate")?,
            folder,
        };
        place.set_keys(KEY)?;
        Ok(place)
    }

    /// Folder for whatever else a test has.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The keys of the resource from now on.
    pub fn set_keys(&self, text: &str) -> anyhow::Result<()> {
        replace(&self.path().join("keys").join(RESOURCE.replace('/', "_")), text)
    }

    /// Starts a gate, and waits until it listens.
    pub fn start(&self, flags: &[&str]) -> anyhow::Result<Gate> {
        let log = File::options().create(true).append(true).open(self.path().join("gate.log"))?;
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL"])
            .arg(&self.program)
            .args(["--listen", &self.address.to_string(), "--admin", "127.0.0.1:0"])
            .args(["--backend", &format!("http://{}", self.backend.address)])
            .args(["--guard", &format!("{RESOURCE}=/"), "--drain-ms", "200"])
            .arg("--data")
            .arg(self.path().join("data"))
            .arg("--keys")
            .arg(self.path().join("keys"))
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()?;
        let gate = Gate { child, address: self.address };
        eventually("a gate that listens", || Ok(TcpStream::connect(self.address).ok()))?;
        Ok(gate)
    }
}

// === impl Gate ===

impl Gate {
    /// Writes through it with these headers.
    pub fn put(&self, headers: &Value, body: &str) -> anyhow::Result<Answer> {
        over_tcp(self.address, "PUT", "/report", headers, body)
    }

    /// Raises at it with these headers.
    pub fn raise(&self, headers: &Value) -> anyhow::Result<Answer> {
        over_tcp(self.address, "POST", fencedlease_wire::gate::RAISE_PATH, headers, "")
    }

    /// It takes connections and answers nothing.
    pub fn freeze(&self) -> anyhow::Result<()> {
        signal(self.child.id(), Signal::STOP)
    }

    /// It goes on.
    pub fn thaw(&self) -> anyhow::Result<()> {
        signal(self.child.id(), Signal::CONT)
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        // Its death is wanted, however it comes about.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
