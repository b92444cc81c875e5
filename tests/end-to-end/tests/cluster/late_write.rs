//! A write that is on its way when its writer dies arrives after the next holder has written: refused where the
//! fence is checked, and not elsewhere.

use std::cell::Cell;

use anyhow::{Result, ensure};
use fencedlease_cluster::progress::Progress;
use fencedlease_end_to_end::late_write::{LateWrite, Place, line_of};
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
    stage.eventually(seconds(60), "a write on its way to each place", |_| {
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
    let next = line_of(second.fence);
    // The next holder writes on, over what came late: each place counts from the look that shows it.
    let was_overwritten = Cell::new(Place::ALL.map(|_| false));
    stage.eventually(seconds(60), "the late write where nothing is checked", |_| {
        let mut seen = was_overwritten.get();
        for ((line, place), seen) in scene.lines()?.iter().zip(Place::ALL).zip(&mut seen) {
            ensure!(*line == next || (*line == late && place.check().is_none()), "{place:?} has {line:?}");
            *seen |= *line == late;
        }
        was_overwritten.set(seen);
        let all = Place::ALL.iter().zip(seen).all(|(place, seen)| seen == place.check().is_none());
        Ok(all.then_some(()))
    })?;
    let refused = "the refusal in PostgreSQL's log";
    stage.eventually(seconds(60), refused, |_| scene.database_refusal(first.fence))?;
    stage.eventually(
        seconds(60),
        "the gate's refusal",
        |_| Ok((scene.gate_refusals()? > 0).then_some(())),
    )?;
    let outcome = "on Kubernetes, a write that the network kept until the next holder had written: refused by \
                   PostgreSQL's trigger and by the gate, and it overwrote where there was neither";
    Ok(shown(&[48], outcome)?)
}
