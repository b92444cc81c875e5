//! What the demo shows of the cluster: commands that a reader can repeat, with their output.

use anyhow::Result;
use fencedlease_cluster::kubectl::Kubectl;

use crate::NAMESPACE;

/// Prints a kubectl command and what it prints.
pub(crate) fn show(kubectl: &Kubectl, words: &str) -> Result<()> {
    println!("\n$ kubectl {words} -n {NAMESPACE}");
    let mut arguments: Vec<&str> = words.split(' ').collect();
    arguments.extend(["--namespace", NAMESPACE]);
    print!("{}", kubectl.run(&arguments)?);
    Ok(())
}

/// A line of the story.
pub(crate) fn tell(line: &str) {
    println!("{line}");
}

/// What makes kubectl of a reader's shell use the cluster.
pub(crate) fn environment() -> &'static str {
    "eval \"$(make -s env)\""
}

/// What a reader can do next.
pub(crate) fn look_around() {
    println!(
        "\nLook around:  {}\n              kubectl get fencedleases -A; kubectl describe fencedlease report -n {NAMESPACE}\nClean up:     make clean",
        environment()
    );
}
