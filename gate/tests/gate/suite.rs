//! The gate under the suite that every fence check has to pass, in front of a real nginx.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use fencedlease_fence_checks::{Claim, FenceCheck, LossyLink, Outcome, suite};
use fencedlease_wire::HoldingId;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;

use crate::support::{Answer, Client, Gate, KEY, Nginx, Setup, Store, unix_ms};

/// A gate that is killed and started anew, and what outlives it.
struct GateCheck {
    nginx: Nginx,
    store: Store,
    keeps_its_store: bool,
    /// What guards the resources so far, and the gate that does.
    running: Mutex<(Setup, Option<Gate>)>,
}

impl GateCheck {
    fn new(keeps_its_store: bool) -> Self {
        let (nginx, store) = (Nginx::start(), Store::new());
        let setup = Setup::new(nginx.address).with(&["--drain-ms", "50"]);
        Self { nginx, store, keeps_its_store, running: Mutex::new((setup, None)) }
    }

    /// Kills the gate, if there is one, and starts it, perhaps with one guard more.
    fn restart(&self, guard: Option<&str>) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let (setup, gate) = &mut *running;
        if let Some(gate) = gate.take() {
            gate.kill();
        }
        if let Some(guard) = guard {
            *setup = setup.clone().with(&["--guard", guard]);
        }
        *gate = Some(setup.start(&self.store));
    }

    fn address(&self) -> SocketAddr {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.1.as_ref().expect("a gate is started for each resource").address
    }
}

/// The header as a sidecar would write it, whatever the fence is.
fn ticket(resource: &str, claim: &Claim) -> String {
    let text = format!(
        "v1;resource={resource};fence={};holder={};time_ms={}",
        claim.fence,
        holding(&claim.holder),
        unix_ms()
    );
    // The bytes that the digits of KEY stand for.
    let mac = Hmac::<Sha256>::new_from_slice(&[0xaa; 32]).unwrap().chain_update(&text);
    format!("{text};signature={:x}", mac.finalize().into_bytes())
}

/// A holding of its own for each of the suite's holders: FNV-1a of the name. None has none.
fn holding(holder: &str) -> String {
    if holder.is_empty() {
        return String::new();
    }
    let hash = holder.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    HoldingId::from_random(hash.to_be_bytes()).as_str().to_owned()
}

/// A PUT through what listens there. `sends` is told right before it is sent.
fn put(address: SocketAddr, resource: &str, claim: &Claim, value: i64, sends: &dyn Fn()) -> Outcome {
    let mut client = match Client::try_connect(address) {
        Ok(client) => client,
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    let (ticket, value) = (ticket(resource, claim), value.to_string());
    let headers = [("FencedLease", ticket.as_str()), ("value", value.as_str())];
    sends();
    match client.try_send("PUT", &format!("/{resource}/value"), &headers, value.as_bytes()) {
        Ok(answer) => outcome(&answer),
        Err(error) => Outcome::Unknown(error.to_string()),
    }
}

fn outcome(answer: &Answer) -> Outcome {
    let text = answer.text();
    match (answer.result(), answer.status) {
        ("passed", 201 | 204) => Outcome::Done,
        ("refused", _) => Outcome::Refused(text),
        ("rejected", _) => Outcome::Invalid(text),
        ("passed" | "unavailable", status) => Outcome::Failed(format!("{status}: {text}")),
        (_, status) => Outcome::Unknown(format!("{status}: {text}")),
    }
}

impl FenceCheck for GateCheck {
    fn prepare(&self, resource: &str) -> anyhow::Result<()> {
        self.store.set_key(&resource.replace('/', "_"), KEY);
        self.restart(Some(&format!("{resource}=/{resource}/")));
        Ok(())
    }

    fn write(&self, resource: &str, claim: &Claim, value: i64) -> Outcome {
        put(self.address(), resource, claim, value, &|| ())
    }

    fn write_and_lose_the_answer(&self, resource: &str, claim: &Claim, value: i64) -> Outcome {
        let link = LossyLink::to(self.address()).unwrap();
        link.lose_answer_of(|address, sends| put(address, resource, claim, value, sends))
    }

    fn value(&self, resource: &str) -> anyhow::Result<Option<i64>> {
        Ok(self.nginx.file(&format!("{resource}/value")).map(|value| value.parse()).transpose()?)
    }

    fn crash(&self) -> anyhow::Result<()> {
        if !self.keeps_its_store {
            std::fs::remove_dir_all(self.store.data())?;
        }
        self.restart(None);
        Ok(())
    }
}

#[test]
fn the_gate_conforms() {
    let report = suite::run(&GateCheck::new(true), "gate");
    assert!(report.failed.is_empty() && report.passed > 10, "{report}");
}

#[test]
fn a_gate_that_loses_its_store_does_not_conform() {
    let report = suite::run(&GateCheck::new(false), "forgets");
    assert_eq!(report.failed_names(), ["the_memory_survives_a_crash"], "{report}");
}
