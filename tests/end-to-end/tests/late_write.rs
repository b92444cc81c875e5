//! A write that is on its way when its writer dies arrives after the next holder has written: refused where the
//! fence is checked, and not elsewhere.

use anyhow::{Result, ensure};
use fencedlease_cluster::progress::Progress;
use fencedlease_end_to_end::late_write::{LateWrite, line_of};
use fencedlease_end_to_end::matrix::shown;
use fencedlease_end_to_end::{Direction, Fault, Stage, images, seconds};
use serde_json::json;

#[test]
fn a_late_write_is_refused_where_the_fence_is_checked() -> Result<()> {
    let stage = Stage::open("late write")?;
    let needed = [&images::FOR_LATE_WRITE[..], &images::FOR_GATES[..]].concat();
    images::hand_over(stage.cluster(), &needed, &Progress::start())?;
    let redis = stage.redis_behind_proxy()?;
    let spec = json!({ "redis": { "addresses": [redis.address()] } });
    let cluster = stage.cluster();
    let scene = LateWrite::prepare(cluster.kubectl(), cluster.target(), stage.namespace(), &spec)?;
    scene.start_writers()?;
    let writer_after = |fence| {
        stage.eventually(seconds(60), "a writer that has written everywhere", |_| scene.writer_after(fence))
    };
    let first = writer_after(0)?;

    scene.hold(&first)?;
    stage.eventually(seconds(30), "a write on its way to each place", |_| {
        Ok((!scene.held(&first)?.contains(&0)).then_some(()))
    })?;
    redis.set(&stage.pod(&first.pod)?, Fault::Drop { direction: Direction::Both })?;
    let second = writer_after(first.fence)?;
    ensure!(scene.last_loss()?["fence"] == first.fence, "{}", scene.last_loss()?);
    ensure!(!scene.held(&first)?.contains(&0), "the network kept nothing");
    ensure!(scene.database_refusal(first.fence)?.is_none(), "refused before it was delivered");
    ensure!(scene.gate_refusals()? == 0, "refused before it was delivered");

    scene.deliver(&first)?;
    let late = line_of(first.fence);
    let lines = stage.eventually(seconds(20), "the late write where nothing is checked", |_| {
        let lines = scene.lines()?;
        Ok((lines.iter().filter(|line| **line == late).count() >= 2).then_some(lines))
    })?;
    let next = line_of(second.fence);
    ensure!(lines == [next.clone(), late.clone(), next, late], "{lines:?}");
    let refused = "the refusal in PostgreSQL's log";
    stage.eventually(seconds(20), refused, |_| scene.database_refusal(first.fence))?;
    stage.eventually(
        seconds(20),
        "the gate's refusal",
        |_| Ok((scene.gate_refusals()? > 0).then_some(())),
    )?;
    let outcome = "on Kubernetes, a write that the network kept until the next holder had written: refused by \
                   PostgreSQL's trigger and by the gate, and it overwrote where there was neither";
    Ok(shown(&[48], outcome)?)
}
