//! Prints what the checks cost: `make bench`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use fencedlease_bench::through::{Both, Rounds};
use fencedlease_bench::{handover, programs, proxies, raise, sink, sql};

/// Measures what the checks cost, and prints it. It never fails because something is slow.
#[derive(Debug, Parser)]
#[command(name = "bench")]
struct Args {
    /// Measure these alone.
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = Part::ALL)]
    only: Vec<Part>,
    /// How many turns gate and nginx have.
    #[arg(long, default_value_t = 7)]
    rounds: u32,
    /// How long a turn is, in ms.
    #[arg(long, default_value_t = 1000)]
    turn_ms: u64,
    /// A gate that is built already.
    #[arg(long)]
    gate: Option<PathBuf>,
}

/// What can be measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Part {
    /// The gate beside nginx.
    Gate,
    /// A raise beside a sync.
    Raise,
    /// The triggers beside none.
    Sql,
    /// A warm handover.
    Handover,
}

impl Part {
    const ALL: [Self; 4] = [Self::Gate, Self::Raise, Self::Sql, Self::Handover];
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    programs::install()?;
    if args.only.contains(&Part::Gate) || args.only.contains(&Part::Raise) {
        measure_gate(&args)?;
    }
    if args.only.contains(&Part::Sql) {
        print!("{}", sql::measure()?);
    }
    if args.only.contains(&Part::Handover) {
        print!("{}", handover::measure()?);
    }
    Ok(())
}

fn measure_gate(args: &Args) -> anyhow::Result<()> {
    let program = match &args.gate {
        Some(program) => program.clone(),
        None => programs::release("fencedlease-gate", "fencedlease-gate")?,
    };
    let rounds = Rounds { rounds: args.rounds, turn: Duration::from_millis(args.turn_ms) };
    let backend = sink::start()?;
    let both = Both { gate: proxies::gate(&program, backend)?, nginx: proxies::nginx(backend)? };
    if args.only.contains(&Part::Gate) {
        print!("{}", both.compare(rounds)?);
    }
    if args.only.contains(&Part::Raise) {
        print!("{}", raise::measure(&both.gate)?);
    }
    Ok(())
}
