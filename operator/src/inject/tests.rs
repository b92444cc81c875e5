//! Facts about injection, one small pod each. Whole patches are in `tests/golden`.

mod golden;
mod mutators;
mod policy;
mod properties;
mod refusals;
mod standby;

use fencedlease_crds::{
    FencedLease, FencedLeaseSpec, FencedLeaseStatus, RedisAuth, RedisSpec, SecretReference,
};
use fencedlease_wire::SidecarSettings;
use fencedlease_wire::settings::{CredentialSource, EndpointSettings, GateSettings, RedisTls};
use serde_json::{Value, json};

use super::{Injected, Installation, InstallationRedis, Resources, SidecarImage, inject};

pub(crate) fn installation() -> Installation {
    let quantities = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(name, quantity)| ((*name).to_owned(), (*quantity).to_owned())).collect()
    };
    Installation {
        id: "test".to_owned(),
        version: "0.1.0".to_owned(),
        sidecar: SidecarImage {
            image: "fencedlease/sidecar:0.1.0".to_owned(),
            pull_policy: "IfNotPresent".to_owned(),
            resources: Resources {
                requests: quantities(&[("cpu", "10m"), ("memory", "16Mi")]),
                limits: quantities(&[("memory", "64Mi")]),
            },
            log_level: "info".to_owned(),
        },
        endpoint: EndpointSettings {
            url: "https://fencedlease-operator.fencedlease.svc:8443".to_owned(),
            ca_pem: "-----BEGIN CERTIFICATE-----\n…\n-----END CERTIFICATE-----\n".to_owned(),
        },
        redis: Some(InstallationRedis {
            addresses: vec!["redis.fencedlease.svc:6379".to_owned()],
            database: 0,
            has_credentials: true,
        }),
        restart_rules_work: true,
    }
}

pub(super) fn lease() -> FencedLease {
    let mut lease = FencedLease::new("report", FencedLeaseSpec::default());
    lease.metadata.generation = Some(3);
    lease
}

pub(crate) fn pod() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "report-7c9-",
            "annotations": {"fencedlease.dev/lease": "report"},
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "report-7c9", "uid": "1", "controller": true}
            ],
        },
        "spec": {"containers": [{"name": "app", "image": "app:1", "command": ["/bin/app"], "args": ["--all"]}]},
    })
}

pub(super) fn injected(pod: &Value) -> Injected {
    inject(pod, &lease(), "shop", &installation()).unwrap()
}

pub(super) fn patched(pod: &Value, injected: &Injected) -> Value {
    let mut patched = pod.clone();
    json_patch::patch(&mut patched, &injected.patch).unwrap();
    patched
}

pub(super) fn guarded(pod: &Value) -> Value {
    patched(pod, &injected(pod))
}

pub(super) fn settings(pod: &Value) -> SidecarSettings {
    let text = pod["spec"]["initContainers"][0]["env"][0]["value"].as_str().unwrap();
    serde_json::from_str(&text.replace("$$", "$")).unwrap()
}

fn with_lease(change: impl FnOnce(&mut FencedLease)) -> Value {
    let mut lease = lease();
    change(&mut lease);
    let pod = pod();
    patched(&pod, &inject(&pod, &lease, "shop", &installation()).unwrap())
}

#[test]
fn a_command_goes_behind_the_guard_with_its_arguments() {
    let container = &guarded(&pod())["spec"]["containers"][0];
    assert_eq!(
        container["command"],
        json!(["/run/fencedlease/fencedlease", "guard", "--container", "app", "--"])
    );
    assert_eq!(container["args"], json!(["/bin/app", "--all"]));
    let mount = json!([{"name": "fencedlease", "mountPath": "/run/fencedlease", "readOnly": true}]);
    assert_eq!(container["volumeMounts"], mount);
    assert_eq!(container["env"][0], json!({"name": "FENCEDLEASE_RESOURCE", "value": "shop/report"}));
}

#[test]
fn a_command_of_the_image_is_taken_from_the_annotation() {
    let mut pod = pod();
    pod["spec"]["containers"][0].as_object_mut().unwrap().remove("command");
    pod["metadata"]["annotations"]["fencedlease.dev/command"] = r#"{"app": ["/entry", "x"]}"#.into();
    assert_eq!(guarded(&pod)["spec"]["containers"][0]["args"], json!(["/entry", "x", "--all"]));
}

#[test]
fn the_sidecar_is_the_first_init_container_and_the_users_own_follow() {
    let mut pod = pod();
    pod["spec"]["initContainers"] = json!([{"name": "proxy", "image": "p", "restartPolicy": "Always"}]);
    let pod = guarded(&pod);
    assert_eq!(pod["spec"]["initContainers"][0]["name"], "fencedlease");
    assert_eq!(pod["spec"]["initContainers"][0]["command"], json!(["/fencedlease", "hold"]));
    assert_eq!(pod["spec"]["initContainers"][1]["name"], "proxy");
}

