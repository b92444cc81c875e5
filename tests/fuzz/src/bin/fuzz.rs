//! Builds the targets for libFuzzer and lets it look at each of them for some minutes.
//!
//! Rust's stable compiler has what libFuzzer needs; the flags are those of cargo-fuzz, without its sanitizer.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use anyhow::{Context as _, bail, ensure};
use clap::Parser;
use fencedlease_fuzz::{TARGETS, Target, corpus, target};

/// Counts edges, and tells comparisons apart, in everything that is built with it.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                     -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares";
/// The longest input, in bytes.
const MOST_BYTES: usize = 8192;
/// What of libFuzzer's own lines is shown when it has found something.
const LAST_LINES: usize = 120;

/// Lets libFuzzer look for inputs on which a target panics.
#[derive(Debug, Parser)]
struct Args {
    /// For each target.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1440))]
    minutes: u64,
    /// Which; all of them if none is named.
    targets: Vec<String>,
}

/// Where everything is kept.
struct Places {
    /// The program with the targets.
    program: PathBuf,
    /// What libFuzzer has found interesting in this run and in earlier ones, and what it has found wrong.
    cache: PathBuf,
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let targets = chosen(&args.targets)?;
    let places = build()?;
    let mut found = Vec::new();
    for target in targets {
        if !run(&places, target, args.minutes)? {
            found.push(target.name);
        }
    }
    if found.is_empty() {
        println!("Nothing was found.");
        return Ok(ExitCode::SUCCESS);
    }
    println!("Found something in: {}.", found.join(", "));
    Ok(ExitCode::FAILURE)
}

fn chosen(names: &[String]) -> anyhow::Result<Vec<Target>> {
    if names.is_empty() {
        return Ok(TARGETS.to_vec());
    }
    let known = || TARGETS.map(|target| target.name).join(", ");
    let one =
        |name: &String| target(name).with_context(|| format!("{name} is no target; there are {}", known()));
    names.iter().map(one).collect()
}

fn build() -> anyhow::Result<Places> {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let works = Command::new(&compiler).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    ensure!(
        works.is_ok_and(|status| status.success()),
        "no C++ compiler, of which libFuzzer is built ({compiler} does not run): run 'apt-get install -y g++', or name one in CXX"
    );
    let cache = cache()?;
    let built = cache.join("target/fuzz");
    let host = host()?;
    println!("Building the targets for libFuzzer in {}; the first time takes some minutes.", built.display());
    let status = Command::new(cargo())
        .args(["build", "--locked", "--quiet", "--profile", "fuzz", "--target", &host])
        .args(["-p", "fencedlease-fuzz", "--features", "guided", "--bin", "guided"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("CARGO_TARGET_DIR", &built)
        .env("RUSTFLAGS", FLAGS)
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "the targets cannot be built ({status}); the reason stands above");
    Ok(Places { program: built.join(host).join("fuzz/guided"), cache: cache.join("fuzz") })
}

fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

fn cache() -> anyhow::Result<PathBuf> {
    if let Some(cache) = std::env::var_os("FENCEDLEASE_CACHE") {
        return Ok(cache.into());
    }
    let home =
        std::env::var_os("HOME").context("neither FENCEDLEASE_CACHE nor HOME is set: set one of them")?;
    Ok(Path::new(&home).join(".cache/fencedlease"))
}

/// With a target that is named, cargo leaves what runs while it builds as it is.
fn host() -> anyhow::Result<String> {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let output = Command::new(rustc).arg("-vV").output().context("cannot run rustc")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc -vV names no host")
}

/// Whether a target stood it.
fn run(places: &Places, target: Target, minutes: u64) -> anyhow::Result<bool> {
    let (kept, wrong) = (places.cache.join(target.name), places.cache.join("found").join(target.name));
    std::fs::create_dir_all(&kept)?;
    std::fs::create_dir_all(&wrong)?;
    let words = places.cache.join(format!("{}.words", target.name));
    std::fs::write(&words, dictionary(target.words))?;
    println!("{}: {minutes} min …", target.name);
    let mut child = Command::new(&places.program)
        .env("FENCEDLEASE_FUZZ_TARGET", target.name)
        .arg(&kept)
        .arg(corpus::folder(target.name))
        .arg(format!("-max_total_time={}", minutes * 60))
        .arg(format!("-max_len={MOST_BYTES}"))
        .arg(format!("-dict={}", words.display()))
        .arg(format!("-artifact_prefix={}/", wrong.display()))
        .args(["-timeout=25", "-rss_limit_mb=2048", "-print_final_stats=1"])
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", places.program.display()))?;
    let Some(words) = child.stderr.take() else { bail!("libFuzzer cannot be heard") };
    let lines = follow(target, words)?;
    told(target, child.wait()?, &lines)
}

fn follow(target: Target, words: impl std::io::Read) -> anyhow::Result<Vec<String>> {
    let mut lines: Vec<String> = Vec::new();
    for line in BufReader::new(words).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        if line.contains("pulse") || line.contains("DONE") {
            println!("{}: {}", target.name, line.trim_start_matches('#'));
        }
        lines.push(line);
        if lines.len() > LAST_LINES {
            lines.remove(0);
        }
    }
    Ok(lines)
}

fn told(target: Target, status: ExitStatus, lines: &[String]) -> anyhow::Result<bool> {
    if status.success() {
        let inputs = lines.iter().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
        println!("{}: {} inputs, nothing found", target.name, inputs.unwrap_or("?").trim());
        return Ok(true);
    }
    for line in lines {
        println!("{line}");
    }
    let file = lines.iter().find_map(|line| line.split_once("Test unit written to ")).map(|(_, file)| file);
    let Some(file) = file else { bail!("libFuzzer ended with {status}; its last words stand above") };
    let folder = corpus::folder(target.name);
    println!(
        "{}: see it again with: cp {file} {}/NAME && cargo test -p fencedlease-fuzz --test corpora",
        target.name,
        folder.display()
    );
    Ok(false)
}

/// Words as libFuzzer's `-dict` reads them: a line each, whatever is special in hexadecimal digits.
fn dictionary(words: &[&str]) -> String {
    let mut lines = String::new();
    for word in words {
        lines.push('"');
        for byte in word.bytes() {
            match byte {
                b' '..=b'~' if byte != b'"' && byte != b'\\' => lines.push(char::from(byte)),
                byte => lines.extend(["\\x".to_owned(), format!("{byte:02X}")]),
            }
        }
        lines.push_str("\"\n");
    }
    lines
}
