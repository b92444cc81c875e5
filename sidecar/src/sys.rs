//! The system calls for which no safe form is at hand: the only unsafe code of the program. Each has its
//! safety argument beside it. Kept small: policy stands elsewhere.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int};
use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::fs::FileExt as _;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Pid;
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Signals as a file descriptor, for use with `poll`. What it was made for is blocked in the thread that
/// made it and in the threads and processes that it starts.
#[derive(Debug)]
pub struct SignalFd(OwnedFd);

/// A signal that arrived.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReceivedSignal {
    /// Its number.
    pub number: c_int,
    /// Whether a process sent it that cannot be seen from this PID namespace, such as the container runtime.
    pub from_outside: bool,
}

/// What is to be run, ready for `execve`.
#[derive(Debug)]
pub struct Program {
    /// Paths to try in this order.
    pub paths: Vec<CString>,
    /// The arguments, the name first.
    pub arguments: Vec<CString>,
    /// `NAME=value`.
    pub environment: Vec<CString>,
}

/// A process that was started and is about to run its program.
#[derive(Debug)]
pub struct Spawned {
    /// The process.
    pub pid: Pid,
    /// Ends empty when the program runs, and after four bytes of errno when none of the paths could be run.
    pub outcome: OwnedFd,
}

/// A page of a file that is mapped into memory, byte for byte atomic. What is stored outlives this process
/// at once, and storing never waits for anything where the file lies in memory.
#[derive(Debug)]
pub struct SharedPage {
    start: NonNull<AtomicU8>,
}

/// How many bytes a [`SharedPage`] has.
pub const SHARED_PAGE_BYTES: usize = 4096;

/// Sends SIGKILL to every process that this one may signal. Does nothing unless this is PID 1 of its
/// namespace: elsewhere "every process" would be everybody's.
pub fn kill_everything() {
    if std::process::id() == 1 {
        // SAFETY: kill takes plain numbers and touches no memory.
        unsafe { libc::kill(-1, libc::SIGKILL) };
    }
}

/// Sends a signal to one process. It may be gone already, which is not an error to anybody.
pub fn send_signal(pid: Pid, signal: c_int) {
    // SAFETY: kill takes plain numbers and touches no memory.
    unsafe { libc::kill(pid.as_raw_nonzero().get(), signal) };
}

/// Ends this process at once: no destructor runs, no buffer is flushed, nothing is waited for.
pub fn exit_now(code: u8) -> ! {
    // SAFETY: _exit takes a plain number and does not return.
    unsafe { libc::_exit(code.into()) }
}

/// Asks the scheduler for short turns, so that this process is woken soon beside busy ones (Linux 6.12 and
/// later). Processes that it starts do not inherit it. An error is no harm: lateness is measured anyway.
pub fn ask_for_short_slice(slice: Duration) -> io::Result<()> {
    let mut attributes = SchedAttributes::default();
    let size = u32::try_from(size_of::<SchedAttributes>()).map_err(io::Error::other)?;
    // SAFETY: the kernel writes at most `size` bytes into a struct of that size that lives on our stack.
    let got = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    if got != 0 {
        return Err(io::Error::last_os_error());
    }
    attributes.size = size;
    attributes.flags |= SCHED_FLAG_RESET_ON_FORK;
    attributes.runtime_ns = u64::try_from(slice.as_nanos()).map_err(io::Error::other)?;
    // SAFETY: the kernel reads `attributes.size` bytes of a struct of that size.
    let set = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw mut attributes, 0) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Starts a program as a child with default signal dispositions, no signal blocked, in a process group of
/// its own, which becomes the terminal's foreground group if standard input is our terminal. Returns before
/// the program runs, so that a slow disk delays nobody here.
pub fn spawn(program: &Program) -> io::Result<Spawned> {
    let paths = pointers(&program.paths);
    let arguments = pointers(&program.arguments);
    let environment = pointers(&program.environment);
    let (outcome, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    // SAFETY: the child calls only async-signal-safe functions on memory that was made before the fork
    // (see `run_program`), so it does not matter what other threads were doing.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // SAFETY: the three arrays end with a null pointer, point to strings that `program` keeps
            // alive, and this is a child that nobody shares memory with.
            unsafe { run_program(&paths, &arguments, &environment, writer.as_raw_fd()) }
        }
        pid => Ok(Spawned { pid: child_pid(pid)?, outcome }),
    }
}

/// Appends a text to an existing file from a child process, and returns the child. A disk that hangs holds
/// up only the child: a thread that hangs in the kernel would keep this process, and with it all of its
/// PID namespace, from ending.
pub fn append_in_child(path: &CStr, text: &[u8]) -> io::Result<Pid> {
    let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: the child calls only open, write and _exit, which are async-signal-safe, on memory that was
    // made before the fork.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // SAFETY: `path` ends with a null byte, and `text` is as long as it says.
            unsafe {
                let file = libc::open(path.as_ptr(), flags);
                let written = libc::write(file, text.as_ptr().cast(), text.len());
                libc::_exit(c_int::from(written < 0))
            }
        }
        pid => child_pid(pid),
    }
}

/// Gives this process namespaces of its own, or the children that it starts from now on (`unshare(2)`).
pub fn unshare(namespaces: UnshareFlags) -> io::Result<()> {
    // SAFETY: unsafe for CLONE_FILES alone, which would part the descriptors of threads; no caller asks for that,
    // and it is taken out here.
    Ok(unsafe { unshare_unsafe(namespaces - UnshareFlags::FILES) }?)
}

/// The pidfd of the process at the other end of a connected Unix socket (Linux 6.5 and later).
pub fn peer_pidfd(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut fd: c_int = -1;
    let mut length = libc::socklen_t::try_from(size_of::<c_int>()).map_err(io::Error::other)?;
    // SAFETY: the kernel writes at most `length` bytes into an integer of that size.
    let got = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PEERPIDFD,
            (&raw mut fd).cast(),
            &raw mut length,
        )
    };
    if got != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor for us, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

