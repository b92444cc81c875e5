//! What does the sidecar look like in a pod? Every default that the API server would fill in stands here, so
//! that a pod which comes again is found equal.

use fencedlease_crds::{AuthoritiesKind, AuthoritiesReference, GateSpec, RedisTls};
use fencedlease_wire::paths;
use serde_json::{Value, json};

use super::installation::Installation;
use super::names::{
    CREDENTIALS_DIR, CREDENTIALS_VOLUME, SHARED_VOLUME, SIDECAR, SIDECAR_COMMAND, STATE_VOLUME,
};
use super::plan::Plan;
use super::resources;
use crate::gate_keys;

/// Where Kubernetes mounts its own token into every container that has nothing mounted there.
const KUBERNETES_TOKEN_DIR: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// As often as the API server allows: a startup probe has no "for ever".
const FOR_EVER: i32 = i32::MAX;
/// User and group of the sidecar's image.
const USER: i64 = 65532;

/// The sidecar container. `before` is the one that was there already.
pub(super) fn container(
    plan: &Plan<'_>,
    settings: &str,
    before: Option<&Value>,
    installation: &Installation,
) -> Value {
    let image = &installation.sidecar;
    let port = plan.settings.admin_port;
    let mut admin = json!({"name": "fencedlease", "containerPort": port, "protocol": "TCP"});
    if plan.host_network {
        admin["hostPort"] = port.into();
    }
    json!({
        "name": SIDECAR,
        "image": image.image,
        "imagePullPolicy": image.pull_policy,
        "command": SIDECAR_COMMAND,
        "restartPolicy": "Always",
        "env": environment(settings),
        "ports": [admin],
        "resources": resources::to_json(&plan.resources, before),
        "startupProbe": probe("/startup", port, FOR_EVER),
        "readinessProbe": probe("/ready", port, 2),
        "securityContext": {
            "runAsUser": USER,
            "runAsGroup": USER,
            "runAsNonRoot": true,
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [
            {"name": SHARED_VOLUME, "mountPath": paths::SHARED_DIR},
            {"name": STATE_VOLUME, "mountPath": paths::STATE_DIR},
            {"name": CREDENTIALS_VOLUME, "mountPath": CREDENTIALS_DIR, "readOnly": true},
            // An empty folder keeps the token for the Kubernetes API out, which the sidecar has no use for:
            // after a patch Kubernetes mounts it wherever nothing else is.
            {"name": STATE_VOLUME, "mountPath": KUBERNETES_TOKEN_DIR, "subPath": "no-token", "readOnly": true},
        ],
    })
}

/// The volumes that come with it.
pub(super) fn volumes(plan: &Plan<'_>) -> Vec<Value> {
    let token = json!({"serviceAccountToken": {
        "audience": paths::ENDPOINT_AUDIENCE,
        "expirationSeconds": 3600,
        "path": last_part(paths::ENDPOINT_TOKEN_FILE),
    }});
    let mut sources = vec![token];
    if let Some(secret) = &plan.redis_secret {
        let folder = last_part(paths::REDIS_SECRET_DIR);
        let item = |key: &str| json!([{"key": key, "path": format!("{folder}/{key}")}]);
        sources.push(json!({"secret": {"name": secret, "items": item("password")}}));
        sources.push(json!({"secret": {"name": secret, "items": item("username"), "optional": true}}));
    }
    sources.extend(plan.redis_tls.into_iter().flat_map(tls_files));
    if let Some(secret) = &plan.gate_key {
        let items = [json!({"key": gate_keys::KEY, "path": below_credentials(paths::GATE_KEY_FILE)})];
        sources.push(json!({"secret": {"name": secret, "items": items}}));
    }
    sources.extend(plan.gates.iter().filter_map(gate_authorities));
    let in_memory = |limit: &str| json!({"medium": "Memory", "sizeLimit": limit});
    vec![
        json!({"name": SHARED_VOLUME, "emptyDir": in_memory("64Mi")}),
        json!({"name": STATE_VOLUME, "emptyDir": in_memory("1Mi")}),
        json!({"name": CREDENTIALS_VOLUME, "projected": {"defaultMode": 0o644, "sources": sources}}),
    ]
}

/// What TLS to Redis needs, as files.
fn tls_files(tls: &RedisTls) -> Vec<Value> {
    let folder = last_part(paths::REDIS_TLS_DIR);
    let item = |key: &str, name: &str| json!({"key": key, "path": format!("{folder}/{name}")});
    let mut sources = Vec::new();
    if let Some(from) = &tls.ca_ref {
        sources.push(authorities(from, folder));
    }
    if let Some(own) = &tls.client_cert_secret_ref {
        let items = [item("tls.crt", "tls.crt"), item("tls.key", "tls.key")];
        sources.push(json!({"secret": {"name": own.name, "items": items}}));
    }
    sources
}

/// The certificate authorities of a gate that has its own.
fn gate_authorities(gate: &GateSpec) -> Option<Value> {
    let folder = format!("{}/{}", below_credentials(paths::GATE_TLS_DIR), gate.name);
    gate.ca_ref.as_ref().map(|from| authorities(from, &folder))
}

/// Certificate authorities as the file `ca.crt` of a folder.
fn authorities(from: &AuthoritiesReference, folder: &str) -> Value {
    let kind = match from.kind {
        AuthoritiesKind::ConfigMap => "configMap",
        AuthoritiesKind::Secret => "secret",
    };
    let item = json!({"key": from.key, "path": format!("{folder}/ca.crt")});
    json!({kind: {"name": from.name, "items": [item]}})
}

fn environment(settings: &str) -> Value {
    let from_pod = |name: &str, field: &str| json!({"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": field}}});
    json!([
        {"name": paths::ENV_SETTINGS, "value": literal(settings)},
        from_pod(paths::ENV_POD_NAME, "metadata.name"),
        from_pod(paths::ENV_POD_UID, "metadata.uid"),
        from_pod(paths::ENV_POD_IP, "status.podIP"),
        from_pod(paths::ENV_NODE_NAME, "spec.nodeName"),
    ])
}

fn probe(path: &str, port: u16, failures: i32) -> Value {
    json!({
        "httpGet": {"path": path, "port": port, "scheme": "HTTP"},
        "periodSeconds": 1,
        "timeoutSeconds": 1,
        "successThreshold": 1,
        "failureThreshold": failures,
    })
}

/// The text in a form that the kubelet's `$(VARIABLE)` expansion turns back into it.
pub(super) fn literal(text: &str) -> String {
    text.replace('$', "$$")
}

/// Where a file or folder lies in the volume of [`CREDENTIALS_DIR`].
fn below_credentials(path: &str) -> &str {
    path.strip_prefix(CREDENTIALS_DIR).unwrap_or(path).trim_start_matches('/')
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
