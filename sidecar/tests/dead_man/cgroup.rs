//! A share of the processor that is too small.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::Pid;

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
