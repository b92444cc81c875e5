//! A PostgreSQL for one test.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use postgres::{Client, Config, NoTls};
use tempfile::TempDir;

use crate::process::{Process, Program, ServerError, free_port};

/// Where Debian puts its versions.
const VERSIONS: &str = "/usr/lib/postgresql";
const PACKAGE: &str = "postgresql";
const USER: &str = "postgres";

/// The file that users install.
const INSTALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guards/postgresql/install.sql");
/// The file that takes it out again.
const REMOVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guards/postgresql/remove.sql");

/// A PostgreSQL on a free port of 127.0.0.1, with a folder of its own, whose only database is `postgres` and
/// whose superuser `postgres` needs no password. It is killed when this is dropped, and when the tests die.
#[derive(Debug)]
pub struct PostgresServer {
    server: Program,
    port: u16,
    settings: Vec<String>,
    process: Mutex<Option<Process>>,
    // Removed last.
    folder: TempDir,
}

// === impl PostgresServer ===

impl PostgresServer {
    /// Starts a server with further settings, such as `max_prepared_transactions=5`, and waits until it serves.
    pub fn start(settings: &[&str]) -> Result<Self, ServerError> {
        let server = program("postgres");
        let folder = server.folder()?;
        let data = folder.path().join("data").display().to_string();
        let words =
            ["-D", &data, "-U", USER, "-A", "trust", "--no-sync", "-E", "UTF8", "--locale", "C.UTF-8"];
        program("initdb").prepare(&words.map(str::to_owned))?;
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
        Ok(self.connect("installer")?.batch_execute(&fs::read_to_string(INSTALL)?)?)
    }

    /// Runs the removal file.
    pub fn remove(&self) -> anyhow::Result<()> {
        Ok(self.connect("installer")?.batch_execute(&fs::read_to_string(REMOVE)?)?)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// Everything that it logged since it was last started.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// How a client of this `application_name` connects as `postgres`. Any part may be changed before it does.
    pub fn client(&self, application_name: &str) -> Config {
        client_at(self.address(), application_name)
    }

    /// A connection as `postgres`.
    pub fn connect(&self, application_name: &str) -> Result<Client, postgres::Error> {
        self.client(application_name).connect(NoTls)
    }

    /// SIGKILL to all its processes, if it runs, and a new start on the same port and data.
    pub fn restart(&self) -> Result<(), ServerError> {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut running) = process.take() {
            running.kill();
        }
        let folder = self.folder.path().display();
        let mut words =
            vec!["-D".to_owned(), format!("{folder}/data"), "-p".to_owned(), self.port.to_string()];
        let ours = [
            "listen_addresses=127.0.0.1".to_owned(),
            format!("unix_socket_directories={folder}"),
            "shared_buffers=32MB".to_owned(),
        ];
        for setting in ours.iter().chain(&self.settings) {
            words.extend(["-c".to_owned(), setting.clone()]);
        }
        *process = Some(self.server.start(&words, &self.log_path(), || self.connect("starting").is_ok())?);
        Ok(())
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("log")
    }
}

/// How a client connects as `postgres` to what listens there: a server, or something in front of it.
pub(super) fn client_at(address: SocketAddr, application_name: &str) -> Config {
    let mut config = Config::new();
    config
        .host(&address.ip().to_string())
        .port(address.port())
        .user(USER)
        .dbname("postgres")
        .application_name(application_name);
    config
}

/// A program of the newest PostgreSQL on this machine.
fn program(name: &str) -> Program {
    let versions = fs::read_dir(VERSIONS).into_iter().flatten().filter_map(Result::ok);
    let newest = versions
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .max()
        .map_or_else(|| "none".to_owned(), |version| version.to_string());
    let path = Path::new(VERSIONS).join(newest).join("bin").join(name);
    Program { path, package: PACKAGE, user: Some(USER) }
}
