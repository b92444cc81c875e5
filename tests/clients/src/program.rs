//! Where each language's how-to is, and how it becomes something that runs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context as _, bail};

use crate::root;

/// A how-to, ready to run.
#[derive(Debug)]
pub struct Program {
    /// Its language, as people write it.
    pub language: &'static str,
    /// The command that runs it.
    pub command: Vec<String>,
}

// === impl Program ===

impl Program {
    /// One program for each language. Fails if a toolchain is missing, and names what installs it.
    pub fn all() -> anyhow::Result<Vec<Self>> {
        Ok(vec![Self::rust()?, Self::python()?, Self::go()?, Self::java()?, Self::shell()?])
    }

    /// The shell's alone.
    pub fn shell() -> anyhow::Result<Self> {
        for (tool, package) in [("curl", "curl"), ("psql", "postgresql-client")] {
            run(Command::new(tool).arg("--version"), package)?;
        }
        Self::new("shell", |_| Ok(vec!["/bin/sh".to_owned(), path("shell/report.sh")]))
    }

    fn rust() -> anyhow::Result<Self> {
        let built = build(&["-p", "fencedlease-client", "--example", "report"], "examples/report")?;
        Self::new("Rust", |_| Ok(vec![built.display().to_string()]))
    }

    fn python() -> anyhow::Result<Self> {
        run(Command::new("python3").arg("--version"), "python3")?;
        Self::new("Python", |_| Ok(vec!["python3".to_owned(), path("python/report.py")]))
    }

    fn go() -> anyhow::Result<Self> {
        Self::new("Go", |folder| {
            let built = folder.join("report").display().to_string();
            run(Command::new("go").args(["build", "-o", &built, "."]).current_dir(path("go")), "golang-go")?;
            Ok(vec![built])
        })
    }

    fn java() -> anyhow::Result<Self> {
        Self::new("Java", |folder| {
            let built = folder.display().to_string();
            let mut javac = Command::new("javac");
            let package = "openjdk-17-jdk-headless";
            run(javac.args(["-Xlint:all", "-Werror", "-d", &built, &path("java/Report.java")]), package)?;
            Ok(["java", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-cp", &built, "Report"]
                .map(str::to_owned)
                .into())
        })
    }

    fn new(
        language: &'static str,
        build: impl FnOnce(&Path) -> anyhow::Result<Vec<String>>,
    ) -> anyhow::Result<Self> {
        let folder = profile()?.join("how-tos").join(language);
        fs::create_dir_all(&folder)?;
        let command = build(&folder).with_context(|| format!("the {language} how-to"))?;
        Ok(Self { language, command })
    }
}

/// Our own binary, built as the tests are.
pub(crate) fn fencedlease() -> anyhow::Result<PathBuf> {
    build(&["-p", "fencedlease-sidecar", "--bin", "fencedlease"], "fencedlease")
}

/// Builds with cargo and gives what it built, below the folder where this test lies.
fn build(what: &[&str], built: &str) -> anyhow::Result<PathBuf> {
    let profile = profile()?;
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "--quiet"]).args(what).current_dir(root());
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    let target = profile.parent().context("a profile's folder lies in the target folder")?;
    run(cargo.arg("--target-dir").arg(target), "rustup")?;
    Ok(profile.join(built))
}

/// The folder of the profile that this test was built with.
fn profile() -> anyhow::Result<PathBuf> {
    let test = env::current_exe()?;
    Ok(test.ancestors().nth(2).context("a test lies two folders below its profile's")?.to_owned())
}

fn path(below_clients: &str) -> String {
    root().join("clients").join(below_clients).display().to_string()
}

/// Runs a tool that a Debian package brings.
fn run(command: &mut Command, package: &str) -> anyhow::Result<()> {
    let tool = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .with_context(|| format!("cannot run {tool}; install it with `apt-get install -y {package}`"))?;
    if !output.status.success() {
        let text = [output.stdout, output.stderr].concat();
        bail!("{tool} failed: {}", String::from_utf8_lossy(&text));
    }
    Ok(())
}
