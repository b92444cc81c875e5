//! A pod: the real sidecar, with folders for its volumes.

use std::fs::{self, File, Permissions};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::container::Container;
use super::http::{Answer, over_socket, over_tcp};
use super::{PATIENCE, eventually};

/// A pod with its sidecar.
pub(crate) struct Pod {
    name: String,
    dir: TempDir,
    state: TempDir,
    pub(crate) settings: Value,
    admin: SocketAddr,
    sidecar: Option<Child>,
}

/// A deadline of 3.7 s and instants that a busy machine can keep.
pub(crate) fn settings(redis: SocketAddr) -> Value {
    json!({
        "resource": {"installation": "test", "namespace": "shop", "name": "report"},
        "timing": {
            "ttlMs": 5000, "renewIntervalMs": 400, "renewTimeoutMs": 300,
            "gracePeriodMs": 300, "killBudgetMs": 500, "commitMarginMs": 200
        },
        "maxHoldMs": 86_400_000,
        "maxHoldWarningMs": 60_000,
        "redis": {"addresses": [redis.to_string()], "database": 0, "credentials": "none"},
        "containers": ["app"],
        "restartPolicy": "Always",
        "standby": {"mode": "warm", "ready": true},
        "afterLoss": "wait",
        "terminationGracePeriodMs": 5000,
        "leaseGeneration": 1,
        "adminPort": 0,
        "logLevel": "debug"
    })
}

impl Pod {
    /// A pod whose sidecar runs, with these changes to the settings.
    pub(crate) fn start(name: &str, redis: SocketAddr, change: impl FnOnce(&mut Value)) -> Self {
        let mut settings = settings(redis);
        change(&mut settings);
        let folder = || tempfile::Builder::new().prefix("fencedlease-hold").tempdir().unwrap();
        let (dir, state) = (folder(), folder());
        for volume in [dir.path(), state.path()] {
            fs::set_permissions(volume, Permissions::from_mode(0o777)).unwrap();
        }
        fs::write(state.path().join("token"), "a token for the endpoint\n").unwrap();
        fs::write(state.path().join("gate-key"), "a".repeat(64)).unwrap();
        fs::create_dir(state.path().join("redis")).unwrap();
        fs::write(state.path().join("redis/password"), "from a Secret\n").unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        settings["adminPort"] = port.into();
        let admin = ([127, 0, 0, 1], port).into();
        let mut pod = Self { name: name.to_owned(), dir, state, settings, admin, sidecar: None };
        pod.start_sidecar();
        pod
    }

    pub(crate) fn start_sidecar(&mut self) {
        let log = File::options().create(true).append(true).open(self.state.path().join("log")).unwrap();
        let sidecar = command(self.dir.path(), self.state.path(), &self.settings, &self.name)
            .stderr(log)
            .spawn()
            .unwrap();
        self.sidecar = Some(sidecar);
        eventually("a lease.sock", || self.ask("GET", "/v1/lease", "").ok());
    }

    /// The key that signs tickets for gates.
    pub(crate) fn gate_key_file(&self) -> std::path::PathBuf {
        self.state.path().join("gate-key")
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The sidecar's private volume.
    pub(crate) fn state_path(&self) -> &Path {
        self.state.path()
    }

    /// A container of this pod.
    pub(crate) fn run(&self, container: &str, script: &str) -> Container {
        Container::start(self.path(), container, script)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.sidecar_pid(), signal).unwrap();
    }

    pub(crate) fn sidecar_pid(&self) -> Pid {
        Pid::from_child(self.sidecar.as_ref().unwrap())
    }

    /// SIGKILL for the sidecar, until it is gone.
    pub(crate) fn kill_sidecar(&mut self) {
        let mut sidecar = self.sidecar.take().unwrap();
        sidecar.kill().unwrap();
        sidecar.wait().unwrap();
    }

    /// The sidecar's exit code.
    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        let sidecar = self.sidecar.as_mut().unwrap();
        eventually("an end of the sidecar", || sidecar.try_wait().unwrap()).code()
    }

    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> std::io::Result<Answer> {
        over_socket(&self.path().join("lease.sock"), method, path, body)
    }

    pub(crate) fn lease(&self) -> Value {
        self.ask("GET", "/v1/lease", "").unwrap().json()
    }

    /// Where probes and metrics are.
    pub(crate) fn admin(&self) -> SocketAddr {
        self.admin
    }

    pub(crate) fn probe(&self, path: &str) -> Answer {
        over_tcp(self.admin, path).unwrap()
    }

    /// The value of a series in `/metrics`.
    pub(crate) fn metric(&self, series: &str) -> f64 {
        let text = self.probe("/metrics").body;
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{series} ")));
        line.unwrap_or_else(|| panic!("no {series} in\n{text}")).parse().unwrap()
    }

    /// Waits for a state, and answers the lease as it is then.
    pub(crate) fn until(&self, state: &str) -> Value {
        eventually(&format!("a pod {} that is {state}", self.name), || {
            Some(self.lease()).filter(|lease| lease["state"] == state)
        })
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.path().join(name).exists()
    }

    /// The content of a file in the shared volume, once it is there and ends with a newline.
    pub(crate) fn read(&self, name: &str) -> String {
        eventually(&format!("a file {name}"), || {
            fs::read_to_string(self.path().join(name)).ok().filter(|text| text.ends_with('\n'))
        })
    }

    /// The `lost` file, once it is there.
    pub(crate) fn lost(&self) -> Value {
        eventually("a file lost", || {
            let text = fs::read_to_string(self.path().join("lost")).ok()?;
            serde_json::from_str(&text).ok()
        })
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.state.path().join("log")).unwrap_or_default()
    }
}

/// The sidecar's command, as a pod runs it: another user, and no right to anything.
pub(crate) fn command(dir: &Path, state: &Path, settings: &Value, name: &str) -> Command {
    // Where that user can read it.
    let program = state.join("fencedlease");
    if !program.exists() {
        // By a process of its own: a child that another thread starts meanwhile would have our copy open for writing,
        // and nobody can run it then.
        let copied =
            Command::new("cp").arg(env!("CARGO_BIN_EXE_fencedlease")).arg(&program).status().unwrap();
        assert!(copied.success());
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", "65532", "--regid", "65532", "--clear-groups", "--no-new-privs"])
        .args(["--inh-caps=-all", "--bounding-set=-all"])
        .arg(program)
        .args([
            "hold",
            "--pod-name",
            name,
            "--pod-uid",
            "uid",
            "--pod-ip",
            "127.0.0.1",
            "--node-name",
            "node",
        ])
        .arg("--shared-dir")
        .arg(dir)
        .arg("--state-dir")
        .arg(state)
        .arg("--token-file")
        .arg(state.join("token"))
        .arg("--redis-secret-dir")
        .arg(state.join("redis"))
        .arg("--gate-key-file")
        .arg(state.join("gate-key"))
        .env("FENCEDLEASE_SETTINGS", settings.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

impl Drop for Pod {
    fn drop(&mut self) {
        if let Some(mut sidecar) = self.sidecar.take() {
            let _ = sidecar.kill();
            let _ = sidecar.wait();
        }
        if std::thread::panicking() {
            println!("the log of pod {} (patience is {PATIENCE:?}):\n{}", self.name, self.log());
        }
    }
}

/// A while in which something must not happen.
pub(crate) fn pass(duration: Duration) {
    std::thread::sleep(duration);
}
