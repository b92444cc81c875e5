//! Control groups: a share of the processor that is too small, and processes that are frozen.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::Pid;

use crate::support::eventually;

/// A group of processes that may run for so long in each period, and the ones that use it up.
pub(crate) struct Group {
    folder: PathBuf,
    hogs: Vec<Child>,
}

const V1: &str = "/sys/fs/cgroup/cpu";
const V2: &str = "/sys/fs/cgroup";

impl Group {
    /// A group that may run `quota_us` of every `period_us`, with this many processes that always want to.
    pub(crate) fn starved(name: &str, quota_us: u32, period_us: u32, hogs: usize) -> Self {
        let is_v1 = Path::new(V1).join("cpu.cfs_quota_us").exists();
        let root = if is_v1 { V1 } else { V2 };
        if !is_v1 {
            fs::write(Path::new(V2).join("cgroup.subtree_control"), "+cpu").unwrap();
        }
        let folder = Path::new(root).join(format!("fencedlease-test-{name}-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let mut group = Self { folder, hogs: Vec::new() };
        if is_v1 {
            group.write("cpu.cfs_period_us", &period_us.to_string());
            group.write("cpu.cfs_quota_us", &quota_us.to_string());
        } else {
            group.write("cpu.max", &format!("{quota_us} {period_us}"));
        }
        for _ in 0..hogs {
            let hog =
                Command::new("sh").args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn().unwrap();
            assert!(group.put(Pid::from_child(&hog)));
            group.hogs.push(hog);
        }
        group
    }

    /// Puts a process into it, with all of its threads. Answers whether it was still there.
    pub(crate) fn put(&self, process: Pid) -> bool {
        let path = self.folder.join("cgroup.procs");
        match fs::write(&path, process.as_raw_nonzero().to_string()) {
            Ok(()) => true,
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => false,
            Err(error) => panic!("{}: {error}", path.display()),
        }
    }

    /// In how many periods somebody had to wait for the next.
    pub(crate) fn throttled(&self) -> u64 {
        let stat = fs::read_to_string(self.folder.join("cpu.stat")).unwrap();
        let line = stat.lines().find_map(|line| line.strip_prefix("nr_throttled ")).unwrap();
        line.trim().parse().unwrap()
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.folder.join(file);
        fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for hog in &mut self.hogs {
            let _ = hog.kill();
        }
        for hog in &mut self.hogs {
            let _ = hog.wait();
        }
        // Who is still in it is given its share back: a killed process needs some to end.
        let root = self.folder.parent().unwrap().join("cgroup.procs");
        for process in fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default().lines() {
            let _ = fs::write(&root, process);
        }
        let _ = fs::remove_dir(&self.folder);
    }
}

/// One way in which a kernel freezes a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Freezer {
    root: &'static str,
    /// What is written, and where, to freeze and to thaw.
    order: (&'static str, [&'static str; 2]),
    /// Where the kernel says that it is done, and how.
    done: (&'static str, &'static str),
}

const FREEZERS: [Freezer; 3] = [
    Freezer {
        root: "/sys/fs/cgroup/freezer",
        order: ("freezer.state", ["FROZEN", "THAWED"]),
        done: ("freezer.state", "FROZEN"),
    },
    Freezer {
        root: "/sys/fs/cgroup/unified",
        order: ("cgroup.freeze", ["1", "0"]),
        done: ("cgroup.events", "frozen 1"),
    },
    Freezer { root: V2, order: ("cgroup.freeze", ["1", "0"]), done: ("cgroup.events", "frozen 1") },
];

/// A frozen process, until this value is dropped.
#[derive(Debug)]
pub(crate) struct Frozen {
    freezer: Freezer,
    folder: PathBuf,
}

impl Freezer {
    /// All that this machine has: cgroup v1's, v2's, or both.
    pub(crate) fn all() -> Vec<Self> {
        let is_there = |freezer: &Self| {
            let is_v2 = freezer.order.0 == "cgroup.freeze";
            let root = Path::new(freezer.root);
            root.is_dir() && is_v2 == root.join("cgroup.controllers").exists()
        };
        let all: Vec<_> = FREEZERS.into_iter().filter(is_there).collect();
        assert!(!all.is_empty(), "this machine has neither freezer");
        all
    }

    /// For people.
    pub(crate) fn name(self) -> &'static str {
        if self.order.0 == "cgroup.freeze" { "cgroup v2" } else { "cgroup v1" }
    }

    /// Freezes a process with all of its threads.
    pub(crate) fn freeze(self, process: Pid) -> Frozen {
        let name = format!("fencedlease-frozen-{}", process.as_raw_nonzero());
        let frozen = Frozen { freezer: self, folder: Path::new(self.root).join(name) };
        fs::create_dir(&frozen.folder).unwrap();
        fs::write(frozen.folder.join("cgroup.procs"), process.as_raw_nonzero().to_string()).unwrap();
        fs::write(frozen.folder.join(self.order.0), self.order.1[0]).unwrap();
        eventually("a frozen group", || frozen.is_frozen().then_some(()));
        frozen
    }
}

impl Frozen {
    /// All of it stands still, as the kernel says.
    pub(crate) fn is_frozen(&self) -> bool {
        let (file, word) = self.freezer.done;
        fs::read_to_string(self.folder.join(file)).unwrap().lines().any(|line| line == word)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = fs::write(self.folder.join(self.freezer.order.0), self.freezer.order.1[1]);
        let root = Path::new(self.freezer.root).join("cgroup.procs");
        for process in fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default().lines() {
            let _ = fs::write(&root, process);
        }
        let _ = fs::remove_dir(&self.folder);
    }
}
