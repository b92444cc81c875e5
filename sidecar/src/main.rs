//! `fencedlease`: one static binary, a subcommand for each part that it plays in a pod.

use std::process::ExitCode;

use clap::Parser as _;
use fencedlease_sidecar::args::{Args, Command};
use fencedlease_sidecar::{acl, exec, guard, hold, while_active};
use fencedlease_wire::exit;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Printing can only fail where nobody reads.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(exit::BAD_SETTINGS) } else { ExitCode::SUCCESS };
        }
    };
    match args.command {
        Command::Hold(args) => hold::run(&args),
        Command::Guard(args) => guard::run(args),
        Command::WhileActive(args) => while_active::run(&args),
        Command::Exec(args) => exec::run(&args),
        Command::Acl(args) => acl::run(&args),
        Command::ExecHold(args) => exec::hold(&args),
        Command::ExecGuard(args) => exec::guard(args),
    }
}
