//! The gate's program.

use anyhow::Context as _;
use clap::Parser as _;
use fencedlease_gate::{app, args::Args};
use tracing_subscriber::EnvFilter;

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    log(&args)?;
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        anyhow::bail!("another crypto provider is installed already");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let outcome = runtime.block_on(app::run(args));
    if let Err(error) = &outcome {
        tracing::error!("{error:#}");
    }
    outcome
}

fn log(args: &Args) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&args.log_level).with_context(|| {
        format!(
            "--log-level {:?} is not understood; use for example info or fencedlease_gate=debug",
            args.log_level
        )
    })?;
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if args.log_json {
        logs.json().init();
    } else {
        logs.with_ansi(false).init();
    }
    Ok(())
}