// === impl SignalFd ===

impl SignalFd {
    /// Blocks these signals and makes them readable here instead.
    pub fn new(signals: &[c_int]) -> io::Result<Self> {
        // SAFETY: sigset_t is plain data, valid when zeroed, and sigemptyset initialises it as it should be.
        let set = unsafe {
            let mut set: libc::sigset_t = mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for signal in signals {
                libc::sigaddset(&raw mut set, *signal);
            }
            set
        };
        Self::of(&set)
    }

    /// Blocks every signal that can be blocked and makes it readable here instead.
    pub fn of_all() -> io::Result<Self> {
        // SAFETY: as above, with sigfillset.
        let set = unsafe {
            let mut set: libc::sigset_t = mem::zeroed();
            libc::sigfillset(&raw mut set);
            set
        };
        Self::of(&set)
    }

    /// The next signal, if one has arrived.
    pub fn read(&self) -> io::Result<Option<ReceivedSignal>> {
        let mut bytes = [0_u8; size_of::<libc::signalfd_siginfo>()];
        match rustix::io::read(&self.0, &mut bytes) {
            Ok(_) => {}
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        // SAFETY: the kernel filled the buffer with one signalfd_siginfo, which is plain data.
        let info: libc::signalfd_siginfo = unsafe { ptr::read_unaligned(bytes.as_ptr().cast()) };
        Ok(Some(ReceivedSignal {
            number: info.ssi_signo.cast_signed(),
            from_outside: info.ssi_code == libc::SI_USER && info.ssi_pid == 0,
        }))
    }

    fn of(set: &libc::sigset_t) -> io::Result<Self> {
        // SAFETY: both calls only read a set that outlives them.
        let fd = unsafe {
            let blocked = libc::pthread_sigmask(libc::SIG_BLOCK, set, ptr::null_mut());
            if blocked != 0 {
                return Err(io::Error::from_raw_os_error(blocked));
            }
            libc::signalfd(-1, set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just made this descriptor for us, so nobody else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

// === impl SharedPage ===

// SAFETY: the page is only touched through atomics, and stays mapped as long as the value lives.
unsafe impl Send for SharedPage {}
// SAFETY: as above.
unsafe impl Sync for SharedPage {}

impl SharedPage {
    /// Maps the first page of a file, which is filled up with zeros if it is shorter. They are written, since a
    /// page that has no room on a full volume is a SIGBUS at its first use.
    pub fn map(file: &File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let there = usize::try_from(length).map_err(io::Error::other)?.min(SHARED_PAGE_BYTES);
        file.write_all_at(&[0; SHARED_PAGE_BYTES][there..], length)?;
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing of ours.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                SHARED_PAGE_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(start.cast()).map(|start| Self { start }).ok_or_else(|| io::Error::other("mapped at 0"))
    }

    /// The byte at this place; places repeat after [`SHARED_PAGE_BYTES`].
    pub fn byte(&self, place: usize) -> &AtomicU8 {
        // SAFETY: the place lies inside the mapping, AtomicU8 has no alignment, and every access of ours
        // goes through the atomic.
        unsafe { self.start.add(place % SHARED_PAGE_BYTES).as_ref() }
    }

    /// Stores a byte so that it is seen after everything stored before it.
    pub fn store(&self, place: usize, value: u8) {
        self.byte(place).store(value, Ordering::SeqCst);
    }
}

impl Drop for SharedPage {
    fn drop(&mut self) {
        // SAFETY: exactly what `map` mapped, and nobody can hold a reference into it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), SHARED_PAGE_BYTES) };
    }
}

/// `struct sched_attr` of the kernel, first version.
#[repr(C)]
#[derive(Default)]
struct SchedAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

const SCHED_FLAG_RESET_ON_FORK: u64 = 1;
const SO_PEERPIDFD: c_int = 77;

/// Becomes the program, or says why not and ends.
///
/// # Safety
/// Only in a child that was just forked. The slices end with a null pointer and their strings are alive.
unsafe fn run_program(
    paths: &[*const c_char],
    arguments: &[*const c_char],
    environment: &[*const c_char],
    outcome: RawFd,
) -> ! {
    // SAFETY: only async-signal-safe functions, on memory that the caller vouches for. Every signal stays
    // blocked until the dispositions are the default ones, SIGTTOU among them.
    unsafe {
        libc::setpgid(0, 0);
        libc::tcsetpgrp(libc::STDIN_FILENO, libc::getpid());
        // The kernel's own call: the C library's leaves out signals that it keeps for itself, which may
        // have been inherited as ignored. All zero is the default disposition.
        let default = [0_u64; 8];
        for signal in 1..=64 {
            let none = ptr::null_mut::<u64>();
            libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), none, size_of::<u64>());
        }
        let mut none: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
        let mut reason = libc::ENOENT;
        for path in paths.iter().take_while(|path| !path.is_null()) {
            libc::execve(*path, arguments.as_ptr(), environment.as_ptr());
            let error = *libc::__errno_location();
            if !matches!(error, libc::ENOENT | libc::ENOTDIR) {
                reason = error;
            }
            if !matches!(error, libc::ENOENT | libc::ENOTDIR | libc::EACCES) {
                break;
            }
        }
        libc::write(outcome, (&raw const reason).cast(), size_of::<c_int>());
        libc::_exit(127)
    }
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
}

fn child_pid(pid: libc::pid_t) -> io::Result<Pid> {
    Pid::from_raw(pid).ok_or_else(|| io::Error::other("fork answered no process id"))
}

#[cfg(test)]
mod tests;
