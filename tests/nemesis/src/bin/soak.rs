//! Nobody may lose a lease for nothing: a soak of any length.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use fencedlease_nemesis::soak::{HOGS, ROUND_TRIP, Soak};

/// Holds four leases over a slow network on a busy machine, and fails at the first that is lost.
#[derive(Debug, Parser)]
struct Args {
    /// How long, in minutes.
    #[arg(long, default_value_t = 60)]
    minutes: u64,
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let mut soak = Soak::start()?;
    println!("round trip {ROUND_TRIP:?}, half of the default timeout; {HOGS} busy threads");
    for minute in 1..=args.minutes {
        let seen = soak.watch(Duration::from_secs(60))?;
        println!("{minute} of {} min: {seen}", args.minutes);
        if !seen.lost.is_empty() {
            return Ok(ExitCode::FAILURE);
        }
    }
    soak.end()?;
    Ok(ExitCode::SUCCESS)
}