#[test]
fn a_termination_message_path_of_the_containers_own_is_told_to_the_guard() {
    let mut pod = pod();
    pod["spec"]["containers"][0]["terminationMessagePath"] = "/tmp/$(x)".into();
    let command = &guarded(&pod)["spec"]["containers"][0]["command"];
    let end = json!(["--container", "app", "--termination-message-path", "/tmp/$$(x)", "--"]);
    assert_eq!(command.as_array().unwrap()[2..], end.as_array().unwrap()[..]);
}

#[test]
fn only_the_named_containers_are_guarded() {
    let mut pod = pod();
    let log = json!({"name": "log", "image": "log:1"});
    pod["spec"]["containers"].as_array_mut().unwrap().push(log.clone());
    pod["metadata"]["annotations"]["fencedlease.dev/containers"] = "app".into();
    let guarded = guarded(&pod);
    assert_eq!(guarded["spec"]["containers"][1], log);
    assert_eq!(settings(&guarded).containers, ["app"]);
}

#[test]
fn the_known_fence_is_the_floor_of_the_next_one() {
    let pod = with_lease(|lease| {
        lease.status = Some(FencedLeaseStatus { highest_fence: Some(41), ..FencedLeaseStatus::default() });
    });
    assert_eq!(settings(&pod).floor.unwrap().get(), 41);
    assert_eq!(settings(&guarded(&super::tests::pod())).floor, None);
}

#[test]
fn a_redis_of_the_leases_own_takes_nothing_of_the_installations() {
    let own = |auth| RedisSpec { addresses: vec!["mine:6379".to_owned()], database: 2, auth, tls: None };
    let pod = with_lease(|lease| lease.spec.redis = Some(own(None)));
    assert_eq!(settings(&pod).redis.credentials, CredentialSource::None);
    assert_eq!(settings(&pod).redis.addresses, ["mine:6379"]);
    assert_eq!(settings(&pod).redis.database, 2);
    assert!(!pod.to_string().contains("redis.fencedlease.svc"), "{pod}");

    let secret_ref = SecretReference { name: "redis-shop".to_owned() };
    let pod = with_lease(|lease| lease.spec.redis = Some(own(Some(RedisAuth { secret_ref }))));
    assert_eq!(settings(&pod).redis.credentials, CredentialSource::Mounted);
    let sources = &pod["spec"]["volumes"][2]["projected"]["sources"];
    let item = |key: &str| json!([{"key": key, "path": format!("redis/{key}")}]);
    assert_eq!(sources[1], json!({"secret": {"name": "redis-shop", "items": item("password")}}));
    assert_eq!(
        sources[2],
        json!({"secret": {"name": "redis-shop", "items": item("username"), "optional": true}})
    );
}

#[test]
fn what_tls_to_redis_needs_is_mounted_into_the_sidecar_alone() {
    let own = |tls: Value| {
        let spec = json!({"addresses": ["mine:6379"], "tls": tls});
        with_lease(|lease| lease.spec.redis = Some(serde_json::from_value(spec).unwrap()))
    };
    let pod = own(json!({}));
    assert_eq!(settings(&pod).redis.tls, Some(RedisTls::default()));
    assert_eq!(pod["spec"]["volumes"][2]["projected"]["sources"].as_array().unwrap().len(), 1);
    let pod = own(json!({
        "serverName": "redis.example",
        "caRef": {"name": "authorities"},
        "clientCertSecretRef": {"name": "holder"},
    }));
    let tls = RedisTls {
        server_name: Some("redis.example".to_owned()),
        own_authorities: true,
        client_certificate: true,
    };
    assert_eq!(settings(&pod).redis.tls, Some(tls));
    let sources = &pod["spec"]["volumes"][2]["projected"]["sources"];
    let item = |key: &str| json!({"key": key, "path": format!("redis-tls/{key}")});
    assert_eq!(sources[1], json!({"configMap": {"name": "authorities", "items": [item("ca.crt")]}}));
    let items = [item("tls.crt"), item("tls.key")];
    assert_eq!(sources[2], json!({"secret": {"name": "holder", "items": items}}));
    let app = pod["spec"]["containers"][0]["volumeMounts"].to_string();
    assert!(!app.contains("credentials"), "{app}");
    let pod = own(json!({"caRef": {"kind": "Secret", "name": "ca", "key": "root.pem"}}));
    let items = [json!({"key": "root.pem", "path": "redis-tls/ca.crt"})];
    let source = &pod["spec"]["volumes"][2]["projected"]["sources"][1];
    assert_eq!(*source, json!({"secret": {"name": "ca", "items": items}}));
}

