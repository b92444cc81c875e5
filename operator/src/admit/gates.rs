//! Can the gates of a FencedLease be used as they are written?

use std::collections::BTreeSet;

use fencedlease_crds::GateSpec;
use fencedlease_wire::settings::GateSettings;

use super::annotations::is_object_name;
use super::lease::is_address;
use super::problem::Problem;

const MOST: usize = 8;
const LONGEST_NAME: usize = 63;
const HTTPS: &str = "https";

/// The gates as the sidecar gets them; what is wrong with them goes to `problems`.
pub(super) fn resolve(gates: &[GateSpec], problems: &mut Vec<Problem>) -> Vec<GateSettings> {
    if gates.len() > MOST {
        let next = "Put one gate in front of several resources, or split the FencedLease.";
        problems.push(Problem::new("spec.gates", &format!("a list of {}", gates.len()), "at most 8", next));
    }
    let mut names = BTreeSet::new();
    let mut resolved = Vec::new();
    for (index, gate) in gates.iter().enumerate() {
        let field = |name: &str| format!("spec.gates[{index}].{name}");
        if !names.insert(gate.name.as_str()) {
            let found = format!("{:?}, which another gate has", gate.name);
            let next = "Give each gate a name of its own.";
            problems.push(Problem::new(field("name"), &found, "names that differ", next));
        }
        if !is_label(&gate.name) {
            let accepted = "1 to 63 of a-z, 0-9 and \"-\", with a letter or digit at both ends";
            let next = "Correct the name, such as to reports.";
            problems.push(Problem::new(field("name"), &format!("{:?}", gate.name), accepted, next));
        }
        let Some(url) = url(&gate.url) else {
            let accepted = "https://host or https://host:port";
            let next = "Write it without user, path or query, such as https://gate.shop.svc:8443; paths are the gate's --guard.";
            problems.push(Problem::new(field("url"), &format!("{:?}", gate.url), accepted, next));
            continue;
        };
        problems.extend(authorities(gate, &url, &field));
        let own_authorities = gate.ca_ref.is_some();
        resolved.push(GateSettings { name: gate.name.clone(), url, own_authorities });
    }
    resolved
}

/// What is to be known of gates that can be used.
pub(super) fn warning(gates: &[GateSettings]) -> Option<String> {
    let plain: Vec<&str> =
        gates.iter().filter(|gate| !is_tls(&gate.url)).map(|gate| gate.name.as_str()).collect();
    (!plain.is_empty()).then(|| {
        format!(
            "spec.gates ({}).url is without TLS: who listens between pods and gate sees tickets, and can write with them for as long as the gate's --freshness-ms. Give the gate a certificate (tls.secretName of its chart) and write https://.",
            plain.join(", ")
        )
    })
}

fn authorities(gate: &GateSpec, url: &str, field: &impl Fn(&str) -> String) -> Vec<Problem> {
    let Some(authorities) = &gate.ca_ref else { return Vec::new() };
    let mut problems = Vec::new();
    if !is_object_name(&authorities.name) {
        let found = format!("{:?}", authorities.name);
        let accepted = "the name of a ConfigMap or Secret of the same namespace";
        let next = "Name the object that has the certificates.";
        problems.push(Problem::new(field("caRef.name"), &found, accepted, next));
    }
    if !is_tls(url) {
        let found = format!("set with the url {url}, which is without TLS");
        let next = "Write https:// in the url, or remove caRef.";
        problems.push(Problem::new(field("caRef"), &found, "caRef with https", next));
    }
    problems
}

/// Scheme, host and port, the port written out; `None` if it is no URL of these alone.
fn url(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let port = match scheme {
        HTTPS => 443,
        "http" => 80,
        _ => return None,
    };
    let address = if is_address(rest) { rest.to_owned() } else { format!("{rest}:{port}") };
    is_address(&address).then(|| format!("{scheme}://{address}"))
}

fn is_tls(url: &str) -> bool {
    url.split_once("://").is_some_and(|(scheme, _)| scheme == HTTPS)
}

fn is_label(name: &str) -> bool {
    name.len() <= LONGEST_NAME && is_object_name(name) && !name.contains('.')
}

#[cfg(test)]
mod tests;
