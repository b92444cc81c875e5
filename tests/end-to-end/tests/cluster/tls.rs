//! A Redis that speaks TLS and asks for certificates: what the FencedLease names reaches the sidecar, and a server
//! that is not who it should be is said.

use anyhow::Result;
use fencedlease_end_to_end::{Stage, Workload, seconds};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use serde_json::{Value, json};

fn authority(name: &str) -> Result<CertifiedIssuer<'static, KeyPair>> {
    let mut params = CertificateParams::new(Vec::new())?;
    // Another name than that of what it signs: OpenSSL would take that for signed by itself.
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    Ok(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?)
}

/// A Secret of type kubernetes.io/tls, as cert-manager makes it.
fn secret(name: &str, for_name: &str, by: &CertifiedIssuer<'_, KeyPair>) -> Result<Value> {
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(vec![for_name.to_owned()])?.signed_by(&key, by)?;
    Ok(json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": {"name": name},
        "stringData": {"tls.crt": certificate.pem(), "tls.key": key.serialize_pem(), "ca.crt": by.pem()},
    }))
}

/// A Redis that speaks nothing but TLS, and that to nobody without a certificate of its authority.
fn redis() -> Value {
    let file = |name: &str| format!("/tls/{name}");
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "secured"},
        "spec": {
            "selector": {"matchLabels": {"app": "secured"}},
            "template": {
                "metadata": {"labels": {"app": "secured"}},
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "volumes": [{"name": "tls", "secret": {"secretName": "redis-server"}}],
                    "containers": [{
                        "name": "redis",
                        "image": "fencedlease.dev/redis:dev",
                        "imagePullPolicy": "IfNotPresent",
                        "command": ["redis-server"],
                        "args": [
                            "--port", "0", "--tls-port", "6379", "--tls-auth-clients", "yes", "--dir", "/tmp",
                            "--tls-cert-file", file("tls.crt"), "--tls-key-file", file("tls.key"),
                            "--tls-ca-cert-file", file("ca.crt"), "--save", "", "--protected-mode", "no",
                        ],
                        "volumeMounts": [{"name": "tls", "mountPath": "/tls"}],
                        "readinessProbe": {"tcpSocket": {"port": 6379}, "periodSeconds": 1},
                    }],
                },
            },
        },
    })
}

fn lease(name: &str, address: &str, tls: &Value) -> Value {
    json!({
        "apiVersion": "fencedlease.dev/v1alpha1", "kind": "FencedLease", "metadata": {"name": name},
        "spec": {"redis": {"addresses": [address], "tls": tls}},
    })
}

#[test]
fn a_redis_with_certificates_on_both_sides_keeps_a_lease_and_a_foreign_one_is_said() -> Result<()> {
    let stage = Stage::open("tls")?;
    let (own, foreign) = (authority("own")?, authority("foreign")?);
    let host = format!("secured.{}.svc", stage.namespace());
    stage.apply(&secret("redis-server", &host, &own)?)?;
    stage.apply(&secret("holder", "holder", &own)?)?;
    for (name, authority) in [("authorities", &own), ("foreign", &foreign)] {
        let data = json!({"ca.crt": authority.pem()});
        stage.apply(
            &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}),
        )?;
    }
    stage.apply(&redis())?;
    stage.apply(&json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "secured"},
        "spec": {"selector": {"app": "secured"}, "ports": [{"port": 6379}]},
    }))?;
    stage.kubectl(&["rollout", "status", "deployment/secured", "--timeout=180s"])?;

    let address = format!("{host}:6379");
    let identity = json!({"name": "holder"});
    let tls = json!({"caRef": {"name": "authorities"}, "clientCertSecretRef": identity});
    stage.apply(&lease("report", &address, &tls))?;
    let tls = json!({"caRef": {"name": "foreign"}, "clientCertSecretRef": identity});
    stage.apply(&lease("wrong", &address, &tls))?;
    stage.apply(&lease("plain", &address, &Value::Null))?;
    for name in ["report", "wrong", "plain"] {
        stage.start(&Workload::deployment(name).guarded_by(name))?;
    }
    let holder = stage.holder("report", seconds(60))?;
    assert!(holder.is_injected());
    let message = stage.until_lease("wrong", seconds(60), "that the server is not trusted", |status| {
        let reachable = status.conditions.iter().find(|condition| condition.type_ == "RedisReachable")?;
        (reachable.reason == "TLSFailed").then(|| reachable.message.clone())
    })?;
    println!("{message}");
    assert!(message.contains(&address), "{message}");
    stage.until_lease("plain", seconds(60), "that plain text gets no answer", |status| {
        let reachable = status.conditions.iter().find(|condition| condition.type_ == "RedisReachable")?;
        (reachable.status == "False").then_some(())
    })?;
    for name in ["wrong", "plain"] {
        assert_eq!(stage.read_lease(name)?.status.and_then(|status| status.holder), None);
    }
    Ok(())
}
