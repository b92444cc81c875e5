//! What docs/applications.md shows of a gate is run as it stands there.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::Context as _;
use fencedlease_gates_tests::World;

/// The indented lines of the page's section.
fn snippet() -> anyhow::Result<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/applications.md");
    let page = fs::read_to_string(page)?;
    let section = page.split("## Through a gate\n").nth(1).context("no section")?;
    let section = section.split("\n## ").next().unwrap_or_default();
    Ok(section.lines().filter(|line| line.starts_with("    ")).collect::<Vec<_>>().join("\n"))
}

#[test]
fn the_lines_of_the_page_write_through_the_gate_while_the_lease_is_held_and_fail_otherwise()
-> anyhow::Result<()> {
    let world = World::new()?;
    let holder = world.holder("one")?;
    let said = holder.waits_saying("gate reports")?;
    fs::write(world.place.path().join("report.csv"), "a,b\n")?;
    let run = || -> anyhow::Result<Output> {
        let output = Command::new("/bin/sh")
            .args(["-c", &snippet()?])
            .current_dir(world.place.path())
            .env("FENCEDLEASE_SOCKET", holder.socket()?)
            .env("GATE", format!("http://{}", world.place.address))
            .output();
        output.context("cannot run sh")
    };
    let waiting = run()?;
    assert!(!waiting.status.success(), "{said}: {waiting:?}");
    let _gate = world.place.start(&[])?;
    holder.active()?;
    let written = run()?;
    assert!(written.status.success(), "{written:?}");
    assert_eq!(world.place.backend.bodies(), ["a,b\n"]);
    Ok(())
}
