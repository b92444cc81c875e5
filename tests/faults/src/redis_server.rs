//! A real Redis for one test: started on a free port, stopped, killed, started again, gone in the end.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// How often a starting server is asked, and how many times.
const ASK_EVERY: Duration = Duration::from_millis(10);
const ASKS: u32 = 3000;
/// Other programs take free ports as well; another one is tried this often.
const PORTS: u32 = 5;

/// A `redis-server` process on a free port of 127.0.0.1, with a folder of its own. Nothing is persisted
/// unless arguments ask for it. It is killed when this is dropped, and when the test program dies.
#[derive(Debug)]
pub struct RedisServer {
    folder: TempDir,
    port: u16,
    arguments: Vec<String>,
    process: Option<Process>,
}

#[derive(Debug)]
struct Process {
    child: Child,
    /// While it lives, so does the thread that started the process.
    _tie: mpsc::Sender<()>,
}

/// Why a Redis could not be started or handled.
#[derive(Debug, thiserror::Error)]
pub enum RedisError {
    /// A program is not there or cannot be run.
    #[error("cannot run {program}; install it with `apt-get install {package}`")]
    Program {
        /// Which one.
        program: &'static str,
        /// The Debian package that has it.
        package: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The server ended instead of serving.
    #[error("redis-server ended ({status}); its log:\n{log}")]
    Ended {
        /// Exit code or signal.
        status: String,
        /// Its whole log.
        log: String,
    },
    /// The server did not answer in time.
    #[error("redis-server did not answer on port {port} within 30 s; its log:\n{log}")]
    Silent {
        /// Where it should listen.
        port: u16,
        /// Its whole log.
        log: String,
    },
    /// `redis-cli` reported an error.
    #[error("redis-cli {words:?} failed: {output}")]
    Cli {
        /// Its arguments.
        words: Vec<String>,
        /// What it printed.
        output: String,
    },
    /// The process is not running.
    #[error("redis-server is not running; start it with restart()")]
    NotRunning,
    /// The system refused something else.
    #[error("cannot handle the redis-server process")]
    System(#[from] io::Error),
}

/// What a server that was asked for a sign of life says.
enum Sign {
    Serves,
    NotYet,
}

// === impl RedisServer ===

impl RedisServer {
    /// Starts a server and waits until it serves.
    pub fn start() -> Result<Self, RedisError> {
        Self::with_args(&[])
    }

    /// Starts a server with further arguments, such as `["--maxmemory", "3mb"]`, and waits until it serves. They
    /// come last, so they win over ours.
    pub fn with_args(arguments: &[&str]) -> Result<Self, RedisError> {
        let mut server = Self {
            folder: TempDir::with_prefix("fencedlease-redis-")?,
            port: 0,
            arguments: arguments.iter().map(|&word| word.to_owned()).collect(),
            process: None,
        };
        let mut port_taken = 0;
        loop {
            server.port = free_port()?;
            match server.restart() {
                Err(RedisError::Ended { log, .. })
                    if port_taken < PORTS && log.contains("Address already in use") =>
                {
                    port_taken += 1;
                }
                Err(error) => return Err(error),
                Ok(()) => return Ok(server),
            }
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// The same as a URL without a password: `redis://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// Its working folder, where its RDB and AOF files lie.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Everything that it logged since it was last started.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// Its process id.
    pub fn pid(&self) -> Result<u32, RedisError> {
        Ok(self.process.as_ref().ok_or(RedisError::NotRunning)?.child.id())
    }

    /// SIGSTOP: it hangs, its connections stay open. Returns when the kernel shows it as stopped.
    pub fn stop(&self) -> Result<(), RedisError> {
        self.signal(Signal::STOP)?;
        while !self.is_stopped()? {
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// SIGCONT: it goes on.
    pub fn cont(&self) -> Result<(), RedisError> {
        self.signal(Signal::CONT)
    }

    /// Whether it is stopped, as the kernel says.
    pub fn is_stopped(&self) -> Result<bool, RedisError> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid()?))?;
        Ok(state_letter(&stat) == Some('T'))
    }

    /// SIGKILL, and waits for its end. What it did not persist is lost.
    pub fn kill(&mut self) -> Result<(), RedisError> {
        let mut process = self.process.take().ok_or(RedisError::NotRunning)?;
        process.child.kill()?;
        process.child.wait()?;
        Ok(())
    }

    /// Kills it if it runs, starts it on the same port and in the same folder, and waits until it serves.
    pub fn restart(&mut self) -> Result<(), RedisError> {
        if self.process.is_some() {
            self.kill()?;
        }
        let _ = fs::remove_file(self.log_path());
        self.process = Some(spawn_tied(self.command())?);
        for _ in 0..ASKS {
            if let Some(process) = &mut self.process
                && let Some(status) = process.child.try_wait()?
            {
                self.process = None;
                return Err(self.ended(status));
            }
            if matches!(self.sign_of_life(), Ok(Sign::Serves)) {
                return Ok(());
            }
            thread::sleep(ASK_EVERY);
        }
        Err(RedisError::Silent { port: self.port, log: self.log() })
    }

    /// Runs `redis-cli` against it and gives what it printed, without the last newline. An error reply is an error.
    pub fn cli(&self, words: &[&str]) -> Result<String, RedisError> {
        let output = Command::new("redis-cli")
            .args(["-e", "-h", "127.0.0.1", "-p", &self.port.to_string()])
            .args(words)
            .stdin(Stdio::null())
            .output()
            .map_err(|source| RedisError::Program { program: "redis-cli", package: "redis-tools", source })?;
        let text = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
        if output.status.success() {
            return Ok(text);
        }
        let words = words.iter().map(|&word| word.to_owned()).collect();
        Err(RedisError::Cli { words, output: text + &String::from_utf8_lossy(&output.stderr) })
    }

    fn ended(&self, status: ExitStatus) -> RedisError {
        // What setpriv exits with when it does not find the program.
        if status.code() == Some(127) {
            let source = io::ErrorKind::NotFound.into();
            return RedisError::Program { program: "redis-server", package: "redis-server", source };
        }
        RedisError::Ended { status: status.to_string(), log: self.log() }
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("redis.log")
    }

    fn signal(&self, signal: Signal) -> Result<(), RedisError> {
        let pid = i32::try_from(self.pid()?).ok().and_then(Pid::from_raw).ok_or(RedisError::NotRunning)?;
        kill_process(pid, signal).map_err(io::Error::from)?;
        Ok(())
    }

    fn command(&self) -> Command {
        // The kernel ends it when the thread that started it ends, and so after a kill -9 of the tests.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "redis-server", "--bind", "127.0.0.1"])
            .args(["--port", &self.port.to_string(), "--save", "", "--appendonly", "no"])
            .arg("--dir")
            .arg(self.folder.path())
            .arg("--logfile")
            .arg(self.log_path())
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    fn sign_of_life(&self) -> io::Result<Sign> {
        let mut stream = TcpStream::connect_timeout(&self.address(), Duration::from_secs(1))?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(b"PING\r\n")?;
        let mut answer = [0; 64];
        let count = stream.read(&mut answer)?;
        // NOAUTH and the like are answers of a server that serves those who know the password.
        let loading = count == 0 || answer.starts_with(b"-LOADING");
        Ok(if loading { Sign::NotYet } else { Sign::Serves })
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        if self.process.is_some() {
            // It is gone already, or the kernel ends it with the thread that it is tied to.
            let _ = self.kill();
        }
    }
}

/// Starts a process from a thread that lives as long as the process is wanted: the signal that `setpriv` asks
/// for comes when that thread ends, and a test's own thread ends with the test.
fn spawn_tied(mut command: Command) -> Result<Process, RedisError> {
    let (send_child, receive_child) = mpsc::channel();
    let (tie, wanted) = mpsc::channel::<()>();
    thread::Builder::new().name("redis-server".to_owned()).spawn(move || {
        // A receiver that is gone has no use for the child, and the end of this thread ends it.
        let _ = send_child.send(command.spawn());
        let _ = wanted.recv();
    })?;
    let child = receive_child.recv().map_err(io::Error::other)?.map_err(|source| RedisError::Program {
        program: "setpriv",
        package: "util-linux",
        source,
    })?;
    Ok(Process { child, _tie: tie })
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// The state of a process in the text of its `/proc/PID/stat`. It follows the name, which may hold anything.
fn state_letter(stat: &str) -> Option<char> {
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

#[cfg(test)]
mod tests;
