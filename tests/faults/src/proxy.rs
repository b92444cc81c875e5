//! The proxy itself: accepts, connects, and carries bytes as the faults in force say.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::counters::{Board, Line, Snapshot};
use crate::fault::{Clients, Fault, Faults, Way};
use crate::pipe::{Pipe, Step};

const READ_BYTES: usize = 16 * 1024;

/// A TCP proxy whose faults can be set while it runs. It ends when it is dropped, and so do all its
/// connections.
#[derive(Debug)]
pub struct FaultProxy {
    handle: ProxyHandle,
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

/// Sets the faults of a proxy and reads its numbers; can be cloned and sent to other tasks.
#[derive(Clone, Debug)]
pub struct ProxyHandle {
    target: String,
    faults: watch::Sender<Faults>,
    board: Board,
}

/// What a test waited for did not happen in time.
#[derive(Debug, thiserror::Error)]
#[error("not seen within {waited:?}; the proxy's state is {snapshot:?}")]
pub struct NotSeen {
    /// How long it was waited for.
    pub waited: Duration,
    /// The state at the end.
    pub snapshot: Box<Snapshot>,
}

/// Why a connection ended otherwise than by its two sides.
#[derive(Debug)]
enum Broken {
    /// A fault asked for it.
    Reset,
    /// The target could not be reached.
    Unreachable,
    /// One side broke it.
    Side,
}

// === impl FaultProxy ===

impl FaultProxy {
    /// Starts on a free port of 127.0.0.1. `target` is `host:port`, looked up at each connection, so it need
    /// not answer yet. Must be called in a tokio runtime.
    pub async fn start(target: impl Into<String>) -> io::Result<Self> {
        Self::start_at(([127, 0, 0, 1], 0).into(), target).await
    }

    /// Starts on this address. Fails if it cannot be bound.
    pub async fn start_at(address: SocketAddr, target: impl Into<String>) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let handle = ProxyHandle {
            target: target.into(),
            faults: watch::Sender::new(Faults::default()),
            board: Board::new(),
        };
        let accepting = tokio::spawn(accept(listener, handle.clone()));
        Ok(Self { handle, address, accepting })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What sets faults and reads numbers.
    pub fn handle(&self) -> &ProxyHandle {
        &self.handle
    }

    /// As [`ProxyHandle::set`].
    pub fn set(&self, clients: Clients, fault: Fault) {
        self.handle.set(clients, fault);
    }

    /// As [`ProxyHandle::snapshot`].
    pub fn snapshot(&self) -> Snapshot {
        self.handle.snapshot()
    }

