//! Clients that send one request after the other, each on a connection of its own that is kept alive.

use std::net::SocketAddr;
use std::sync::Barrier;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use crate::connection::Connection;
use crate::figures::count;

/// What is sent, where to, and by how many.
#[derive(Clone, Debug)]
pub struct Load {
    /// The server.
    pub address: SocketAddr,
    /// How many clients send at a time.
    pub connections: u32,
    /// A whole head, with its empty line.
    pub head: String,
    /// The body that belongs to it.
    pub body: Vec<u8>,
}

/// When the clients send.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// Each sends as soon as it has its answer.
    Full,
    /// All of them together send this often in a second, whether or not answers are late.
    PerSecond(f64),
}

/// What was seen of a load.
#[derive(Clone, Debug)]
pub struct Seen {
    /// How long each request took, in the order of its end.
    pub latencies: Vec<Duration>,
    /// How long all of it took.
    pub took: Duration,
}

/// One client.
struct Client<'a> {
    load: &'a Load,
    connection: Connection,
}

// === impl Load ===

impl Load {
    /// Sends for this long. Fails at the first answer that is not a 2xx.
    pub fn run(&self, pace: Pace, how_long: Duration) -> anyhow::Result<Seen> {
        let clients = (0..self.connections).map(|_| Client::connect(self)).collect::<Result<Vec<_>, _>>()?;
        let barrier = Barrier::new(clients.len());
        let start = Instant::now();
        let all = thread::scope(|scope| {
            let barrier = &barrier;
            let threads: Vec<_> = (0..)
                .zip(clients)
                .map(|(number, client)| scope.spawn(move || client.work(pace, number, how_long, barrier)))
                .collect();
            threads.into_iter().map(ScopedJoinHandle::join).collect::<Vec<_>>()
        });
        let took = start.elapsed();
        let mut latencies = Vec::new();
        for client in all {
            latencies.extend(client.map_err(|_| anyhow::anyhow!("a client panicked"))??);
        }
        Ok(Seen { latencies, took })
    }
}

// === impl Seen ===

impl Seen {
    /// Requests in a second.
    pub fn per_second(&self) -> f64 {
        count(self.latencies.len()) / self.took.as_secs_f64()
    }
}

// === impl Client ===

impl<'a> Client<'a> {
    fn connect(load: &'a Load) -> anyhow::Result<Self> {
        Ok(Self { load, connection: Connection::to(load.address)? })
    }

    fn work(
        mut self,
        pace: Pace,
        number: u32,
        how_long: Duration,
        barrier: &Barrier,
    ) -> anyhow::Result<Vec<Duration>> {
        let mut latencies = Vec::with_capacity(65_536);
        barrier.wait();
        let start = Instant::now();
        let mut due = start;
        let between = match pace {
            Pace::Full => Duration::ZERO,
            Pace::PerSecond(rate) => {
                let between = Duration::from_secs_f64(f64::from(self.load.connections) / rate);
                due += between * number / self.load.connections;
                between
            }
        };
        while start.elapsed() < how_long {
            let ahead = due.saturating_duration_since(Instant::now());
            // An answer that was late delays what was due meanwhile, and that counts; a timer that was late is
            // the client's own.
            let from = if between.is_zero() || ahead > Duration::ZERO {
                thread::sleep(ahead);
                Instant::now()
            } else {
                due
            };
            self.connection.exchange(&self.load.head, &self.load.body)?;
            latencies.push(from.elapsed());
            due += between;
        }
        Ok(latencies)
    }
}
