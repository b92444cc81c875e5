//! What the API server itself holds pods that ask for a lease to, after every mutator and without the operator.

use anyhow::{Context as _, Result};
use fencedlease_end_to_end::{Stage, Workload, chart, seconds};
use serde_json::{Value, json};

/// What the policy's refusals begin with.
const POLICY: &str = "ValidatingAdmissionPolicy 'fencedlease-guarded-pods'";
const BREAKS: &str = "end-to-end.test/breaks";

/// A guarded pod of which something is taken, and what the message has to say.
struct Broken {
    what: &'static str,
    change: fn(&mut Value),
    says: &'static str,
}

const BROKEN: &[Broken] = &[
    Broken {
        what: "the sidecar is gone",
        change: |pod| pod["spec"]["initContainers"] = json!([]),
        says: "spec.initContainers is without the sidecar fencedlease; accepted: the pod as the webhook of \
               FencedLease makes it",
    },
    Broken {
        what: "the sidecar is an ordinary init container",
        change: |pod| {
            without(
                &mut pod["spec"]["initContainers"][0],
                &["restartPolicy", "startupProbe", "readinessProbe"],
            );
        },
        says: "spec.initContainers (fencedlease).restartPolicy is not set; accepted: Always",
    },
    Broken {
        what: "the sidecar has no startup probe",
        change: |pod| without(&mut pod["spec"]["initContainers"][0], &["startupProbe"]),
        says: "spec.initContainers (fencedlease) has not the startupProbe and readinessProbe",
    },
    Broken {
        what: "the sidecar's readiness probe asks something else",
        change: |pod| pod["spec"]["initContainers"][0]["readinessProbe"]["httpGet"]["path"] = "/".into(),
        says: "spec.initContainers (fencedlease) has not the startupProbe and readinessProbe",
    },
    Broken {
        what: "the sidecar has no volume of its own",
        change: |pod| pod["spec"]["initContainers"][0]["volumeMounts"][1]["mountPath"] = "/elsewhere".into(),
        says: "spec.initContainers (fencedlease).volumeMounts is without a mount of the sidecar",
    },
    Broken {
        what: "the sidecar holds another lease than the annotation says",
        change: |pod| pod["metadata"]["annotations"]["fencedlease.dev/lease"] = "ledger".into(),
        says: "is without the settings for FencedLease ledger in FENCEDLEASE_SETTINGS",
    },
    Broken {
        what: "the shared volume is on disk",
        change: |pod| {
            for volume in pod["spec"]["volumes"].as_array_mut().into_iter().flatten() {
                if volume["name"] == "fencedlease" {
                    volume["emptyDir"] = json!({});
                }
            }
        },
        says: "spec.volumes is without a volume of FencedLease",
    },
    Broken {
        what: "the command is the user's again",
        change: |pod| app(pod)["command"] = json!(["sh", "-c"]),
        says: "spec.containers (app).command does not begin with the guard",
    },
    Broken {
        what: "a program runs before the guard",
        change: |pod| {
            let command = app(pod)["command"].as_array().cloned().unwrap_or_default();
            app(pod)["command"] = std::iter::once("/tini".into()).chain(command).collect();
        },
        says: "spec.containers (app).command does not begin with the guard",
    },
    Broken {
        what: "a container that nobody guards was added",
        change: |pod| {
            let more =
                json!({"name": "proxy", "image": "fencedlease.dev/busybox:dev", "command": ["sleep", "9"]});
            pod["spec"]["containers"].as_array_mut().into_iter().for_each(|all| all.push(more.clone()));
        },
        says: "spec.containers (proxy).command does not begin with the guard",
    },
    Broken {
        what: "the guard's volume is not mounted",
        change: |pod| mounts(app(pod), |mount| mount["name"] != "fencedlease"),
        says: "spec.containers (app).volumeMounts is without the volume fencedlease at /run/fencedlease, read-only",
    },
    Broken {
        what: "the workload may write over the guard",
        change: |pod| {
            for mount in app(pod)["volumeMounts"].as_array_mut().into_iter().flatten() {
                mount["readOnly"] = false.into();
            }
        },
        says: "spec.containers (app).volumeMounts is without the volume fencedlease at /run/fencedlease, read-only",
    },
    Broken {
        what: "another volume lies over the guard",
        change: |pod| also_mounts(app(pod), "data", "/var/run/fencedlease/x"),
        says: "spec.containers (app).volumeMounts has another volume at /run/fencedlease",
    },
    Broken {
        what: "the workload mounts the sidecar's own volume",
        change: |pod| also_mounts(app(pod), "fencedlease-state", "/state"),
        says: "spec (app).volumeMounts has a volume of FencedLease that is not for this container",
    },
    Broken {
        what: "the socket's variable is gone",
        change: |pod| env(app(pod), |variable| variable["name"] != "FENCEDLEASE_SOCKET"),
        says: "spec.containers (app).env is without FENCEDLEASE_SOCKET and FENCEDLEASE_DIR",
    },
    Broken {
        what: "a probe starts a program beside the guard",
        change: |pod| app(pod)["readinessProbe"] = json!({"exec": {"command": ["true"]}}),
        says: "spec.containers (app) has a probe with exec, or a postStart or preStop hook",
    },
    Broken {
        what: "a probe passes for a hook, which would wait",
        change: |pod| {
            let command =
                json!(["/run/fencedlease/fencedlease", "while-active", "--as", "post-start", "--", "true"]);
            app(pod)["livenessProbe"] = json!({"exec": {"command": command}});
        },
        says: "spec.containers (app) has a probe with exec, or a postStart or preStop hook",
    },
    Broken {
        what: "a hook starts a program beside the guard",
        change: |pod| {
            let command = json!(["/run/fencedlease/fencedlease", "version"]);
            app(pod)["lifecycle"] = json!({"preStop": {"exec": {"command": command}}});
        },
        says: "that would act without the lease; accepted: exec behind /run/fencedlease/fencedlease while-active",
    },
    Broken {
        what: "a hook calls somebody beside the guard",
        change: |pod| app(pod)["lifecycle"] = json!({"preStop": {"httpGet": {"port": 80}}}),
        says: "spec.containers (app) has a probe with exec, or a postStart or preStop hook",
    },
    Broken {
        what: "an init container was added",
        change: |pod| {
            let more = json!({"name": "set-up", "image": "fencedlease.dev/busybox:dev", "command": ["true"]});
            pod["spec"]["initContainers"].as_array_mut().into_iter().for_each(|all| all.push(more.clone()));
        },
        says: "spec.initContainers (set-up) would run without the lease",
    },
    Broken {
        what: "an init container has the guard in front and not its volume",
        change: |pod| {
            let mut more = app(pod).clone();
            more["name"] = "set-up".into();
            more["command"] = json!(["/run/fencedlease/fencedlease", "guard", "--container", "set-up", "--"]);
            mounts(&mut more, |mount| mount["name"] != "fencedlease");
            pod["spec"]["initContainers"].as_array_mut().into_iter().for_each(|all| all.push(more.clone()));
        },
        says: "spec.initContainers (set-up) would run without the lease",
    },
    Broken {
        what: "an init container mounts the sidecar's own volume",
        change: |pod| {
            let more = json!({
                "name": "proxy", "image": "fencedlease.dev/busybox:dev", "command": ["true"], "restartPolicy": "Always",
                "volumeMounts": [{"name": "fencedlease", "mountPath": "/lease"}],
            });
            pod["spec"]["initContainers"].as_array_mut().into_iter().for_each(|all| all.push(more.clone()));
        },
        says: "spec (proxy).volumeMounts has a volume of FencedLease that is not for this container",
    },
    Broken {
        what: "the guard is not process 1",
        change: |pod| pod["spec"]["shareProcessNamespace"] = true.into(),
        says: "spec.hostPID or spec.shareProcessNamespace is true",
    },
    Broken {
        what: "the lease's name is gone, and other keys are not",
        change: |pod| without(&mut pod["metadata"]["annotations"], &["fencedlease.dev/lease"]),
        says: "metadata.annotations[fencedlease.dev/lease] is not set, while another key",
    },
];

