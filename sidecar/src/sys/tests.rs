use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{WaitOptions, waitpid};

use super::*;

fn program(path: &str, arguments: &[&str]) -> Program {
    let text = |text: &str| CString::new(text).unwrap();
    Program {
        paths: vec![text("/no/such/program"), text(path)],
        arguments: arguments.iter().map(|argument| text(argument)).collect(),
        environment: vec![text("NAME=value")],
    }
}

fn outcome_of(spawned: &Spawned) -> Vec<u8> {
    let mut bytes = [0; 8];
    let length = rustix::io::read(&spawned.outcome, &mut bytes).unwrap();
    bytes[..length].to_vec()
}

fn exit_status(pid: Pid) -> Option<i32> {
    let (_, status) = waitpid(Some(pid), WaitOptions::empty()).unwrap().unwrap();
    status.exit_status()
}

#[test]
fn a_program_is_run_with_its_arguments_and_nothing_but_its_environment() {
    let spawned =
        spawn(&program("/bin/sh", &["sh", "-c", "test $NAME = value && test -z \"$HOME\" && exit 3"]));
    let spawned = spawned.unwrap();
    assert!(outcome_of(&spawned).is_empty());
    assert_eq!(exit_status(spawned.pid), Some(3));
}

#[test]
fn a_program_that_cannot_be_run_is_told_by_errno() {
    for (path, errno) in [("/neither/this", libc::ENOENT), ("/etc/passwd", libc::EACCES)] {
        let spawned = spawn(&program(path, &["x"])).unwrap();
        assert_eq!(outcome_of(&spawned), errno.to_ne_bytes());
        exit_status(spawned.pid);
    }
}

#[test]
fn a_text_is_appended_and_no_file_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| CString::new(dir.path().join(name).to_str().unwrap()).unwrap();
    std::fs::write(dir.path().join("there"), "before\n").unwrap();
    assert_eq!(exit_status(append_in_child(&path("there"), b"after\n").unwrap()), Some(0));
    assert_eq!(std::fs::read_to_string(dir.path().join("there")).unwrap(), "before\nafter\n");
    assert_eq!(exit_status(append_in_child(&path("absent"), b"text").unwrap()), Some(1));
    assert!(!dir.path().join("absent").exists());
}

#[test]
fn what_one_mapping_of_a_page_stores_another_reads() {
    let file = tempfile::tempfile().unwrap();
    let (one, other) = (SharedPage::map(&file).unwrap(), SharedPage::map(&file).unwrap());
    assert_eq!(other.byte(7).load(Ordering::SeqCst), 0);
    one.store(7, 1);
    assert_eq!(other.byte(7).load(Ordering::SeqCst), 1);
    drop(one);
    drop(other);
    assert_eq!(SharedPage::map(&file).unwrap().byte(7).load(Ordering::SeqCst), 1, "it outlives both");
}

/// A volume with room for nothing more.
struct FullVolume(tempfile::TempDir);

impl FullVolume {
    fn mount() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut mount = std::process::Command::new("mount");
        let mounted = mount.args(["-t", "tmpfs", "-o", "size=4k", "none"]).arg(dir.path()).status().unwrap();
        assert!(mounted.success(), "these tests mount volumes: run them as root");
        std::fs::write(dir.path().join("filler"), [1; 4096]).unwrap();
        Self(dir)
    }
}

impl Drop for FullVolume {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_page_on_a_full_volume_is_refused_rather_than_met_by_a_signal() {
    let volume = FullVolume::mount();
    let path = volume.0.path().join("page");
    let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    // A page without memory behind it is a SIGBUS at its first use.
    match SharedPage::map(&file) {
        Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOSPC)),
        Ok(page) => page.store(0, 1),
    }
    assert!(SharedPage::map(&file).is_err(), "also the second time");
    std::fs::remove_file(volume.0.path().join("filler")).unwrap();
    SharedPage::map(&file).unwrap().store(7, 1);
    assert_eq!(std::fs::read(&path).unwrap().len(), SHARED_PAGE_BYTES);
}

#[test]
fn the_peers_pidfd_is_a_living_process() {
    let (here, _there) = UnixStream::pair().unwrap();
    let pidfd = match peer_pidfd(here.as_fd()) {
        Ok(pidfd) => pidfd,
        // Before Linux 6.5 there is none, and that is what is answered.
        Err(error) => return assert_eq!(error.raw_os_error(), Some(libc::ENOPROTOOPT)),
    };
    let at_once = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    assert_eq!(poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&at_once)).unwrap(), 0);
}

#[test]
fn a_signal_to_this_thread_is_read() {
    let signals = SignalFd::new(&[libc::SIGUSR2]).unwrap();
    assert_eq!(signals.read().unwrap(), None);
    // SAFETY: raise takes a plain number and touches no memory.
    unsafe { libc::raise(libc::SIGUSR2) };
    let expected = ReceivedSignal { number: libc::SIGUSR2, from_outside: false };
    assert_eq!(signals.read().unwrap(), Some(expected));
    assert_eq!(signals.read().unwrap(), None);
}

#[test]
fn a_short_slice_is_asked_for_and_told_by_the_kernel() {
    ask_for_short_slice(Duration::from_micros(100)).unwrap();
}
