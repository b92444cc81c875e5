//! What a guarded pod costs: the size of the sidecar's image, and the memory of its processes at rest.

use anyhow::{Context as _, Result};
use fencedlease_end_to_end::{NodeShell, Stage, Workload, seconds};
use serde_json::json;

const MEGABYTE: u64 = 1_000_000;
const MOST_PSS_KIB: u64 = 8 * 1024;

/// Prints the proportional set size of each process named, in KiB.
const PSS: &str = r#"for pid; do while read -r key value unit; do
  case "$key" in Pss:) echo "$value" ;; esac
done <"/proc/$pid/smaps_rollup"; done"#;

#[test]
fn the_image_has_eight_megabytes_at_most() -> Result<()> {
    let stage = Stage::open("image")?;
    let archive = stage.cluster().paths().images().join("sidecar.tar");
    let bytes = std::fs::metadata(&archive).with_context(|| archive.display().to_string())?.len();
    println!("sidecar image: {} kB", bytes / 1000);
    assert!(bytes <= 8 * MEGABYTE, "the sidecar's image has {bytes} bytes");
    Ok(())
}

#[test]
fn the_sidecar_at_rest_has_eight_mebibytes_at_most() -> Result<()> {
    let stage = Stage::open("memory")?;
    stage.lease_of_installation("report", &json!({}))?;
    stage.start(&Workload::deployment("report").guarded_by("report").replicas(2))?;
    let holder = stage.holder("report", seconds(60))?;
    stage.until_standbys("report", 1, seconds(60))?;
    for pod in stage.pods("app=report")? {
        let role = if pod.name() == holder.name() { "holder" } else { "standby" };
        let processes = pod.processes("fencedlease")?;
        assert!(!processes.is_empty(), "no process of the sidecar of {} is seen", pod.name());
        let pids: Vec<String> = processes.iter().map(|process| process.pid.to_string()).collect();
        let pids: Vec<&str> = pids.iter().map(String::as_str).collect();
        let shown = NodeShell::on(&stage, pod.node()?)?.run(PSS, &pids)?;
        let pss: u64 = shown.split_whitespace().map(str::parse::<u64>).sum::<Result<_, _>>()?;
        println!("{role}'s sidecar: {pss} KiB PSS in {} process(es)", processes.len());
        assert!(pss > 0 && pss <= MOST_PSS_KIB, "{role}'s sidecar has {pss} KiB");
    }
    Ok(())
}