    /// As [`ProxyHandle::until`].
    pub async fn until(
        &self,
        limit: Duration,
        seen: impl Fn(&Snapshot) -> bool,
    ) -> Result<Snapshot, NotSeen> {
        self.handle.until(limit, seen).await
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

// === impl ProxyHandle ===

impl ProxyHandle {
    /// Sets a fault. It applies to connections that exist as well as to new ones.
    pub fn set(&self, clients: Clients, fault: Fault) {
        self.faults.send_modify(|faults| faults.set(clients, fault));
    }

    /// Faults and numbers now.
    pub fn snapshot(&self) -> Snapshot {
        self.board.snapshot(&self.target, self.faults.borrow().clone())
    }

    /// Waits until the numbers show something, and gives them; fails after `limit`.
    pub async fn until(
        &self,
        limit: Duration,
        seen: impl Fn(&Snapshot) -> bool,
    ) -> Result<Snapshot, NotSeen> {
        let mut numbers = self.board.subscribe();
        let wait = async {
            loop {
                numbers.borrow_and_update();
                let snapshot = self.snapshot();
                if seen(&snapshot) {
                    return snapshot;
                }
                // The sender lives in `self`, so this cannot fail.
                let _ = numbers.changed().await;
            }
        };
        match timeout(limit, wait).await {
            Ok(snapshot) => Ok(snapshot),
            Err(_) => Err(NotSeen { waited: limit, snapshot: Box::new(self.snapshot()) }),
        }
    }
}

async fn accept(listener: TcpListener, handle: ProxyHandle) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((client, from)) => {
                    connections.spawn(connection(client, from.ip(), handle.clone()));
                }
                // Out of descriptors: those of ended connections come back.
                Err(_) => sleep(Duration::from_millis(50)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Counts a connection as open for as long as it lives.
struct Open(Line);

impl Open {
    fn new(line: Line) -> Self {
        line.note(|numbers| {
            numbers.connections += 1;
            numbers.open += 1;
        });
        Self(line)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.note(|numbers| numbers.open -= 1);
    }
}

async fn connection(mut client: TcpStream, from: IpAddr, handle: ProxyHandle) {
    let line = handle.board.line(from);
    let _open = Open::new(line.clone());
    let faults = handle.faults.subscribe();
    if faults.borrow().of(from) == Fault::Cut {
        line.note(|numbers| numbers.refused += 1);
        let _ = client.set_zero_linger();
        return;
    }
    let mut target = None;
    let broken = tokio::select! {
        () = cut(faults.clone(), from) => Some(Broken::Reset),
        ended = carry(&mut client, &mut target, from, &handle, &line) => ended.err(),
    };
    let Some(broken) = broken else { return };
    match broken {
        Broken::Reset => line.note(|numbers| numbers.reset += 1),
        Broken::Unreachable => line.note(|numbers| numbers.unreachable += 1),
        Broken::Side => {}
    }
    // A reset in place of an orderly end, as a broken network or a killed peer would show it. A socket that
    // refuses the option is closed all the same.
    let _ = client.set_zero_linger();
    if let Some(target) = target {
        let _ = target.set_zero_linger();
    }
}

/// Ends when this client is to be cut off.
async fn cut(mut faults: watch::Receiver<Faults>, client: IpAddr) {
    if faults.wait_for(|faults| faults.of(client) == Fault::Cut).await.is_err() {
        // The proxy is gone, and with it this task.
        std::future::pending::<()>().await;
    }
}

async fn carry(
    client: &mut TcpStream,
    place: &mut Option<TcpStream>,
    from: IpAddr,
    handle: &ProxyHandle,
    line: &Line,
) -> Result<(), Broken> {
    let target = TcpStream::connect(&handle.target).await.map_err(|_| Broken::Unreachable)?;
    let target = place.insert(target);
    // Without it a delayed reply would wait for an acknowledgement on top.
    let _ = (client.set_nodelay(true), target.set_nodelay(true));
    let (from_client, to_client) = client.split();
    let (from_target, to_target) = target.split();
    let way =
        |way| OneWay { way, client: from, faults: handle.faults.subscribe(), line: line.clone(), held: 0 };
    let (requests, replies) = (way(Way::Requests), way(Way::Replies));
    tokio::try_join!(requests.run(from_client, to_target), replies.run(from_target, to_client))?;
    Ok(())
}

struct OneWay {
    way: Way,
    client: IpAddr,
    faults: watch::Receiver<Faults>,
    line: Line,
    /// Bytes of this connection that stand in the numbers as held.
    held: usize,
}

impl OneWay {
    async fn run(mut self, mut from: ReadHalf<'_>, mut to: WriteHalf<'_>) -> Result<(), Broken> {
        let mut pipe = Pipe::default();
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let treatment = self.faults.borrow_and_update().of(self.client).treatment(self.way);
            match pipe.step(treatment, Instant::now()) {
                Step::Send { bytes, late } => {
                    to.write_all(&bytes).await.map_err(|_| Broken::Side)?;
                    self.note_sent(bytes.len(), late);
                }
                Step::Dropped(count) => self.note_dropped(count),
                Step::Reset => return Err(Broken::Reset),
                Step::Finish => return to.shutdown().await.map_err(|_| Broken::Side),
                Step::Wait(until) => tokio::select! {
                    changed = self.faults.changed() => changed.map_err(|_| Broken::Side)?,
                    read = from.read(&mut buffer), if pipe.reads() => {
                        let count = read.map_err(|_| Broken::Side)?;
                        self.note_held(count);
                        pipe.push(Instant::now(), buffer[..count].to_vec());
                    }
                    () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {}
                },
            }
        }
    }

    fn note_held(&mut self, count: usize) {
        self.held += count;
        self.line.note(|numbers| *numbers.held(self.way) += count as u64);
    }

    fn note_sent(&mut self, count: usize, late: bool) {
        self.held -= count;
        self.line.note(|numbers| {
            *numbers.held(self.way) -= count as u64;
            *numbers.sent(self.way) += count as u64;
            numbers.delayed_bytes += if late { count as u64 } else { 0 };
        });
    }

    fn note_dropped(&mut self, count: usize) {
        self.held -= count;
        self.line.note(|numbers| {
            *numbers.held(self.way) -= count as u64;
            *numbers.dropped(self.way) += count as u64;
        });
    }
}

impl Drop for OneWay {
    fn drop(&mut self) {
        let held = self.held as u64;
        if held > 0 {
            self.line.note(|numbers| *numbers.held(self.way) -= held);
        }
    }
}
