//! A MariaDB for one test.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::bail;
use mysql::consts::CapabilityFlags;
use mysql::{Conn, OptsBuilder};
use tempfile::TempDir;

use crate::process::{Process, Program, ServerError, free_port};

const PACKAGE: &str = "mariadb-server";
const USER: &str = "mysql";

/// The file that users install.
const INSTALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guards/mariadb/install.sql");
/// The file that takes it out again.
const REMOVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guards/mariadb/remove.sql");

/// A MariaDB on a free port of 127.0.0.1, with a folder of its own, whose user `root` needs no password. It is
/// killed when this is dropped, and when the tests die.
#[derive(Debug)]
pub struct MariadbServer {
    server: Program,
    port: u16,
    settings: Vec<String>,
    process: Mutex<Option<Process>>,
    // Removed last.
    folder: TempDir,
}

// === impl MariadbServer ===

impl MariadbServer {
    /// Starts a server with further settings, such as `--innodb-lock-wait-timeout=1`, and waits until it serves.
    pub fn start(settings: &[&str]) -> Result<Self, ServerError> {
        let server = program("/usr/sbin/mariadbd");
        let folder = server.folder()?;
        let words = [
            "--no-defaults".to_owned(),
            format!("--datadir={}/data", folder.path().display()),
            "--auth-root-authentication-method=normal".to_owned(),
            "--skip-test-db".to_owned(),
            // A starting server removes temporary tables that it finds, those of others too.
            format!("--tmpdir={}", folder.path().display()),
        ];
        program("/usr/bin/mariadb-install-db").prepare(&words)?;
        let settings = settings.iter().map(|&it| it.to_owned()).collect();
        let it = Self { server, port: free_port()?, settings, process: Mutex::default(), folder };
        it.restart()?;
        Ok(it)
    }

    /// The same with the fence check installed from the file that users install.
    pub fn with_fence_check(settings: &[&str]) -> anyhow::Result<Self> {
        let it = Self::start(settings)?;
        it.install()?;
        Ok(it)
    }

    /// Runs the install file.
    pub fn install(&self) -> anyhow::Result<()> {
        self.run_file(INSTALL)
    }

    /// Runs the removal file.
    pub fn remove(&self) -> anyhow::Result<()> {
        self.run_file(REMOVE)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// A connection as `root`.
    pub fn connect(&self) -> mysql::Result<Conn> {
        self.connect_as("root")
    }

    /// A connection as a user who has no password.
    pub fn connect_as(&self, user: &str) -> mysql::Result<Conn> {
        connect_to(self.address(), user)
    }

    /// SIGKILL, if it runs, and a new start on the same port and data.
    pub fn restart(&self) -> Result<(), ServerError> {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut running) = process.take() {
            running.kill();
        }
        let folder = self.folder.path().display();
        let mut words = vec![
            "--no-defaults".to_owned(),
            format!("--datadir={folder}/data"),
            format!("--tmpdir={folder}"),
            format!("--socket={folder}/socket"),
            format!("--pid-file={folder}/pid"),
            format!("--port={}", self.port),
            "--bind-address=127.0.0.1".to_owned(),
            "--skip-name-resolve".to_owned(),
            "--innodb-buffer-pool-size=32M".to_owned(),
        ];
        words.extend(self.settings.iter().cloned());
        *process = Some(self.server.start(&words, &self.log_path(), || self.connect().is_ok())?);
        Ok(())
    }

    /// As users do it: the file's delimiters are the client's business.
    fn run_file(&self, path: &str) -> anyhow::Result<()> {
        let output = Command::new("mariadb")
            .args(["--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--user=root"])
            .arg(format!("--port={}", self.port))
            .stdin(File::open(path)?)
            .output()?;
        if !output.status.success() {
            bail!("{path}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("log")
    }
}

/// A connection to what listens there: a server, or something in front of it.
pub(super) fn connect_to(address: SocketAddr, user: &str) -> mysql::Result<Conn> {
    let options = OptsBuilder::new()
        .ip_or_hostname(Some(address.ip().to_string()))
        .tcp_port(address.port())
        .user(Some(user))
        // Rows found, not rows changed: without it a repeated write looks like a refused one.
        .additional_capabilities(CapabilityFlags::CLIENT_FOUND_ROWS)
        .prefer_socket(false);
    Conn::new(options)
}

fn program(path: &str) -> Program {
    Program { path: Path::new(path).to_owned(), package: PACKAGE, user: Some(USER) }
}
