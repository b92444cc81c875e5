//! A database server for one test: a folder of its own, a free port, an unprivileged user, gone in the end.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, geteuid, kill_process, pidfd_open, pidfd_send_signal};
use tempfile::TempDir;

/// How often a starting server is asked, and how many times: 30 s in all.
const ASK_EVERY: Duration = Duration::from_millis(20);
const ASKS: u32 = 1500;

/// Why a server could not be started or handled.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// A program is not there or cannot be run.
    #[error("cannot run {program}; install it with `apt-get install -y {package}`")]
    Program {
        /// Which one.
        program: String,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// A program that prepares the server failed.
    #[error("{program} failed: {output}")]
    Preparation {
        /// Which one.
        program: String,
        /// What it printed.
        output: String,
    },
    /// The server ended instead of serving.
    #[error("{program} ended ({status}); its log:\n{log}")]
    Ended {
        /// Which one.
        program: String,
        /// Exit code or signal.
        status: String,
        /// Its whole log.
        log: String,
    },
    /// The server did not serve in time.
    #[error("{program} did not serve within 30 s; its log:\n{log}")]
    Silent {
        /// Which one.
        program: String,
        /// Its whole log.
        log: String,
    },
    /// The system refused something else.
    #[error("cannot handle the server's process or files")]
    System(#[from] io::Error),
}

/// Where a server's program lies and who may run it: some servers refuse to run as root.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) package: &'static str,
    /// The user that the package made; none for a server that whoever runs the tests may run.
    pub(crate) user: Option<&'static str>,
}

/// A running server. The kernel ends it when the thread that started it ends, and so after a kill -9 of the tests.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// While it lives, so does the thread that started the process.
    _tie: mpsc::Sender<()>,
}

// === impl Program ===

impl Program {
    /// A command that runs this program as its user.
    pub(crate) fn command(&self) -> Result<Command, ServerError> {
        if !self.path.exists() {
            let program = self.path.display().to_string();
            return Err(ServerError::Program { program, package: self.package });
        }
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        if let Some(user) = self.user.filter(|_| geteuid().is_root()) {
            command.args(["--reuid", user, "--regid", user, "--clear-groups"]);
        }
        command.arg(&self.path).stdin(Stdio::null());
        Ok(command)
    }

    /// A folder that is this program's user's.
    pub(crate) fn folder(&self) -> Result<TempDir, ServerError> {
        let folder = TempDir::with_prefix("fencedlease-server-")?;
        if let Some(name) = self.user.filter(|_| geteuid().is_root()) {
            let (user, group) = ids(name).ok_or_else(|| ServerError::Program {
                program: format!("anything as {name}"),
                package: self.package,
            })?;
            chown(folder.path(), Some(user), Some(group))?;
        }
        Ok(folder)
    }

    /// Runs a program that prepares, and waits for its end.
    pub(crate) fn prepare(&self, arguments: &[String]) -> Result<(), ServerError> {
        let output = self.command()?.args(arguments).output()?;
        if output.status.success() {
            return Ok(());
        }
        let text = [output.stdout, output.stderr].concat();
        Err(ServerError::Preparation {
            program: self.path.display().to_string(),
            output: String::from_utf8_lossy(&text).into_owned(),
        })
    }

    /// Starts the server with its output in `log`, and waits until `serves` says so.
    pub(crate) fn start(
        &self,
        arguments: &[String],
        log: &Path,
        serves: impl Fn() -> bool,
    ) -> Result<Process, ServerError> {
        let file = fs::File::create(log)?;
        let mut command = self.command()?;
        command.args(arguments).stdout(file.try_clone()?).stderr(file);
        let mut process = spawn_tied(command)?;
        let program = || self.path.display().to_string();
        let read_log = || fs::read_to_string(log).unwrap_or_default();
        for _ in 0..ASKS {
            if let Some(status) = process.child.try_wait()? {
                return Err(ServerError::Ended {
                    program: program(),
                    status: status.to_string(),
                    log: read_log(),
                });
            }
            if serves() {
                return Ok(process);
            }
            thread::sleep(ASK_EVERY);
        }
        process.kill();
        Err(ServerError::Silent { program: program(), log: read_log() })
    }
}

// === impl Process ===

impl Process {
    /// SIGKILL to it and to the processes that it started, and waits for the end of all: a server that is started
    /// anew refuses to while one of them still has the old memory.
    pub(crate) fn kill(&mut self) {
        // It may be gone already; what counts is that it is afterwards. Stopped, it starts no further process.
        let _ = kill_process(Pid::from_child(&self.child), Signal::STOP);
        let children = children(self.child.id()).into_iter().filter_map(Pid::from_raw);
        let children: Vec<_> =
            children.filter_map(|child| pidfd_open(child, PidfdFlags::empty()).ok()).collect();
        let _ = self.child.kill();
        for child in &children {
            let _ = pidfd_send_signal(child, Signal::KILL);
        }
        let _ = self.child.wait();
        for child in &children {
            let _ = poll(&mut [PollFd::new(child, PollFlags::IN)], None);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A port that nobody listens on now.
pub(crate) fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn children(pid: u32) -> Vec<i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// User and group id of a user of this machine.
fn ids(user: &str) -> Option<(u32, u32)> {
    let text = fs::read_to_string("/etc/passwd").ok()?;
    let line = text.lines().find(|line| line.split(':').next() == Some(user))?;
    let mut fields = line.split(':').skip(2);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Starts a process from a thread that lives as long as the process is wanted: the signal that `setpriv` asks
/// for comes when that thread ends.
fn spawn_tied(mut command: Command) -> Result<Process, ServerError> {
    let (send_child, receive_child) = mpsc::channel();
    let (tie, wanted) = mpsc::channel::<()>();
    thread::Builder::new().name("database".to_owned()).spawn(move || {
        // A receiver that is gone has no use for the child, and the end of this thread ends it.
        let _ = send_child.send(command.spawn());
        let _ = wanted.recv();
    })?;
    let child = receive_child
        .recv()
        .map_err(io::Error::other)?
        .map_err(|_| ServerError::Program { program: "setpriv".to_owned(), package: "util-linux" })?;
    Ok(Process { child, _tie: tie })
}
