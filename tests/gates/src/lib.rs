//! Holders that raise at a gate before they run: the real *exec*, a real Redis, and the real gate in front of a
//! backend that remembers what reached it.

mod backend;
mod build;
mod gate;
mod holder;
mod http;

use std::net::TcpListener;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime};

use anyhow::bail;
use rustix::process::{Pid, Signal, kill_process};

pub use backend::Backend;
pub use gate::{Gate, Place};
pub use holder::{Holder, World};
pub use http::{Answer, over_tcp};

/// How long anything may take on a busy machine. Nothing is asserted to be this fast.
const PATIENCE: Duration = Duration::from_secs(60);
/// A key, as its file.
pub const KEY: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
/// Another one.
pub const OTHER_KEY: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
/// What the holders hold.
pub const RESOURCE: &str = "shop/report";

/// Waits until something is there.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> anyhow::Result<Option<T>>) -> anyhow::Result<T> {
    let begun = SystemTime::now();
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if begun.elapsed().unwrap_or_default() > PATIENCE {
            bail!("waited {PATIENCE:?} for {what}, in vain");
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// A port that nobody has now.
pub fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// A file that is whole at any time, as a Secret's is.
pub fn replace(path: &Path, text: &str) -> anyhow::Result<()> {
    let new = path.with_extension("new");
    std::fs::write(&new, text)?;
    Ok(std::fs::rename(new, path)?)
}

/// Sends a signal to a process of ours.
pub(crate) fn signal(pid: u32, signal: Signal) -> anyhow::Result<()> {
    let Some(pid) = Pid::from_raw(pid.cast_signed()) else { bail!("{pid} is no process") };
    Ok(kill_process(pid, signal)?)
}
