//! Writes `docs/faults.md` from what tests kept: `fault-matrix FOLDER PAGE`.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Parser;
use fencedlease_faults::matrix::{page, read};

/// Write the page of faults from what tests kept.
#[derive(Debug, Parser)]
#[command(name = "fault-matrix")]
struct Args {
    /// The folder that FENCEDLEASE_FAULTS_DIR named while the tests ran.
    folder: PathBuf,
    /// The page to write.
    page: PathBuf,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let shown = read(&args.folder).with_context(|| {
        format!("cannot read {}; run `make faults`, which runs the tests first", args.folder.display())
    })?;
    std::fs::write(&args.page, page(&shown))
        .with_context(|| format!("cannot write {}", args.page.display()))?;
    println!("{} results in {}", shown.len(), args.page.display());
    Ok(())
}
