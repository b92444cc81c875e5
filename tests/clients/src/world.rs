//! Redis, PostgreSQL, and a sidecar that holds a lease outside Kubernetes.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::Context as _;
use fencedlease_faults::RedisServer;
use fencedlease_fence_checks::postgresql::PostgresServer;
use tempfile::TempDir;

use crate::job::eventually;
use crate::program::fencedlease;
use crate::scripted::ScriptedSidecar;
use crate::{Job, Program};

/// What every program writes to.
const TABLE: &str =
    "CREATE TABLE report (run text, line int, fence bigint NOT NULL, PRIMARY KEY (run, line))";
/// What they hold.
pub(crate) const RESOURCE: &str = "shop/report";

/// As short as a busy machine can keep, with a grace in which a program can say why it ends.
const TIMINGS: [&str; 12] = [
    "--ttl",
    "8s",
    "--renew-interval",
    "400ms",
    "--renew-timeout",
    "300ms",
    "--grace-period",
    "3s",
    "--kill-budget",
    "500ms",
    "--commit-margin",
    "200ms",
];

/// For what runs for a minute and is not about a loss: on a busy machine a renewal may take a second.
const UNHURRIED: [&str; 12] = [
    "--ttl",
    "30s",
    "--renew-interval",
    "2s",
    "--renew-timeout",
    "5s",
    "--grace-period",
    "5s",
    "--kill-budget",
    "2s",
    "--commit-margin",
    "200ms",
];

/// All that a program needs around it.
#[derive(Debug)]
pub struct World {
    /// Where the lease lies.
    pub redis: RedisServer,
    /// Where the report is written, with the fence check installed.
    pub postgres: PostgresServer,
    // Built when it is wanted first: a test whose sidecar is scripted needs none.
    binary: OnceLock<PathBuf>,
    folder: TempDir,
}

/// A process that holds the lease and does nothing, for programs that run beside it with its environment.
#[derive(Debug)]
pub struct Holder {
    /// *exec*.
    pub job: Job,
    environment: Vec<(String, String)>,
    metrics_port: u16,
}

// === impl World ===

impl World {
    /// Fresh servers, and the table protected under the resource.
    pub fn start() -> anyhow::Result<Self> {
        let postgres = PostgresServer::with_fence_check(&[])?;
        let mut database = postgres.connect("tests")?;
        database.batch_execute(TABLE)?;
        database.execute("SELECT fencedlease.protect('report', $1)", &[&RESOURCE])?;
        let redis = RedisServer::start()?;
        Ok(Self { redis, postgres, binary: OnceLock::new(), folder: TempDir::new()? })
    }

    /// Runs a program guarded, as cron would.
    pub fn guarded(
        &self,
        program: &Program,
        options: &[&str],
        settings: &[(&str, &str)],
    ) -> anyhow::Result<Job> {
        self.run(self.exec(&TIMINGS)?, program, options, settings)
    }

    /// The same for a job that must not lose its lease, however busy the machine is.
    pub fn guarded_for_long(
        &self,
        program: &Program,
        options: &[&str],
        settings: &[(&str, &str)],
    ) -> anyhow::Result<Job> {
        self.run(self.exec(&UNHURRIED)?, program, options, settings)
    }

    fn run(
        &self,
        mut exec: Command,
        program: &Program,
        options: &[&str],
        settings: &[(&str, &str)],
    ) -> anyhow::Result<Job> {
        exec.args(options).arg("--").args(&program.command);
        self.set(&mut exec, settings);
        Job::start(&mut exec)
    }

    /// Holds the lease, on the busiest machine too.
    pub fn hold(&self) -> anyhow::Result<Holder> {
        self.hold_by(&UNHURRIED)
    }

    /// Holds the lease, notices a loss soon and ignores SIGTERM, so that its socket outlives the loss for the grace.
    pub fn hold_until_lost(&self) -> anyhow::Result<Holder> {
        self.hold_by(&TIMINGS)
    }