fn app(pod: &mut Value) -> &mut Value {
    &mut pod["spec"]["containers"][0]
}

fn without(object: &mut Value, keys: &[&str]) {
    if let Some(object) = object.as_object_mut() {
        object.retain(|key, _| !keys.contains(&key.as_str()));
    }
}

fn mounts(container: &mut Value, keep: impl Fn(&Value) -> bool) {
    container["volumeMounts"].as_array_mut().into_iter().for_each(|all| all.retain(&keep));
}

fn env(container: &mut Value, keep: impl Fn(&Value) -> bool) {
    container["env"].as_array_mut().into_iter().for_each(|all| all.retain(&keep));
}

fn also_mounts(container: &mut Value, name: &str, path: &str) {
    let mount = json!({"name": name, "mountPath": path});
    container["volumeMounts"].as_array_mut().into_iter().for_each(|all| all.push(mount.clone()));
}

#[test]
fn without_the_operator_the_api_server_refuses_every_form_that_is_not_guarded() -> Result<()> {
    let stage = Stage::open_alone("policy")?;
    stage.lease_of_installation("report", &json!({}))?;
    let data = json!({"volumes": [{"name": "data", "emptyDir": {}}]});
    let asks = Workload::pod("report").guarded_by("report").with_pod_spec(data).manifest();
    let guarded = stage.would_create(&asks)?;
    let rich = stage.would_create(&with_parts_beside(&asks))?;
    let many = stage.would_create(&with_containers(&asks, 60))?;
    let text = stage.would_refuse(&with_containers(&asks, 200))?;
    assert!(text.contains("too large to be looked at by FencedLease"), "{text}");
    assert_eq!(operator_restarts(&stage)?, 0, "large pods cost the operator its life");

    let _ignored = stage.pod_webhook("failurePolicy", "Ignore")?;
    let away = stage.operator_away()?;
    let text = stage.eventually(seconds(20), "the API server lets pods past the webhook", |stage| {
        let text = stage.would_refuse(&asks)?;
        Ok(text.contains(POLICY).then_some(text))
    })?;
    assert!(text.contains(BROKEN[0].says), "{text}");
    stage.would_create(&Workload::pod("plain").manifest()).context("a pod that does not ask")?;
    stage.would_create(&guarded).context("a pod that is guarded")?;
    stage.would_create(&rich).context("a pod whose probes, hooks and init container are guarded")?;
    for broken in BROKEN {
        let mut pod = guarded.clone();
        (broken.change)(&mut pod);
        let text = stage.would_refuse(&pod).with_context(|| format!("although {}", broken.what))?;
        assert!(text.contains(POLICY) && text.contains(broken.says), "{}: {text}", broken.what);
    }

    stage.would_create(&many).context("a pod of 60 guarded containers")?;
    let mut broken = many;
    broken["spec"]["containers"][59]["command"] = json!(["sh"]);
    let text = stage.would_refuse(&broken)?;
    assert!(text.contains("spec.containers (app-59).command does not begin with the guard"), "{text}");
    away.end()
}

