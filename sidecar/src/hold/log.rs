//! Logs as lines of JSON on standard error, written by a thread of their own: a line that finds the way
//! stuck is dropped rather than waited for.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Lines that may wait.
const MAX_WAITING: usize = 1024;

/// Starts logging for the whole process. `filter` is in the form of `tracing`'s directives.
pub fn start(filter: &str) -> io::Result<Flush> {
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        io::Error::other(format!("logLevel {filter:?} is no filter, such as info: {error}"))
    })?;
    let (sender, lines) = sync_channel(MAX_WAITING);
    // It lives as long as the process, which does not wait for it: nobody joins what may hang for ever.
    thread::Builder::new().name("log".to_owned()).stack_size(64 * 1024).spawn(move || write(&lines))?;
    let subscriber = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_env_filter(filter)
        .with_writer(Lines(sender.clone()))
        .finish();
    tracing::subscriber::set_global_default(subscriber).map_err(io::Error::other)?;
    // The default report of a panic waits for standard error. Who runs the threads ends the process.
    std::panic::set_hook(Box::new(|panic| tracing::error!(detail = %panic, "panicked")));
    Ok(Flush(sender))
}

/// Waits for what was logged, at the end of the process.
#[derive(Debug)]
pub struct Flush(SyncSender<Entry>);

impl Flush {
    /// Waits until every line so far is written, or until `patience` is over.
    pub fn wait(&self, patience: Duration) {
        let (written, when_written) = sync_channel(1);
        if self.0.try_send(Entry::Flush(written)).is_ok() {
            let _ = when_written.recv_timeout(patience);
        }
    }
}

#[derive(Debug)]
enum Entry {
    Line(Vec<u8>),
    Flush(SyncSender<()>),
}

fn write(entries: &Receiver<Entry>) {
    while let Ok(entry) = entries.recv() {
        // A log that cannot be written is nobody's reason to stop.
        let _ = match entry {
            Entry::Line(line) => io::stderr().write_all(&line),
            Entry::Flush(written) => written.try_send(()).map_err(io::Error::other),
        };
    }
}

/// Hands over whole events.
#[derive(Clone, Debug)]
struct Lines(SyncSender<Entry>);

/// One event.
#[derive(Debug)]
struct Line<'a> {
    sender: &'a SyncSender<Entry>,
    text: Vec<u8>,
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line { sender: &self.0, text: Vec::new() }
    }
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        // Full: this line is dropped.
        let _ = self.sender.try_send(Entry::Line(std::mem::take(&mut self.text)));
    }
}