    fn hold_by(&self, timings: &[&str]) -> anyhow::Result<Holder> {
        let told = self.folder.path().join("environment");
        let metrics_port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let script = format!(
            "trap '' TERM; env | grep ^FENCEDLEASE_ >{0}.new; mv {0}.new {0}; while :; do sleep 0.1; done",
            told.display()
        );
        let port = metrics_port.to_string();
        let mut command = self.exec(timings)?;
        command.args(["--metrics-port", &port, "--", "/bin/sh", "-c", &script]);
        let job = Job::start(&mut command)?;
        let text = eventually("the holder", || Ok(fs::read_to_string(&told).ok()))?;
        fs::remove_file(&told)?;
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        let environment = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Ok(Holder { job, environment, metrics_port })
    }

    /// Runs a program beside a holder: no signal of a guard reaches it, only what the socket says.
    pub fn beside(
        &self,
        holder: &Holder,
        program: &Program,
        settings: &[(&str, &str)],
    ) -> anyhow::Result<Job> {
        self.unguarded(program, &holder.environment, settings)
    }

    /// Runs a program under a sidecar that answers as the test wants.
    pub fn under(
        &self,
        sidecar: &ScriptedSidecar,
        program: &Program,
        settings: &[(&str, &str)],
    ) -> anyhow::Result<Job> {
        self.unguarded(program, &sidecar.environment(), settings)
    }

    fn unguarded(
        &self,
        program: &Program,
        environment: &[(String, String)],
        settings: &[(&str, &str)],
    ) -> anyhow::Result<Job> {
        let (first, rest) = program.command.split_first().context("a program has a command")?;
        let mut command = Command::new(first);
        command.args(rest).envs(environment.iter().map(|(name, value)| (name, value)));
        self.set(&mut command, settings);
        Job::start(&mut command)
    }

    /// Another holder's fence is met by the database.
    pub fn raise(&self, fence: i64) -> anyhow::Result<()> {
        let statement = "SELECT fencedlease.use_fence($1, $2::bigint, 'another')";
        self.postgres.connect("another")?.execute(statement, &[&RESOURCE, &fence])?;
        Ok(())
    }

    /// The lines of a run, and with which fence each was written.
    pub fn lines(&self, run: &str) -> anyhow::Result<Vec<(i32, i64)>> {
        let query = "SELECT line, fence FROM report WHERE run = $1 ORDER BY line";
        let rows = self.postgres.connect("tests")?.query(query, &[&run])?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    /// Waits until a run has so many lines.
    pub fn wait_for_lines(&self, run: &str, count: usize) -> anyhow::Result<()> {
        eventually(&format!("{count} lines of {run}"), || Ok((self.lines(run)?.len() >= count).then_some(())))
    }

    fn exec(&self, timings: &[&str]) -> anyhow::Result<Command> {
        let binary = self.binary.get().cloned().map_or_else(fencedlease, Ok)?;
        let mut command = Command::new(self.binary.get_or_init(|| binary));
        let redis = self.redis.address().to_string();
        command.args(["exec", "--lease", RESOURCE, "--redis", &redis, "--name", "host-a"]);
        command.args(timings);
        Ok(command)
    }

    fn set(&self, command: &mut Command, settings: &[(&str, &str)]) {
        let database = format!("postgresql://postgres@{}/postgres", self.postgres.address());
        command
            .env("REPORT_DATABASE", database)
            .env("REPORT_LINE_MS", "20")
            .env("REPORT_NEED_MS", "500")
            .env_remove("REPORT_FROM")
            .envs(settings.iter().copied());
    }
}

// === impl Holder ===

impl Holder {
    /// One of the sidecar's series, as it stands now.
    pub fn metric(&self, series: &str) -> anyhow::Result<u64> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.metrics_port))?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\nhost: x\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let value = text.lines().find_map(|line| line.strip_prefix(series));
        Ok(value.with_context(|| format!("no series {series} in {text}"))?.trim().parse()?)
    }
}
