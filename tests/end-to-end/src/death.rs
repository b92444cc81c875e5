//! When did the last process of a container die? Seen from its node, without a word of the container, the sidecar
//! or the operator.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use fencedlease_cluster::testing::PATIENCE;

use crate::node_shell::{LIST, NodeShell};

/// `$1` is the container, `$2` how many seconds to watch. It looks every few milliseconds at the processes that it
/// knows, without a process of its own for each look, and for those that have come since once none of them lives: a
/// node's processor that watches are busy with is late for everybody.
const WATCH: &str = r#"
lives() {
  for pid; do
    read -r stat <"/proc/$pid/stat" || continue
    case "$stat" in *") Z "*|*") X "*) ;; *) return 0 ;; esac
  done 2>/dev/null
  return 1
}
pids() { list "$1" | cut -d' ' -f1; }
known=$(pids "$1")
[ -n "$known" ] || { echo none; exit; }
echo watching
read -r up rest </proc/uptime
until=$((${up%.*} + $2))
while [ -n "$known" ]; do
  while lives $known; do
    read -r up rest </proc/uptime
    [ "${up%.*}" -lt "$until" ] || { echo alive; exit; }
    sleep 0.005
  done
  known=$(pids "$1")
done
read -r up rest </proc/uptime
echo "gone $up"
"#;

/// A watch that has begun.
#[derive(Debug)]
pub struct DeathWatch {
    process: Child,
    lines: BufReader<ChildStdout>,
    within: Duration,
}

// === impl DeathWatch ===

impl DeathWatch {
    pub(crate) fn begin(node: &NodeShell<'_>, container_id: &str, within: Duration) -> Result<Self> {
        let script = format!("{LIST}{WATCH}");
        let limit = (within * PATIENCE).as_secs().max(1).to_string();
        let mut process = node
            .command(&script, &[container_id, &limit])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start kubectl")?;
        let lines = BufReader::new(process.stdout.take().context("kubectl has no output")?);
        let mut watch = Self { process, lines, within };
        match watch.line()?.as_str() {
            "watching" => Ok(watch),
            other => {
                bail!("no process of container {container_id} lives; the shell on the node said {other:?}")
            }
        }
    }

    /// Waits for the death and gives its instant on CLOCK_BOOTTIME, to 10 ms, never too early. Fails if a
    /// process still lives at the end of the time.
    pub fn seen(mut self) -> Result<Duration> {
        let line = self.line()?;
        instant(&line).with_context(|| format!("after {:?}: {line:?} instead of a death", self.within))
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.lines.read_line(&mut line).context("the shell on the node broke off")?;
        Ok(line.trim().to_owned())
    }
}

impl Drop for DeathWatch {
    fn drop(&mut self) {
        // It has ended by itself if the death was seen.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The instant in a line such as `gone 1234.56`.
fn instant(line: &str) -> Option<Duration> {
    let seconds: f64 = line.strip_prefix("gone ")?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests;
