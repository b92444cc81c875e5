//! An object store for one test.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use anyhow::ensure;
use fencedlease_cluster::paths::Paths;
use tempfile::TempDir;

use crate::process::{Process, Program, ServerError, free_port};

/// Which store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// Versity's gateway: S3 on a file system.
    S3,
    /// fake-gcs-server: the interface of Google Cloud Storage on a file system.
    Gcs,
}

/// A store on a free port of 127.0.0.1, with a folder of its own. It is killed when this is dropped, and when the
/// tests die.
#[derive(Debug)]
pub(super) struct ObjectServer {
    kind: Kind,
    program: Program,
    port: u16,
    process: Mutex<Option<Process>>,
    // Removed last.
    folder: TempDir,
}

// === impl ObjectServer ===

impl ObjectServer {
    /// Starts a store and waits until it serves.
    pub(super) fn start(kind: Kind) -> anyhow::Result<Self> {
        let path = program(kind)?;
        let program = Program { path, package: "golang", user: None };
        let folder = program.folder()?;
        fs::create_dir(folder.path().join("data"))?;
        let it = Self { kind, program, port: free_port()?, process: Mutex::default(), folder };
        it.restart()?;
        Ok(it)
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// SIGKILL, if it runs, and a new start on the same port and data.
    pub(super) fn restart(&self) -> Result<(), ServerError> {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut running) = process.take() {
            running.kill();
        }
        let data = self.folder.path().join("data").display().to_string();
        let port = self.port.to_string();
        let address = self.address().to_string();
        let words: &[&str] = match self.kind {
            Kind::S3 => &[
                "--access",
                "access",
                "--secret",
                "secret-of-a-test",
                "--quiet",
                "--port",
                &address,
                "posix",
                &data,
            ],
            Kind::Gcs => &[
                "-scheme",
                "http",
                "-host",
                "127.0.0.1",
                "-port",
                &port,
                "-filesystem-root",
                &data,
                "-log-level",
                "warn",
            ],
        };
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let log = self.folder.path().join("log");
        *process = Some(self.program.start(&words, &log, || TcpStream::connect(self.address()).is_ok())?);
        Ok(())
    }
}

fn program(kind: Kind) -> anyhow::Result<PathBuf> {
    let name = match kind {
        Kind::S3 => "versitygw",
        Kind::Gcs => "fake-gcs-server",
    };
    let path = Paths::from_env()?.bin().join(name);
    ensure!(path.exists(), "{} is not there. Run: make programs", path.display());
    Ok(path)
}