fn operator_restarts(stage: &Stage) -> Result<i64> {
    let selector = "app.kubernetes.io/component=operator";
    let pods: Value =
        stage.cluster().get(&["pods", "--namespace", chart::NAMESPACE, "--selector", selector])?;
    let restarts = |pod: &Value| pod["status"]["containerStatuses"][0]["restartCount"].as_i64();
    pods["items"].as_array().context("no list")?.iter().map(|pod| restarts(pod).context("no status")).sum()
}

/// The pod with every part that may run beside its workload or before it.
fn with_parts_beside(pod: &Value) -> Value {
    let mut pod = pod.clone();
    let exec = json!({"exec": {"command": ["true"]}});
    let mut first = app(&mut pod).clone();
    first["name"] = "set-up".into();
    pod["spec"]["initContainers"] = json!([first]);
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        app(&mut pod)[probe] = exec.clone();
    }
    app(&mut pod)["lifecycle"] = json!({"postStart": exec, "preStop": exec});
    pod
}

/// The pod with so many containers, each named, and with variables and mounts of its own.
fn with_containers(pod: &Value, count: usize) -> Value {
    let mut pod = pod.clone();
    let mut template = app(&mut pod).clone();
    template["env"] = (0..40).map(|n| json!({"name": format!("SETTING_{n}"), "value": "x"})).collect();
    let volumes = (0..15).map(|n| json!({"name": format!("data-{n}"), "emptyDir": {}}));
    pod["spec"]["volumes"] = volumes.collect();
    let mounts = (0..15).map(|n| json!({"name": format!("data-{n}"), "mountPath": format!("/data/{n}")}));
    template["volumeMounts"] = mounts.collect();
    let name = |n: usize| format!("app-{n}");
    let containers = (0..count).map(|n| {
        template["name"] = name(n).into();
        template.clone()
    });
    pod["spec"]["containers"] = containers.collect();
    let names: Vec<String> = (0..count).map(name).collect();
    pod["metadata"]["annotations"]["fencedlease.dev/containers"] = names.join(",").into();
    pod
}

