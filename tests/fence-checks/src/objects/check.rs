//! How does an application write by the recipes, and how does it read what became of the write?

use std::net::SocketAddr;

use anyhow::ensure;
use serde_json::{Value, json};

use crate::check::{Claim, FenceCheck, Outcome};
use crate::link::LossyLink;

use super::driver::Driver;
use super::server::{Kind, ObjectServer};

/// How an application uses the recipe.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shape {
    /// The manifest, by compare-and-swap.
    Manifest,
    /// Broken: the manifest is compared, and then put on no condition that ties it to what was compared.
    Unconditional,
}

/// An application, and a store of its own.
#[derive(Debug)]
pub struct ObjectCheck {
    kind: Kind,
    shape: Shape,
    driver: Driver,
    server: ObjectServer,
}

// === impl ObjectCheck ===

impl ObjectCheck {
    /// Starts a store with a bucket, and the application.
    pub fn start(kind: Kind, shape: Shape) -> anyhow::Result<Self> {
        let it = Self { kind, shape, driver: Driver::start()?, server: ObjectServer::start(kind)? };
        let made = it.ask("make_bucket", "", json!({}))?;
        ensure!(made.get("done").is_some(), "no bucket: {made}");
        Ok(it)
    }

    /// One request to the driver about an object or manifest of this name, and its answer.
    pub fn ask(&self, what: &str, name: &str, more: Value) -> anyhow::Result<Value> {
        self.ask_at(self.server.address(), what, name, more, &|| ())
    }

    /// The same, with the answer to its put lost.
    pub fn ask_and_lose_the_answer(&self, what: &str, name: &str, mut more: Value) -> anyhow::Result<Value> {
        more["pause"] = json!(true);
        let link = LossyLink::to(self.server.address())?;
        let mut answer = Value::Null;
        link.lose_answer_of(|address, commits| {
            answer = self.ask_at(address, what, name, more, commits).unwrap_or_default();
            outcome_of(&answer)
        });
        Ok(answer)
    }

    fn ask_at(
        &self,
        address: SocketAddr,
        what: &str,
        name: &str,
        more: Value,
        before_put: &dyn Fn(),
    ) -> anyhow::Result<Value> {
        let store = match self.kind {
            Kind::S3 => "s3",
            Kind::Gcs => "gcs",
        };
        let mut request = more;
        request["store"] = json!(store);
        request["endpoint"] = json!(format!("http://{address}"));
        request["do"] = json!(what);
        request["name"] = json!(name);
        request["unconditional"] = json!(self.shape == Shape::Unconditional);
        self.driver.ask(request, before_put)
    }

    fn commit(
        &self,
        address: SocketAddr,
        write: (&str, &Claim, i64),
        before_put: Option<&dyn Fn()>,
    ) -> Outcome {
        let (resource, claim, value) = write;
        let request = json!({
            "fence": claim.fence, "holder": claim.holder, "value": value,
            // A negative value is sent with a digest that is not its own.
            "refuse": value < 0,
            "pause": before_put.is_some(),
        });
        let answer = self.ask_at(address, "commit", resource, request, before_put.unwrap_or(&|| ()));
        answer.map_or_else(|error| Outcome::Unknown(format!("{error:#}")), |answer| outcome_of(&answer))
    }
}

impl FenceCheck for ObjectCheck {
    fn prepare(&self, _resource: &str) -> anyhow::Result<()> {
        // A manifest that is not there is a resource without a fence.
        Ok(())
    }

    fn write(&self, resource: &str, claim: &Claim, value: i64) -> Outcome {
        self.commit(self.server.address(), (resource, claim, value), None)
    }

    fn write_and_lose_the_answer(&self, resource: &str, claim: &Claim, value: i64) -> Outcome {
        match LossyLink::to(self.server.address()) {
            Ok(link) => link.lose_answer_of(|address, commits| {
                self.commit(address, (resource, claim, value), Some(commits))
            }),
            Err(error) => Outcome::Failed(format!("{error:#}")),
        }
    }

    fn value(&self, resource: &str) -> anyhow::Result<Option<i64>> {
        let answer = self.ask("read", resource, json!({}))?;
        ensure!(answer.get("done").is_some(), "{answer}");
        Ok(answer["done"].as_i64())
    }

    fn crash(&self) -> anyhow::Result<()> {
        Ok(self.server.restart()?)
    }
}

fn outcome_of(answer: &Value) -> Outcome {
    let text = answer["text"].as_str().unwrap_or_default().to_owned();
    match answer["error"].as_str() {
        None if answer.get("done").is_some() => Outcome::Done,
        Some("Refused") => Outcome::Refused(text),
        Some("Invalid") => Outcome::Invalid(text),
        Some("Failed" | "Moved") => Outcome::Failed(text),
        _ => Outcome::Unknown(answer.to_string()),
    }
}