#[test]
fn gates_bring_their_key_and_authorities_to_the_sidecar_alone() {
    let gates = json!([
        {"name": "reports", "url": "https://gate.shop.svc:8443", "caRef": {"name": "gate-ca"}},
        {"name": "archive", "url": "https://archive.example"},
        {"name": "old", "url": "https://old:1", "caRef": {"kind": "Secret", "name": "old-tls", "key": "root.pem"}},
    ]);
    let pod = with_lease(|lease| lease.spec.gates = serde_json::from_value(gates).unwrap());
    let gate = |name: &str, url: &str, own_authorities| GateSettings {
        name: name.to_owned(),
        url: url.to_owned(),
        own_authorities,
    };
    let expected = [
        gate("reports", "https://gate.shop.svc:8443", true),
        gate("archive", "https://archive.example:443", false),
        gate("old", "https://old:1", true),
    ];
    assert_eq!(settings(&pod).gates, expected);
    let source = |kind: &str, name: &str, key: &str, path: &str| json!({kind: {"name": name, "items": [{"key": key, "path": path}]}});
    let sources = pod["spec"]["volumes"][2]["projected"]["sources"].as_array().unwrap();
    assert_eq!(
        sources[1..],
        [
            source("secret", "report-gate-key", "key", "gate-key/key"),
            source("configMap", "gate-ca", "ca.crt", "gate-tls/reports/ca.crt"),
            source("secret", "old-tls", "root.pem", "gate-tls/old/ca.crt"),
        ]
    );
    assert_eq!(pod["spec"]["initContainers"][0]["volumeMounts"][2]["readOnly"], true);
    let app = pod["spec"]["containers"][0]["volumeMounts"].to_string();
    assert!(!app.contains("credentials"), "{app}");
    let without = guarded(&super::tests::pod()).to_string();
    assert!(!without.contains("gate"), "{without}");
}

#[test]
fn the_installations_redis_is_reached_with_credentials_of_the_endpoint() {
    assert_eq!(settings(&guarded(&pod())).redis.credentials, CredentialSource::Endpoint);
    let mut installation = installation();
    installation.redis.as_mut().unwrap().has_credentials = false;
    let injected = inject(&pod(), &lease(), "shop", &installation).unwrap();
    assert_eq!(settings(&patched(&pod(), &injected)).redis.credentials, CredentialSource::None);
}

#[test]
fn annotations_change_the_sidecars_resources_and_the_other_bound_gives_way() {
    let mut pod = pod();
    pod["metadata"]["annotations"]["fencedlease.dev/sidecar-cpu-limit"] = "5m".into();
    pod["metadata"]["annotations"]["fencedlease.dev/sidecar-memory"] = "128Mi".into();
    pod["metadata"]["annotations"]["fencedlease.dev/log-level"] = "debug".into();
    let pod = guarded(&pod);
    let expected = json!({
        "requests": {"cpu": "5m", "memory": "128Mi"}, "limits": {"cpu": "5m", "memory": "128Mi"}
    });
    assert_eq!(pod["spec"]["initContainers"][0]["resources"], expected);
    assert_eq!(settings(&pod).log_level, "debug");
}

#[test]
fn the_admin_port_avoids_the_ports_of_the_pod() {
    let mut pod = pod();
    pod["spec"]["hostNetwork"] = true.into();
    pod["spec"]["containers"][0]["ports"] = json!([{"containerPort": 7475}]);
    let pod = guarded(&pod);
    let sidecar = &pod["spec"]["initContainers"][0];
    assert_eq!(settings(&pod).admin_port, 7476);
    assert_eq!(sidecar["readinessProbe"]["httpGet"]["port"], 7476);
    assert_eq!(sidecar["ports"][0]["hostPort"], 7476);
}

#[test]
fn a_second_injection_changes_nothing() {
    let once = guarded(&pod());
    assert_eq!(injected(&once).patch.0, []);
}

