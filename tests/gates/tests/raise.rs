//! No pod runs before its gate has stored its fence, and an old holder's bytes are refused from then on.

use std::fs;

use fencedlease_faults::matrix::shown;
use fencedlease_gates_tests::{KEY, OTHER_KEY, World, eventually, replace};
use fencedlease_wire::gate::{GateKey, UnverifiedTicket};
use serde_json::{Value, json};

/// More than a ttl of renewals, one each 0.4 s.
const RENEWALS_OF_A_TTL: f64 = 15.0;

#[test]
fn the_sockets_header_passes_the_gate_and_nothing_passes_without_it() -> anyhow::Result<()> {
    let world = World::new()?;
    let gate = world.place.start(&[])?;
    let holder = world.holder("one")?;
    assert_eq!(holder.active()?, 1);
    let checked = gate.put(&holder.headers()?, "checked")?;
    assert_eq!((checked.status, checked.result.as_str()), (200, "passed"));
    // What a shell script gets with one call.
    let looked = gate.put(&holder.lease()?["headers"], "looked")?;
    assert_eq!(looked.status, 200, "{looked:?}");
    let bare = gate.put(&Value::Null, "bare")?;
    assert_eq!((bare.status, bare.result.as_str()), (428, "rejected"));
    assert_eq!(world.place.backend.bodies(), ["checked", "looked"]);
    assert!(holder.metric("fencedlease_raises_total{result=\"stored\"}")? >= 1.0);
    assert!(!holder.log().contains(KEY), "the key is in the log");
    Ok(())
}

#[test]
fn a_holder_that_was_stalled_is_refused_though_the_next_one_has_written_nothing() -> anyhow::Result<()> {
    let world = World::new()?;
    // So that on a busy machine the ticket is refused for its fence, and not for its age.
    let gate = world.place.start(&["--freshness-ms", "600000"])?;
    let old = world.holder("old")?;
    assert_eq!(old.active()?, 1);
    let late = old.headers()?;
    assert_eq!(gate.put(&late, "in time")?.status, 200);
    let new = world.holder("new")?;
    eventually("a standby", || Ok(new.lease().ok().filter(|lease| lease["holder"] == "old").map(drop)))?;
    old.freeze()?;
    assert_eq!(new.active()?, 2);
    let refused = gate.put(&late, "late")?;
    assert_eq!((refused.status, refused.result.as_str()), (412, "refused"));
    let raised = gate.raise(&late)?;
    assert_eq!((raised.status, raised.json()?["highest"].as_u64()), (412, Some(2)), "a zombie cannot raise");
    old.thaw()?;
    assert_eq!(world.place.backend.bodies(), ["in time"]);
    assert_eq!(gate.put(&new.headers()?, "first of the new one")?.status, 200);
    let outcome =
        "the old holder's ticket was refused from the new one's raise on, before that one had written";
    Ok(shown(&[48], outcome)?)
}

#[test]
fn without_its_gate_nobody_runs_the_socket_says_why_and_once_it_is_there_the_same_fence_does()
-> anyhow::Result<()> {
    let world = World::new()?;
    let holder = world.holder("one")?;
    let told = holder.waits_saying("no connection")?;
    let named = format!("gate reports (http://{})", world.place.address);
    assert!(told.contains("fence 1") && told.contains(&named), "{told}");
    assert!(told.contains("see that the gate runs"), "{told}");
    assert_eq!(holder.commit_check()?.status, 409);
    assert!(world.lease_ms()? > 0, "it holds the lease meanwhile");
    assert_eq!(holder.started(), "");
    assert!(holder.log().contains("not raised at a gate"), "{}", holder.log());
    let _gate = world.place.start(&[])?;
    assert_eq!(holder.active()?, 1);
    eventually("the workload", || Ok((holder.started() == "1\n").then_some(())))
}

#[test]
fn a_gate_that_is_ahead_gets_a_fence_above_its_own() -> anyhow::Result<()> {
    let world = World::new()?;
    let gate = world.place.start(&["--floor", "shop/report=57"])?;
    let holder = world.holder("one")?;
    assert_eq!(holder.active()?, 58);
    assert_eq!(gate.put(&holder.headers()?, "above")?.status, 200);
    eventually("the workload", || Ok((holder.started() == "58\n").then_some(())))?;
    let log = holder.log();
    assert!(log.contains("a gate is ahead of Redis") && log.contains("stored fence 57"), "{log}");
    Ok(())
}

