//! A PgBouncer in front of a PostgreSQL, for one test.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

use postgres::{Config, NoTls};
use tempfile::TempDir;

use super::server::{PostgresServer, client_at};
use crate::process::{Process, Program, ServerError, free_port};

/// A PgBouncer in transaction mode whose only server connection all clients share. It is killed when this is
/// dropped, and when the tests die.
#[derive(Debug)]
pub struct PgBouncer {
    port: u16,
    process: Process,
    // Removed last.
    _folder: TempDir,
}

// === impl PgBouncer ===

impl PgBouncer {
    /// Starts one and waits until it serves.
    pub fn start(database: &PostgresServer) -> Result<Self, ServerError> {
        let program = Program {
            path: PathBuf::from("/usr/sbin/pgbouncer"),
            package: "pgbouncer",
            user: Some("postgres"),
        };
        let (folder, port) = (program.folder()?, free_port()?);
        let (settings, users) = (folder.path().join("settings"), folder.path().join("users"));
        fs::write(&users, "\"postgres\" \"\"\n")?;
        let text = format!(
            "[databases]\npostgres = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = trust\nauth_file = {}\n\
             pool_mode = transaction\ndefault_pool_size = 1\n",
            database.address().port(),
            users.display()
        );
        fs::write(&settings, text)?;
        let words = [settings.display().to_string()];
        let answers = || client_at(address(port), "starting").connect(NoTls).is_ok();
        let process = program.start(&words, &folder.path().join("log"), answers)?;
        Ok(Self { port, process, _folder: folder })
    }

    /// How a client of this `application_name` connects through it.
    pub fn client(&self, application_name: &str) -> Config {
        client_at(address(self.port), application_name)
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        self.process.kill();
    }
}

fn address(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}
