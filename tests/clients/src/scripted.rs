//! A sidecar that answers as a test wants: too late, not at all, or only half.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rustix::time::{ClockId, clock_gettime};
use tempfile::TempDir;

use crate::world::RESOURCE;

/// The fence that it says is held.
const FENCE: i64 = 42;
/// What remains, where a test does not care.
const LONG_MS: u64 = 600_000;

/// Listens on a socket of its own, which is closed when this is dropped.
#[derive(Debug)]
pub struct ScriptedSidecar {
    folder: TempDir,
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

// === impl ScriptedSidecar ===

impl ScriptedSidecar {
    /// Answers each request, of which it is given the path, as `script` does. Where that gives false it answers as the
    /// sidecar of a holder whose lease lasts. The connection is closed afterwards.
    pub fn start(
        script: impl Fn(&str, &mut UnixStream) -> io::Result<bool> + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let folder = TempDir::new()?;
        fs::write(folder.path().join("fence"), format!("{FENCE}\n"))?;
        let listener = UnixListener::bind(folder.path().join("lease.sock"))?;
        let (ending, script) = (Arc::new(AtomicBool::new(false)), Arc::new(script));
        let ends = Arc::clone(&ending);
        let thread = thread::Builder::new().name("sidecar".to_owned()).spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if ends.load(Ordering::Acquire) {
                    return;
                }
                let script = Arc::clone(&script);
                // It ends with its client at the latest, and a client is killed with its test.
                thread::spawn(move || serve(stream, &*script));
            }
        })?;
        Ok(Self { folder, ending, thread: Some(thread) })
    }

    /// What a program under it finds in its environment.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        let folder = self.folder.path().display();
        [
            ("RESOURCE", RESOURCE.to_owned()),
            ("DIR", folder.to_string()),
            ("SOCKET", format!("{folder}/lease.sock")),
            ("FENCE", FENCE.to_string()),
            ("HOLDING", "0123456789abcdef".to_owned()),
        ]
        .map(|(name, value)| (format!("FENCEDLEASE_{name}"), value))
        .into()
    }
}

impl Drop for ScriptedSidecar {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Release);
        // Wakes the listener. If that cannot be reached any more, it has ended.
        let _ = UnixStream::connect(self.folder.path().join("lease.sock"));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Writes a whole answer of JSON.
pub fn answer(stream: &mut UnixStream, status: &str, json: &str) -> io::Result<()> {
    let length = json.len();
    let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(format!("{head}{json}").as_bytes())
}

/// Begins the answer with events, whose end is that of the connection.
pub fn events(stream: &mut UnixStream) -> io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")
}

/// Says nothing more until the client goes.
pub fn hang(stream: &mut UnixStream) -> io::Result<()> {
    io::copy(stream, &mut io::sink()).map(drop)
}

/// The state of who holds the lease for so much longer, from now on.
pub fn active(remaining_ms: u64) -> String {
    let now = clock_gettime(ClockId::Boottime);
    let now_ms = now.tv_sec.unsigned_abs() * 1000 + now.tv_nsec.unsigned_abs() / 1_000_000;
    let kill_at_ms = now_ms + remaining_ms;
    format!(
        r#"{{"state":"ACTIVE","resource":"{RESOURCE}","fence":{FENCE},"holding":"0123456789abcdef","remainingMs":{remaining_ms},"killAtBoottimeMs":{kill_at_ms},"maxHoldRemainingMs":3600000,"renewedMsAgo":0}}"#
    )
}

/// A yes to a commit, with so much that remains.
pub fn allowed(remaining_ms: u64) -> String {
    format!(r#"{{"allowed":true,"fence":{FENCE},"remainingMs":{remaining_ms},"headers":{{}}}}"#)
}

fn serve(mut stream: UnixStream, script: &dyn Fn(&str, &mut UnixStream) -> io::Result<bool>) {
    // A client that goes in the midst is what some tests want.
    let _ = path_of(&stream).and_then(|path| {
        if script(&path, &mut stream)? {
            return Ok(());
        }
        match &*path {
            "/v1/lease" => answer(&mut stream, "200 OK", &active(LONG_MS)),
            "/v1/commit-check" => answer(&mut stream, "200 OK", &allowed(LONG_MS)),
            "/v1/events" => {
                events(&mut stream)?;
                writeln!(stream, "{}", active(LONG_MS))?;
                hang(&mut stream)
            }
            _ => stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n"),
        }
    });
}

/// Reads a request to its end and gives its path.
fn path_of(stream: &UnixStream) -> io::Result<String> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    let head = head.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    reader.read_exact(&mut vec![0; length.unwrap_or(0)])?;
    Ok(head.split(' ').nth(1).unwrap_or_default().to_owned())
}
