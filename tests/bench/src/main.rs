//! Prints what the checks cost: `make bench`.

use std::time::Duration;

use clap::Parser;
use fencedlease_bench::through::{Both, Rounds};
use fencedlease_bench::{programs, proxies, raise, sink};

/// Measures what the checks cost, and prints it. It never fails because something is slow.
#[derive(Debug, Parser)]
#[command(name = "bench")]
struct Args {
    /// How many turns each side of a comparison has.
    #[arg(long, default_value_t = 7)]
    rounds: u32,
    /// How long a turn is, in ms.
    #[arg(long, default_value_t = 1000)]
    turn_ms: u64,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    programs::install()?;
    let gate = programs::release("fencedlease-gate", "fencedlease-gate")?;
    let rounds = Rounds { rounds: args.rounds, turn: Duration::from_millis(args.turn_ms) };
    let backend = sink::start()?;
    let both = Both { gate: proxies::gate(&gate, backend)?, nginx: proxies::nginx(backend)? };
    print!("{}", both.compare(rounds)?);
    print!("{}", raise::measure(&both.gate)?);
    Ok(())
}
