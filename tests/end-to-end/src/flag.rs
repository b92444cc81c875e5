//! What the file `lost` of a pod says, seen from its node: a pod that has lost its lease ends soon after, and its
//! volumes end with it.

use std::io::Read as _;
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};
use fencedlease_cluster::testing::PATIENCE;
use fencedlease_wire::lost::LostFlag;

use crate::node_shell::{LIST, NodeShell};

/// `$1` is the pod's uid, which stands in the cgroup of its processes, `$2` how many seconds to watch. The folder
/// is kept open by going into it: it can be read as long as the watch lasts.
const WATCH: &str = r#"
for process in $(list "$1" | cut -d' ' -f1); do
  cd "/proc/$process/root/run/fencedlease" 2>/dev/null && [ -S lease.sock ] && break
done
[ -S lease.sock ] || { echo "no process of the pod has the shared volume" >&2; exit 1; }
echo watching
read -r up rest </proc/uptime
until=$((${up%.*} + $2))
until [ -s lost ]; do
  read -r up rest </proc/uptime
  [ "${up%.*}" -lt "$until" ] || exit 1
  sleep 0.02
done
cat lost
"#;

/// A watch that has begun.
#[derive(Debug)]
pub struct FlagWatch(Child);

// === impl FlagWatch ===

impl FlagWatch {
    pub(crate) fn begin(node: &NodeShell<'_>, pod_uid: &str, within: Duration) -> Result<Self> {
        let limit = (within * PATIENCE).as_secs().max(1).to_string();
        let mut process = node
            .command(&format!("{LIST}{WATCH}"), &[pod_uid, &limit])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start kubectl")?;
        let mut first = [0; "watching\n".len()];
        let output = process.stdout.as_mut().context("kubectl has no output")?;
        output.read_exact(&mut first).context("the shell on the node broke off")?;
        Ok(Self(process))
    }

    /// Waits for the file and reads it.
    pub fn seen(mut self) -> Result<LostFlag> {
        let mut text = String::new();
        self.0.stdout.take().context("kubectl has no output")?.read_to_string(&mut text)?;
        serde_json::from_str(&text).with_context(|| format!("the file lost holds {text:?}"))
    }
}

impl Drop for FlagWatch {
    fn drop(&mut self) {
        // It has ended by itself if the file was seen.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
