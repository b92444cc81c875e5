//! A nemesis run of any length.

use std::process::ExitCode;

use clap::Parser;
use fencedlease_nemesis::run::play;

/// Holders of eight leases under random faults, until so many handovers have happened.
#[derive(Debug, Parser)]
struct Args {
    /// Handovers of all leases together.
    #[arg(long, default_value_t = 10_000)]
    handovers: u64,
    /// What decides the faults. Default: one of now.
    #[arg(long)]
    seed: Option<u64>,
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let seed = args.seed.unwrap_or_else(fencedlease_nemesis::board::now);
    println!("seed {seed}");
    let report = play(args.handovers, seed)?;
    println!("{}", report.text());
    Ok(ExitCode::from(u8::from(!report.violations.is_empty())))
}
