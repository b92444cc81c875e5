//! What does the gate cost, beside nginx as a plain proxy to the same backend?

use std::net::SocketAddr;
use std::time::Duration;

use crate::figures::{count, median, ms, percentile};
use crate::load::{Load, Pace, Seen};
use crate::proxies::{Proxy, ticket};
use crate::table::{Bound, Line, Table};

/// Bodies, in bytes, as they are called in a table.
const BODIES: [(usize, &str); 2] = [(1 << 10, "1 KiB"), (1 << 20, "1 MiB")];
const CONNECTIONS: [u32; 2] = [1, 64];
/// The throughput beside nginx.
const LEAST_RATIO: f64 = 0.8;
/// What may be added to the 99th percentile, in ms.
const MOST_ADDED_MS: f64 = 0.3;
/// How much of the lesser throughput is sent where waiting is measured. Clients, proxy and backend share one machine's
/// processors: at half of it most of a p99 is the wait for one of them, of nginx too.
const PACE: f64 = 0.1;

/// How long and how often each is measured.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    /// How many turns each proxy has.
    pub rounds: u32,
    /// How long a turn is.
    pub turn: Duration,
}

/// One turn of one proxy.
struct Turn {
    seen: Seen,
    worked: Duration,
}

/// The turns of both, the gate's first.
struct Pair(Turn, Turn);

/// Both in front of one backend.
#[derive(Debug)]
pub struct Both {
    /// Ours.
    pub gate: Proxy,
    /// The other.
    pub nginx: Proxy,
}

impl Both {
    /// Measures every size of body and number of connections.
    pub fn compare(&self, rounds: Rounds) -> anyhow::Result<Table> {
        let mut lines = Vec::new();
        for (bytes, called) in BODIES {
            for connections in CONNECTIONS {
                lines.extend(self.case(rounds, bytes, called, connections)?);
            }
        }
        let Rounds { rounds, turn } = rounds;
        let title = format!(
            "The gate beside nginx as a plain proxy, same backend: PUT with a ticket, in turns of {} s; \
             medians of {rounds} pairs",
            turn.as_secs_f64()
        );
        Ok(Table { title, lines })
    }

    fn case(
        &self,
        Rounds { rounds, turn }: Rounds,
        bytes: usize,
        called: &str,
        connections: u32,
    ) -> anyhow::Result<Vec<Line>> {
        let load = |address| load(address, bytes, connections);
        let warm = self.pair(&load, Pace::Full, turn / 2, true)?;
        let rate = warm.0.seen.per_second().min(warm.1.seen.per_second()) * PACE;
        let (mut full, mut paced) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            let gate_first = round % 2 == 0;
            full.push(self.pair(&load, Pace::Full, turn, gate_first)?);
            paced.push(self.pair(&load, Pace::PerSecond(rate), turn, gate_first)?);
        }
        let plural = if connections == 1 { "" } else { "s" };
        let what = format!("{called}, {connections} connection{plural}");
        Ok(vec![
            throughput(&what, &full),
            added(&what, &paced, rate, 500, Bound::None),
            added(&what, &paced, rate, 990, Bound::AtMost(MOST_ADDED_MS)),
            work(&what, &full),
        ])
    }

    /// One turn of each, with a minute's ticket.
    fn pair(
        &self,
        load: &impl Fn(SocketAddr) -> anyhow::Result<Load>,
        pace: Pace,
        turn: Duration,
        gate_first: bool,
    ) -> anyhow::Result<Pair> {
        let measure = |proxy: &Proxy| -> anyhow::Result<Turn> {
            let load = load(proxy.address)?;
            let before = proxy.worked()?;
            let seen = load.run(pace, turn)?;
            Ok(Turn { seen, worked: proxy.worked()?.saturating_sub(before) })
        };
        if gate_first {
            let gate = measure(&self.gate)?;
            Ok(Pair(gate, measure(&self.nginx)?))
        } else {
            let nginx = measure(&self.nginx)?;
            Ok(Pair(measure(&self.gate)?, nginx))
        }
    }
}

fn load(address: SocketAddr, bytes: usize, connections: u32) -> anyhow::Result<Load> {
    let head = format!(
        "PUT /reports/today HTTP/1.1\r\nhost: files.shop.svc\r\nuser-agent: bench\r\naccept: */*\r\n\
         content-type: application/octet-stream\r\ncontent-length: {bytes}\r\n{}\r\n",
        ticket(1)?
    );
    Ok(Load { address, connections, head, body: vec![b'x'; bytes] })
}

fn medians(pairs: &[Pair], of: impl Fn(&Turn) -> f64) -> (f64, f64) {
    let side = |turn: fn(&Pair) -> &Turn| median(&pairs.iter().map(|it| of(turn(it))).collect::<Vec<_>>());
    (side(|pair| &pair.0), side(|pair| &pair.1))
}

fn throughput(what: &str, pairs: &[Pair]) -> Line {
    let rate = |turn: &Turn| turn.seen.per_second();
    let (gate, nginx) = medians(pairs, rate);
    let ratios: Vec<f64> = pairs.iter().map(|pair| rate(&pair.0) / rate(&pair.1)).collect();
    Line {
        what: format!("throughput, {what}"),
        of: format!("gate {gate:.0}/s, nginx {nginx:.0}/s"),
        figure: median(&ratios),
        unit: "×",
        bound: Bound::AtLeast(LEAST_RATIO),
    }
}

fn added(what: &str, pairs: &[Pair], rate: f64, permille: usize, bound: Bound) -> Line {
    let of = |turn: &Turn| ms(percentile(&turn.seen.latencies, permille));
    let (gate, nginx) = medians(pairs, of);
    let added: Vec<f64> = pairs.iter().map(|pair| of(&pair.0) - of(&pair.1)).collect();
    // What nginx adds to itself is the least that can be told from nothing.
    let noise: Vec<f64> = pairs.windows(2).map(|turns| (of(&turns[0].1) - of(&turns[1].1)).abs()).collect();
    Line {
        what: format!("added p{}, {what}", permille / 10),
        of: format!(
            "gate {gate:.3} ms, nginx {nginx:.3} ms at {rate:.0}/s; nginx from turn to turn ± {:.3} ms",
            median(&noise)
        ),
        figure: median(&added),
        unit: "ms",
        bound,
    }
}

fn work(what: &str, pairs: &[Pair]) -> Line {
    let each = |turn: &Turn| ms(turn.worked) * 1e3 / count(turn.seen.latencies.len());
    let (gate, nginx) = medians(pairs, each);
    Line {
        what: format!("processor time, {what}"),
        of: format!("gate {gate:.0} µs, nginx {nginx:.0} µs a request"),
        figure: gate / nginx,
        unit: "×",
        bound: Bound::None,
    }
}
