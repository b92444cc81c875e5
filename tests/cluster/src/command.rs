//! How does the harness run another program, and what does a person see when that fails?

use std::fmt::Write as _;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::error::{Error, Result};

/// Lines of output that an error repeats.
const TAIL_LINES: usize = 25;

/// Makes a command from its words.
pub fn command(words: &[&str]) -> Command {
    let mut command = Command::new(words.first().copied().unwrap_or_default());
    command.args(words.iter().skip(1));
    command
}

/// Runs a command to its end and gives what it printed on standard output.
/// Fails if it cannot be started or ends with a failure; the error has the end of its output.
pub fn run(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().map_err(|source| spawn_error(command, source))?;
    checked(command, &output)
}

/// Like [`run`], with `input` on standard input.
pub fn run_with_input(command: &mut Command, input: &str) -> Result<String> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| spawn_error(command, source))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends before it has read everything says why by its status.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(|source| spawn_error(command, source))?;
    checked(command, &output)
}

/// Digits of a digest, two for each byte.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The last lines of a text.
pub fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// A command as a person would type it.
pub fn shown(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|word| word.to_string_lossy().into_owned()));
    words.join(" ")
}

fn spawn_error(command: &Command, source: std::io::Error) -> Error {
    Error::Spawn { program: command.get_program().to_string_lossy().into_owned(), source }
}

fn checked(command: &Command, output: &Output) -> Result<String> {
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(stdout);
    }
    let text = format!("{stdout}{}", String::from_utf8_lossy(&output.stderr));
    Err(Error::Command {
        command: shown(command),
        status: output.status.to_string(),
        output: tail(&text, TAIL_LINES),
    })
}
