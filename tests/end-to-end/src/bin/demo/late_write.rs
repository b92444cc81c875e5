//! The second act: a write that is still on its way when its writer dies, and where it is refused.

use std::time::{Duration, Instant};

use anyhow::Result;
use fencedlease_cluster::kubectl::Kubectl;
use fencedlease_cluster::progress::Progress;
use fencedlease_cluster::target::Target;
use fencedlease_end_to_end::late_write::{LateWrite, Place, Writer, line_of};
use fencedlease_faults::{Direction, Fault};
use serde_json::json;

use crate::NAMESPACE;
use crate::proxy::Proxy;
use crate::setup::wait;
use crate::story::{number, text};
use crate::view::tell;

/// Plays it and prints it.
pub(crate) fn tell_all(kubectl: &Kubectl, progress: &Progress) -> Result<()> {
    progress.step("The second act: a PostgreSQL, a file server and a gate, and two pods that write to them over a slow network");
    let scene = LateWrite::prepare(kubectl, Target::from_env()?, NAMESPACE, &json!({}))?;
    scene.start_writers()?;
    let first = writer_after(&scene, 0)?;
    let Writer { pod, fence, address } = &first;
    tell(&format!(
        "\n1. {pod} holds the lease with fence {fence}. It writes one line to four places: a table with the\n   trigger of guards/postgresql/install.sql and one without, a file behind the gate and one past it."
    ));

    scene.hold(&first)?;
    let bytes = wait("a write to be on its way", Duration::from_secs(40), || {
        let held = scene.held(&first)?;
        Ok((!held.contains(&0)).then_some(held.iter().sum::<u64>()))
    })?;
    tell(&format!(
        "2. The network stalls: {bytes} bytes of its next write are on their way, and stay there."
    ));

    let redis = Proxy::find(kubectl)?;
    redis.order(Some(&address.to_string()), Fault::Drop { direction: Direction::Both })?;
    let loss = wait("the writer's loss", Duration::from_secs(40), || {
        let loss = scene.last_loss()?;
        Ok((loss["fence"] == *fence).then_some(loss))
    })?;
    let died = Instant::now();
    tell(&format!(
        "3. It is cut off from Redis as well: LOST ({}), dead {} ms later. Its bytes live on.",
        text(&loss["reason"])?,
        number(&loss["deadAfterMilliseconds"])?
    ));

    let second = writer_after(&scene, *fence)?;
    tell(&format!("4. {} took over with fence {} and has written all four.", second.pod, second.fence));

    let before = scene.lines()?;
    scene.deliver(&first)?;
    let late = line_of(*fence);
    let after = wait("the late write to arrive", Duration::from_secs(10), || {
        let lines = scene.lines()?;
        let refusals = (scene.database_refusal(*fence)?, scene.gate_refusals()?);
        let has_all = lines.iter().filter(|line| **line == late).count() >= 2 && refusals.1 > 0;
        Ok(refusals.0.filter(|_| has_all).map(|refusal| (lines, refusal, refusals.1)))
    });
    let (lines, refusal, refused) = after?;
    tell(&format!(
        "5. Now the network delivers what {pod} sent, {:.1} s after its death was known:\n",
        died.elapsed().as_secs_f64()
    ));
    println!("   {:<28} {:<8} {:<10} {:<10}", "WHERE", "CHECK", "BEFORE", "NOW");
    for ((place, before), now) in Place::ALL.iter().zip(&before).zip(&lines) {
        let verdict =
            if *now == late { "overwritten by a dead process" } else { "the late write was refused" };
        let check = place.check().unwrap_or("none");
        println!("   {:<28} {check:<8} {before:<10} {now:<10} {verdict}", place.name());
    }
    tell(&format!(
        "\n   PostgreSQL said: {refusal}\n   The gate answered 412 to {refused} request of the dead."
    ));
    redis.order(None, Fault::Pass)?;
    Ok(())
}

/// The pod that holds with a greater fence than this, once it has written everywhere.
fn writer_after(scene: &LateWrite<'_>, fence: u64) -> Result<Writer> {
    wait("a pod to hold the lease and to write", Duration::from_secs(60), || scene.writer_after(fence))
}
