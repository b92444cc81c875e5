//! Two Redis masters each hand the lease to somebody, as after a split: what is left is the gate.

use fencedlease_faults::matrix::shown;
use fencedlease_gates_tests::World;

#[test]
fn of_two_holders_by_two_masters_the_gate_lets_the_greater_fence_through_alone() -> anyhow::Result<()> {
    let (world, other) = (World::new()?, World::new()?);
    // So that on a busy machine a ticket is refused for its fence, and not for its age.
    let gate = world.place.start(&["--freshness-ms", "600000"])?;
    let left = world.holder("left")?;
    assert_eq!(left.active()?, 1);
    assert_eq!(gate.put(&left.headers()?, "of the left")?.status, 200);
    // The other master counts from 1 as well: the gate knows that fence as somebody else's.
    let url = format!("reports=http://{}", world.place.address);
    let right = other.holder_with("right", &["--gate", &url])?;
    assert_eq!(right.active()?, 2);
    let late = left.headers()?;
    assert_eq!(left.lease()?["state"], "ACTIVE", "both hold: no Redis knows of the other");
    let refused = gate.put(&late, "of the left, too late")?;
    assert_eq!((refused.status, refused.result.as_str()), (412, "refused"));
    assert_eq!(gate.put(&right.headers()?, "of the right")?.status, 200);
    assert_eq!(gate.put(&late, "of the left, too late")?.status, 412);
    assert_eq!(world.place.backend.bodies(), ["of the left", "of the right"]);
    let outcome = "two masters, two holders, both first got fence 1: the second got 2 by the gate's word, and from \
                   its raise on the first one's writes were refused";
    Ok(shown(&[21], outcome)?)
}