/// A second mutator: the API server's own, in this namespace, for pods that are injected already. What it breaks,
/// the pod's annotation says. It must look at the bare pod too: only who was asked at first is asked again.
fn mutator(namespace: &str) -> Value {
    let injected = "object.metadata.?labels[?'fencedlease.dev/injected'].orValue('') == 'true'";
    let breaks = |what: &str, patch: &str| {
        let asked = format!("{injected} && object.metadata.annotations['{BREAKS}'] == '{what}'");
        json!({"patchType": "JSONPatch", "jsonPatch": {"expression": format!("{asked} ? [{patch}] : []")}})
    };
    let remove = |path: &str| format!("JSONPatch{{op: 'remove', path: '{path}'}}");
    let sidecar = ["restartPolicy", "startupProbe", "readinessProbe"];
    let sidecar = sidecar.map(|field| remove(&format!("/spec/initContainers/0/{field}"))).join(", ");
    let command =
        "JSONPatch{op: 'replace', path: '/spec/containers/0/command', value: ['sh', '-c', 'sleep 100']}";
    let resources =
        json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]});
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": namespace},
        "spec": {
            "reinvocationPolicy": "IfNeeded",
            "failurePolicy": "Fail",
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "resourceRules": [resources],
            },
            "matchConditions": [{
                "name": "of-the-test",
                "expression": format!("'{BREAKS}' in object.metadata.?annotations.orValue({{}})"),
            }],
            "mutations": [
                breaks("sidecar", &sidecar),
                breaks("probe", &remove("/spec/initContainers/0/startupProbe")),
                breaks("command", command),
                breaks("mount", &remove("/spec/containers/0/volumeMounts/0")),
                breaks("nothing", "JSONPatch{op: 'add', path: '/metadata/labels/second', value: 'was-here'}"),
            ],
        },
    })
}

/// Takes the second mutator away again.
struct SecondMutator<'a>(&'a Stage);

impl<'a> SecondMutator<'a> {
    fn begin(stage: &'a Stage) -> Result<Self> {
        let name = stage.namespace();
        stage.apply(&mutator(name))?;
        let this = Self(stage);
        stage.apply(&json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding",
            "metadata": {"name": name}, "spec": {"policyName": name},
        }))?;
        Ok(this)
    }
}

impl Drop for SecondMutator<'_> {
    fn drop(&mut self) {
        for kind in ["mutatingadmissionpolicybinding", "mutatingadmissionpolicy"] {
            if let Err(error) = self.0.kubectl(&["delete", kind, self.0.namespace()]) {
                eprintln!("the second mutator stays: {error:#}");
            }
        }
    }
}

fn broken_by_the_mutator(what: &str) -> Value {
    let mut pod = Workload::pod("report").guarded_by("report").manifest();
    pod["metadata"]["annotations"][BREAKS] = what.into();
    pod
}

#[test]
fn what_a_second_mutator_breaks_is_mended_and_refused_where_it_has_the_last_word() -> Result<()> {
    let stage = Stage::open_alone("mutators")?;
    stage.lease_of_installation("report", &json!({}))?;
    let untouched = stage.would_create(&broken_by_the_mutator("not-yet"))?;
    let _mutator = SecondMutator::begin(&stage)?;
    stage.eventually(seconds(20), "the second mutator works", |stage| {
        let pod = stage.would_create(&broken_by_the_mutator("nothing"))?;
        Ok((pod["metadata"]["labels"]["second"] == "was-here").then_some(()))
    })?;
    for what in ["sidecar", "probe", "mount"] {
        let pod = stage.would_create(&broken_by_the_mutator(what)).with_context(|| what.to_owned())?;
        for part in ["containers", "initContainers", "volumes"] {
            assert_eq!(pod["spec"][part], untouched["spec"][part], "{what}");
        }
    }
    // Whose command it is now is not known.
    let text = stage.would_refuse(&broken_by_the_mutator("command"))?;
    assert!(text.contains("cannot be guarded by FencedLease report"), "{text}");

    let _last_word = stage.pod_webhook("reinvocationPolicy", "Never")?;
    for (what, says) in [
        ("sidecar", "spec.initContainers (fencedlease).restartPolicy is not set"),
        ("probe", "spec.initContainers (fencedlease) has not the startupProbe"),
        ("command", "spec.containers (app).command does not begin with the guard"),
        ("mount", "spec.containers (app).volumeMounts is without the volume fencedlease"),
    ] {
        let pod = broken_by_the_mutator(what);
        let text = stage.eventually(seconds(20), what, |stage| stage.would_refuse(&pod).map(Some))?;
        assert!(text.contains(POLICY) && text.contains(says), "{what}: {text}");
        assert!(
            text.contains("have that leave pods with the annotation fencedlease.dev/lease as they are"),
            "{text}"
        );
    }
    let pod = stage.would_create(&broken_by_the_mutator("nothing"))?;
    assert_eq!(pod["metadata"]["labels"]["second"], "was-here");
    Ok(())
}
