//! A workload: every process of it stamps the board until it is killed or asked to end.

use std::env;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use fencedlease_nemesis::board::{Board, now};

/// From one stamp to the next.
const EVERY: Duration = Duration::from_millis(1);

#[derive(Debug, Parser)]
struct Args {
    /// The board's file.
    board: PathBuf,
    /// The run.
    run: u64,
    /// Which process of it this is.
    #[arg(long, default_value_t = 0)]
    process: u64,
    /// Leave a daemon behind: a grandchild in a session of its own, without a parent.
    #[arg(long)]
    daemon: bool,
}

fn main() -> anyhow::Result<ExitCode> {
    let first = now();
    let args = Args::parse();
    let fence: u64 = env::var("FENCEDLEASE_FENCE").context("no FENCEDLEASE_FENCE")?.parse()?;
    let board = Board::open(&args.board)?;
    board.stamp(args.run, args.process, fence, first, first)?;
    if args.daemon && args.process < 2 {
        let mut child = Command::new(env::current_exe()?);
        child.arg(&args.board).arg(args.run.to_string()).arg("--daemon");
        child.arg("--process").arg((args.process + 1).to_string()).spawn()?;
        if args.process == 1 {
            return Ok(ExitCode::SUCCESS);
        }
    }
    if args.process > 0 {
        rustix::process::setsid()?;
    }
    loop {
        board.stamp(args.run, args.process, fence, first, now())?;
        if args.process == 0 && board.is_to_end(args.run) {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(EVERY);
    }
}