#[test]
fn what_other_webhooks_changed_meanwhile_is_guarded_again() {
    let mut pod = guarded(&pod());
    let container = &mut pod["spec"]["containers"][0];
    let mut args = container["command"].as_array().unwrap().clone();
    args.extend(container["args"].as_array().unwrap().clone());
    container["command"] = json!(["/vault/run"]);
    container["args"] = args.into();
    container["livenessProbe"] = json!({"tcpSocket": {"port": 80}});
    pod["spec"]["initContainers"]
        .as_array_mut()
        .unwrap()
        .insert(0, json!({"name": "p", "restartPolicy": "Always"}));
    pod["spec"]["initContainers"][1]["resources"]["limits"]["cpu"] = "1".into();
    let again = guarded(&pod);
    let container = &again["spec"]["containers"][0];
    assert_eq!(
        container["command"],
        json!(["/run/fencedlease/fencedlease", "guard", "--container", "app", "--"])
    );
    assert_eq!(container["args"], json!(["/vault/run", "/bin/app", "--all"]));
    assert_eq!(settings(&again).standby.mode, fencedlease_wire::settings::StandbyMode::Cold);
    assert_eq!(again["spec"]["initContainers"][0]["name"], "fencedlease");
    let limits = &again["spec"]["initContainers"][0]["resources"]["limits"];
    assert_eq!(*limits, json!({"cpu": "1", "memory": "64Mi"}), "a LimitRange's default stays");
    assert_eq!(injected(&again).patch.0, []);
}

#[test]
fn a_forged_sidecar_is_replaced_and_a_stale_one_follows_the_lease() {
    let mut pod = guarded(&pod());
    pod["spec"]["initContainers"][0]["image"] = "evil".into();
    pod["spec"]["initContainers"][0]["securityContext"] = json!({"privileged": true});
    pod["metadata"]["annotations"]["fencedlease.dev/status"] = "{}".into();
    assert_eq!(guarded(&pod), guarded(&super::tests::pod()));
}

#[test]
fn a_short_grace_period_and_much_memory_are_warned_about() {
    let mut pod = pod();
    pod["spec"]["terminationGracePeriodSeconds"] = 5.into();
    pod["spec"]["containers"][0]["resources"] = json!({"limits": {"memory": "2560Mi"}});
    let warnings = injected(&pod).warnings;
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("Set it to 7 or more"), "{}", warnings[0]);
    assert!(
        warnings[1].contains("2.5 GiB") && warnings[1].contains("killBudget of the FencedLease to 4s"),
        "{}",
        warnings[1]
    );
    pod["spec"]["terminationGracePeriodSeconds"] = 7.into();
    pod["spec"]["containers"][0]["resources"] = json!({"limits": {"memory": "1Gi"}});
    assert_eq!(injected(&pod).warnings, Vec::<String>::new());
}

#[test]
fn a_cpu_limit_in_which_a_guard_may_be_late_is_warned_about_with_its_container() {
    let mut pod = pod();
    let of = |limit: &str| json!({"limits": {"cpu": limit}});
    for (limit, is_small) in [("50m", true), ("0.4", true), ("499m", true), ("500m", false), ("2", false)] {
        pod["spec"]["containers"][0]["resources"] = of(limit);
        let warnings = injected(&pod).warnings;
        let named = format!("container app has {limit}. Set resources.limits.cpu to 500m or more");
        assert_eq!(
            warnings.iter().filter(|text| text.contains(&named)).count(),
            usize::from(is_small),
            "{limit}"
        );
        assert_eq!(warnings.len(), usize::from(is_small), "{warnings:?}");
    }
    pod["spec"]["resources"] = of("250m");
    let warnings = injected(&pod).warnings;
    assert!(warnings[0].contains("the whole pod has 250m"), "{warnings:?}");
}

/// The API server fills in what is missing after each patch. A pod that comes again must be found equal.
#[test]
fn nothing_of_ours_is_left_for_the_api_server_to_fill_in() {
    let secret_ref = SecretReference { name: "redis-shop".to_owned() };
    let auth = Some(RedisAuth { secret_ref });
    let own = RedisSpec { addresses: vec!["mine:6379".to_owned()], database: 0, auth, tls: None };
    let pod = with_lease(|lease| lease.spec.redis = Some(own));
    let sidecar = "/spec/initContainers/0";
    let probe = ["timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold", "httpGet/scheme"];
    let probes = ["startupProbe", "readinessProbe"];
    let mut fields: Vec<String> = probes
        .iter()
        .flat_map(|kind| probe.iter().map(move |field| format!("{sidecar}/{kind}/{field}")))
        .collect();
    for field in [
        "imagePullPolicy",
        "terminationMessagePath",
        "terminationMessagePolicy",
        "resources",
        "ports/0/protocol",
    ] {
        fields.push(format!("{sidecar}/{field}"));
    }
    fields.extend((1..5).map(|index| format!("{sidecar}/env/{index}/valueFrom/fieldRef/apiVersion")));
    fields.push("/spec/volumes/2/projected/defaultMode".to_owned());
    fields.push("/spec/volumes/2/projected/sources/0/serviceAccountToken/expirationSeconds".to_owned());
    for field in fields {
        assert!(pod.pointer(&field).is_some_and(|value| !value.is_null()), "{field}");
    }
}