#[test]
fn a_frozen_gate_delays_no_renewal_and_the_lease_stays_held() -> anyhow::Result<()> {
    let world = World::new()?;
    let gate = world.place.start(&[])?;
    gate.freeze()?;
    let holder = world.holder("one")?;
    holder.waits_saying("no answer within 5 s")?;
    let renewals = "fencedlease_renewals_total{result=\"confirmed\"}";
    eventually("renewals of a whole ttl", || {
        assert!(holder.lease()?["state"] == "WAITING");
        Ok((holder.metric(renewals)? >= RENEWALS_OF_A_TTL).then_some(()))
    })?;
    assert!(world.lease_ms()? > 0);
    gate.thaw()?;
    assert_eq!(holder.active()?, 1, "it was never lost");
    Ok(())
}

#[test]
fn a_key_is_changed_while_it_is_used_and_no_write_is_refused() -> anyhow::Result<()> {
    let world = World::new()?;
    let gate = world.place.start(&[])?;
    let holder = world.holder("one")?;
    holder.active()?;
    let both = format!("{KEY}\n{OTHER_KEY}\n");
    world.place.set_keys(&both)?;
    replace(&holder.key_file(), &format!("{OTHER_KEY}\n{KEY}\n"))?;
    let new = GateKey::parse_file(OTHER_KEY)?;
    let is_new = |headers: &Value| -> anyhow::Result<bool> {
        let ticket = UnverifiedTicket::parse(headers["FencedLease"].as_str().unwrap_or_default())?;
        Ok(ticket.verify(&new, 0, std::time::Duration::MAX).is_ok())
    };
    // The gate looks every 5 s: what it does not know yet it says plainly.
    eventually("the new key at both ends", || {
        let headers = holder.headers()?;
        Ok((is_new(&headers)? && gate.put(&headers, "x")?.status == 200).then_some(()))
    })?;
    world.place.set_keys(OTHER_KEY)?;
    replace(&holder.key_file(), OTHER_KEY)?;
    assert_eq!(gate.put(&holder.headers()?, "x")?.status, 200);
    fs::write(holder.key_file(), "")?;
    eventually("a word in the log", || {
        Ok(holder.log().contains("the key for gates cannot be used").then_some(()))
    })?;
    assert_eq!(gate.put(&holder.headers()?, "x")?.status, 200, "the key that it had goes on signing");
    Ok(())
}

#[test]
fn sigterm_while_a_fence_is_raised_gives_the_lease_back_and_runs_nothing() -> anyhow::Result<()> {
    let world = World::new()?;
    let mut holder = world.holder("one")?;
    holder.waits_saying("gate reports")?;
    assert!(world.lease_ms()? > 0);
    holder.terminate()?;
    holder.ended()?;
    assert!(world.lease_ms()? < 0, "released, not left to run out");
    assert_eq!(holder.started(), "");
    Ok(())
}

#[test]
fn who_does_not_want_to_wait_for_a_gate_is_told_which() -> anyhow::Result<()> {
    let world = World::new()?;
    let gate = format!("reports=http://{}", world.place.address);
    let mut holder = world.holder_with("one", &["--gate", &gate, "--wait", "0s"])?;
    assert_eq!(holder.ended()?.code(), Some(199));
    let log = holder.log();
    assert!(log.contains("gate reports") && log.contains("Nothing was run"), "{log}");
    assert_eq!(holder.started(), "");
    Ok(())
}

#[test]
fn a_gate_with_another_key_does_not_believe_and_says_so() -> anyhow::Result<()> {
    let world = World::new()?;
    world.place.set_keys(OTHER_KEY)?;
    let _gate = world.place.start(&[])?;
    let holder = world.holder("one")?;
    let told = holder.waits_saying("TicketForged")?;
    assert!(told.contains("different keys"), "{told}");
    replace(&holder.key_file(), OTHER_KEY)?;
    holder.active()?;
    Ok(())
}

#[test]
fn every_one_of_several_gates_has_to_store_the_fence() -> anyhow::Result<()> {
    let (world, other) = (World::new()?, World::new()?);
    let _first = world.place.start(&[])?;
    let gate = |name: &str, world: &World| format!("{name}=http://{}", world.place.address);
    let (first, second) = (gate("first", &world), gate("second", &other));
    let holder = world.holder_with("one", &["--gate", &first, "--gate", &second])?;
    eventually("only the second gate to be waited for", || {
        let told = holder.waits_saying("gate second (")?;
        Ok((!told.contains("gate first")).then_some(()))
    })?;
    let second = other.place.start(&[])?;
    holder.active()?;
    assert_eq!(second.put(&holder.headers()?, "x")?.status, 200);
    assert_eq!(second.put(&json!({"FencedLease": "v1"}), "y")?.status, 400);
    Ok(())
}
