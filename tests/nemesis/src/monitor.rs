//! What Redis executed, read from MONITOR: the commands of the lease's scripts, and those of anybody else.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::board::now;
use crate::history::{Executed, Nanos};

/// Follows one Redis, also across its restarts.
#[derive(Debug)]
pub struct Monitor {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    executed: Mutex<Vec<Executed>>,
    attached: AtomicU64,
    stop: AtomicBool,
}

/// Makes events of lines.
#[derive(Debug, Default)]
pub struct Parser {
    /// The sequence as the commands so far have left it.
    sequence: u64,
    /// ARGV of the script under way.
    arguments: Vec<String>,
}

// === impl Monitor ===

impl Monitor {
    /// Attaches to a Redis, and again whenever it is back.
    pub fn start(address: SocketAddr) -> Self {
        let shared = Arc::new(Shared::default());
        let follower = Arc::clone(&shared);
        let thread = thread::spawn(move || follow(address, &follower));
        Self { shared, thread: Some(thread) }
    }

    /// How many times it has attached.
    pub fn attached(&self) -> u64 {
        self.shared.attached.load(Ordering::SeqCst)
    }

    /// What was executed so far.
    pub fn executed(&self) -> Vec<Executed> {
        self.shared.executed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            // It reads with a timeout; one that panicked has left a history that ends early.
            let _ = thread.join();
        }
    }
}

fn follow(address: SocketAddr, shared: &Shared) {
    let push = |event| shared.executed.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    while !shared.stop.load(Ordering::SeqCst) {
        let attached = TcpStream::connect(address).and_then(|mut stream| {
            stream.set_read_timeout(Some(Duration::from_millis(200)))?;
            stream.write_all(b"MONITOR\r\n")?;
            Ok(stream)
        });
        let Ok(stream) = attached else {
            thread::sleep(Duration::from_millis(5));
            continue;
        };
        let mut lines = BufReader::new(stream);
        let mut parser = Parser::default();
        let (mut line, mut is_attached) = (Vec::new(), false);
        loop {
            match lines.read_until(b'\n', &mut line) {
                Ok(0) => break,
                Ok(_) if line.ends_with(b"\n") => {
                    let text = String::from_utf8_lossy(&line).into_owned();
                    line.clear();
                    if !is_attached && text.starts_with("+OK") {
                        is_attached = true;
                        shared.attached.fetch_add(1, Ordering::SeqCst);
                    } else if let Some(event) = parser.line(&text, wall_ahead()) {
                        push(event);
                    }
                }
                Ok(_) => {}
                Err(error)
                    if matches!(
                        error.kind(),
                        std::io::ErrorKind::WouldBlock
                            | std::io::ErrorKind::TimedOut
                            | std::io::ErrorKind::Interrupted
                    ) =>
                {
                    if shared.stop.load(Ordering::SeqCst) {
                        return;
                    }
                }
                Err(_) => break,
            }
        }
        if is_attached && !shared.stop.load(Ordering::SeqCst) {
            // Nothing is kept on disk: what is started next is empty.
            push(Executed::TakenAway { at: now() });
        }
    }
}

/// By how many nanoseconds the wall clock is ahead of CLOCK_BOOTTIME: the narrowest of a few brackets.
fn wall_ahead() -> u64 {
    let bracket = || {
        let before = now();
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let after = now();
        let wall = u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX);
        (after - before, wall.saturating_sub(before + (after - before) / 2))
    };
    let brackets = [bracket(), bracket(), bracket()];
    brackets.into_iter().min().unwrap_or_default().1
}

// === impl Parser ===

impl Parser {
    /// What this line tells of the lease, if it does. `wall_ahead` is how far the wall clock is ahead of ours.
    pub fn line(&mut self, line: &str, wall_ahead: u64) -> Option<Executed> {
        let line = line.strip_prefix('+').unwrap_or(line).trim_end();
        let (time, rest) = line.split_once(' ')?;
        let at = nanoseconds(time)?.saturating_sub(wall_ahead);
        let (from, words) = rest.split_once("] ")?;
        let by_script = from.ends_with(" lua");
        let words = words_of(words);
        let command = words.first()?.to_uppercase();
        let key = words.get(1).map_or("", String::as_str);
        match command.as_str() {
            "EVAL" | "EVALSHA" => {
                let keys: usize = words.get(2)?.parse().ok()?;
                self.arguments = words.get(3 + keys..)?.to_vec();
                None
            }
            "FLUSHALL" => {
                self.sequence = 0;
                Some(Executed::TakenAway { at })
            }
            "SET" if by_script && key.ends_with(":fence") => {
                self.sequence = words.get(2)?.parse().ok()?;
                None
            }
            "INCR" if by_script && key.ends_with(":fence") => {
                self.sequence += 1;
                None
            }
            "SET" if by_script && key.ends_with(":lease") => {
                let run = run_of(self.arguments.get(3)?)?;
                Some(Executed::Acquired { at, token: words.get(2)?.clone(), fence: self.sequence, run })
            }
            "PEXPIRE" if by_script && key.ends_with(":lease") => {
                Some(Executed::Renewed { at, token: self.arguments.first()?.clone() })
            }
            "DEL" if by_script && key.ends_with(":lease") => {
                Some(Executed::Released { at, token: self.arguments.first()?.clone() })
            }
            "DEL" if key.ends_with(":lease") => Some(Executed::TakenAway { at }),
            _ => None,
        }
    }
}

fn nanoseconds(time: &str) -> Option<Nanos> {
    let (seconds, micros) = time.split_once('.')?;
    Some(seconds.parse::<u64>().ok()? * 1_000_000_000 + micros.parse::<u64>().ok()? * 1000)
}

/// The number in the holder's name, `run-NUMBER`.
fn run_of(holder: &str) -> Option<u64> {
    let (_, rest) = holder.split_once("run-")?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// Quoted words, with what a backslash stands before taken literally: names, numbers and tokens have none.
fn words_of(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, word.as_mut()) {
            ('"', None) => word = Some(String::new()),
            ('"', Some(_)) => words.extend(word.take()),
            ('\\', Some(word)) => word.extend(letters.next()),
            (letter, Some(word)) => word.push(letter),
            (_, None) => {}
        }
    }
    words
}

#[cfg(test)]
mod tests;
