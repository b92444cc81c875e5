//! What the webhooks and the API server say to what users write: copied, refused with the next step, or warned of.

use std::process::Command;

use anyhow::{Context as _, Result, bail};
use fencedlease_end_to_end::timings::short;
use fencedlease_end_to_end::{Stage, Workload, seconds};
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::{Value, json};

const LEASE: &str = "fencedlease.dev/lease";
const COPIED: &str = "fencedlease.dev/copied";

/// Runs kubectl in the stage's namespace and gives all that a person would see of it, warnings too.
fn told(stage: &Stage, words: &[&str]) -> Result<String> {
    let mut command = stage.cluster().kubectl().command(&["--namespace", stage.namespace()]);
    let output = command.args(words).output()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    if !output.status.success() {
        bail!("kubectl {}: {text}", words.join(" "));
    }
    Ok(text)
}

/// The template's annotation and the mark that it is a copy.
fn copy_in(stage: &Stage, name: &str) -> Result<(Option<String>, Option<String>)> {
    let deployment: Deployment = stage.get(&["deployment", name])?;
    let template = deployment.spec.template.metadata.context("no metadata")?;
    let of = |annotations: Option<std::collections::BTreeMap<String, String>>, key: &str| {
        annotations.and_then(|mut all| all.remove(key))
    };
    Ok((of(template.annotations, LEASE), of(deployment.metadata.annotations, COPIED)))
}

#[test]
fn annotating_a_deployment_guards_its_pods_and_taking_it_out_ends_that() -> Result<()> {
    let stage = Stage::open("annotate")?;
    stage.lease_of_installation("report", &short())?;
    stage.start(&Workload::deployment("report"))?;
    let plain = stage.until_pods("app=report", 1, seconds(60), "runs", |pod| pod.phase() == "Running")?;
    assert!(!plain[0].is_injected());

    let told_at = told(&stage, &["annotate", "deployment", "report", "fencedlease.dev/lease=report"])?;
    let warning = "Warning: fencedlease.dev/lease was copied into spec.template.metadata.annotations. Put it into \
                   the manifest's pod template too (fencedlease.dev/lease: report), so that what you apply is what \
                   runs.";
    assert!(told_at.contains(warning), "{told_at}");
    assert_eq!(copy_in(&stage, "report")?, (Some("report".to_owned()), Some("report".to_owned())));
    let holder = stage.holder("report", seconds(60))?;
    assert!(holder.is_injected());
    let fence = stage.fence("report")?;
    stage.eventually(seconds(10), "the application says its fence", |_| {
        Ok(holder.logs("app")?.contains(&format!("working with fence {fence}")).then_some(()))
    })?;

    told(&stage, &["annotate", "deployment", "report", "fencedlease.dev/lease-"])?;
    assert_eq!(copy_in(&stage, "report")?, (None, None));
    stage.until_pods("app=report", 1, seconds(60), "runs unguarded", |pod| {
        pod.phase() == "Running" && !pod.is_injected()
    })?;
    stage.until_lease("report", seconds(20), "that no pod asks for it", |status| {
        let held = status.conditions.iter().find(|condition| condition.type_ == "Held")?;
        (held.reason == "NoPods" && status.holder.is_none()).then_some(())
    })
}

#[test]
fn turning_guarding_on_by_rolling_update_is_refused_with_a_command_that_works() -> Result<()> {
    let stage = Stage::open("rolling")?;
    stage.lease_of_installation("report", &short())?;
    stage.start(&Workload::deployment("report").rolling())?;
    stage.until_pods("app=report", 1, seconds(60), "runs", |pod| pod.phase() == "Running")?;

    let annotate = ["annotate", "deployment", "report", "fencedlease.dev/lease=report"];
    let by_command = stage.refused(&annotate)?;
    let by_manifest =
        stage.apply_refused(&Workload::deployment("report").rolling().guarded_by("report").manifest())?;
    for text in [&by_command, &by_manifest] {
        for part in [
            "guarding by FencedLease report is turned on while spec.strategy is RollingUpdate",
            "pods of both kinds would run side by side",
            "accepted: strategy Recreate, replicas 0 with no pod left, or the annotation fencedlease.dev/allow-overlap",
            "Set the strategy in the same change, or before it: kubectl patch deployment report",
        ] {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
    }
    assert_eq!(copy_in(&stage, "report")?, (None, None));

    let done = in_a_shell(&stage, command_in(&by_command)?)?;
    assert!(done.contains("deployment.apps/report patched"), "{done}");
    told(&stage, &annotate)?;
    let holder = stage.holder("report", seconds(60))?;
    assert!(holder.is_injected());
    Ok(())
}

/// The command that a message ends with.
fn command_in(text: &str) -> Result<&str> {
    let start = text.find("kubectl patch").with_context(|| format!("no command in {text}"))?;
    let end = text.rfind('\'').with_context(|| format!("no quoted patch in {text}"))?;
    Ok(&text[start..=end])
}

/// Runs a command as a person would who copied it out of a message.
fn in_a_shell(stage: &Stage, line: &str) -> Result<String> {
    let kubectl = stage.cluster().kubectl().command(&[]);
    let function = format!("kubectl() {{ '{}' \"$@\"; }}; {line}", kubectl.get_program().display());
    let mut shell = Command::new("sh");
    shell.args(["-c", &function]);
    shell.envs(kubectl.get_envs().filter_map(|(key, value)| Some((key, value?))));
    let output = shell.output()?;
    let text = [output.stdout, output.stderr].concat();
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// A pod that is refused: what is changed in one that would be guarded, and what the message has to say: field,
/// value, what is accepted, the next step.
struct Refused {
    name: &'static str,
    change: fn(&mut Value),
    says: [&'static str; 4],
}

const REFUSED: [Refused; 10] = [
    Refused {
        name: "http-hook",
        change: |pod| app(pod)["lifecycle"] = json!({"preStop": {"httpGet": {"port": 80}}}),
        says: [
            "spec.containers[0].lifecycle.preStop.httpGet (app) is",
            "set: the kubelet itself would act, also without the lease",
            "accepted: exec, which runs only under the lease, or sleep",
            "Do it in a command (lifecycle exec), or in the container's own program (at SIGTERM, for preStop).",
        ],
    },
    Refused {
        name: "host-pid",
        change: |pod| pod["spec"]["hostPID"] = true.into(),
        says: [
            "spec.hostPID is",
            "true",
            "accepted: false or unset",
            "Remove spec.hostPID from the pod template.",
        ],
    },
    Refused {
        name: "shared-processes",
        change: |pod| pod["spec"]["shareProcessNamespace"] = true.into(),
        says: [
            "spec.shareProcessNamespace is",
            "true",
            "accepted: false or unset",
            "Remove spec.shareProcessNamespace from the pod template",
        ],
    },
    Refused {
        name: "no-command",
        change: |pod| drop(app(pod).as_object_mut().and_then(|app| app.remove("command"))),
        says: [
            "spec.containers[0].command (app) is",
            "not set: the image's own command is not known here",
            "accepted: a command in the spec or in fencedlease.dev/command",
            "annotate the pod template with fencedlease.dev/command: '{\"app\":[\"/path/to/program\"]}'. Find it with: docker inspect",
        ],
    },
    Refused {
        name: "args-only",
        change: |pod| {
            drop(app(pod).as_object_mut().and_then(|app| app.remove("command")));
            app(pod)["args"] = json!(["--all"]);
        },
        says: [
            "spec.containers[0].command (app) is",
            "not set: the image's own command is not known here",
            "because the guard starts it",
            "Write the image's command into the spec, or annotate the pod template with fencedlease.dev/command",
        ],
    },
    Refused {
        name: "windows",
        change: |pod| {
            pod["spec"]["os"] = json!({"name": "windows"});
            // What the API server itself would refuse on Windows.
            drop(pod["spec"].as_object_mut().and_then(|spec| spec.remove("securityContext")));
            drop(app(pod).as_object_mut().and_then(|app| app.remove("securityContext")));
        },
        says: [
            "spec.os.name is",
            "windows",
            "accepted: linux or unset",
            "Run the workload on Linux nodes, or without the annotation.",
        ],
    },
    Refused {
        name: "init-container",
        change: |pod| {
            let mut first = app(pod).clone();
            first["name"] = "first".into();
            drop(first.as_object_mut().and_then(|first| first.remove("command")));
            pod["spec"]["initContainers"] = json!([first]);
        },
        says: [
            "spec.initContainers[0].command (first) is",
            "not set: the image's own command is not known here",
            "accepted: a command in the spec or in fencedlease.dev/command",
            "annotate the pod template with fencedlease.dev/command: '{\"first\":[\"/path/to/program\"]}'",
        ],
    },
    Refused {
        name: "typo",
        change: |pod| {
            let annotations = &mut pod["metadata"]["annotations"];
            *annotations = json!({"fencedlease.dev/leese": "report"});
        },
        says: [
            "metadata.annotations[fencedlease.dev/leese] is",
            "not an annotation that FencedLease knows",
            "accepted: fencedlease.dev/lease, fencedlease.dev/containers",
            "Did you mean fencedlease.dev/lease? Else remove it.",
        ],
    },
    Refused {
        name: "no-such-lease",
        change: |pod| pod["metadata"]["annotations"][LEASE] = "rapport".into(),
        says: [
            "metadata.annotations[fencedlease.dev/lease] is",
            "rapport, and namespace",
            "accepted: the name of a FencedLease of the same namespace",
            "See the names with kubectl get fencedleases -n",
        ],
    },
    Refused {
        name: "namespace-guard",
        change: |pod| pod["metadata"]["annotations"]["fencedlease.dev/guard"] = "Namespace".into(),
        says: [
            "metadata.annotations[fencedlease.dev/guard] is",
            "Namespace",
            "accepted: Auto or Entrypoint",
            "The namespace guard comes with a later release: remove the annotation",
        ],
    },
];

fn app(pod: &mut Value) -> &mut Value {
    &mut pod["spec"]["containers"][0]
}

#[test]
fn a_pod_that_cannot_be_guarded_is_refused_with_field_value_what_is_accepted_and_the_next_step() -> Result<()>
{
    let stage = Stage::open("refused")?;
    stage.lease_of_installation("report", &json!({}))?;
    for case in REFUSED {
        let mut pod = Workload::pod(case.name).guarded_by("report").manifest();
        (case.change)(&mut pod);
        let text = stage.apply_refused(&pod).with_context(|| format!("the case {}", case.name))?;
        let subject = format!("Pod {}/{} cannot be guarded", stage.namespace(), case.name);
        assert!(text.contains(&subject), "{text}");
        for part in case.says {
            assert!(text.contains(part), "{}: {part:?} is not in {text}", case.name);
        }
    }
    assert!(stage.pods("app")?.is_empty());
    Ok(())
}

#[test]
fn a_deployment_whose_pods_are_refused_says_so_at_once_and_in_the_leases_condition() -> Result<()> {
    let stage = Stage::open("foreseen")?;
    stage.lease_of_installation("report", &json!({}))?;
    let changes = json!({"hostPID": true});
    let manifest = Workload::deployment("report").guarded_by("report").with_pod_spec(changes).manifest();
    let file = std::env::temp_dir().join(format!("{}.json", stage.namespace()));
    std::fs::write(&file, manifest.to_string())?;
    let text = told(&stage, &["apply", "--filename", &file.to_string_lossy()]);
    std::fs::remove_file(&file)?;
    let refusal = "spec.hostPID is true; accepted: false or unset";
    let text = text?;
    assert!(text.contains("Warning: Its pods will be refused: ") && text.contains(refusal), "{text}");

    let message = stage.until_lease("report", seconds(20), "the refusal", |status| {
        let condition = status.conditions.iter().find(|condition| condition.type_ == "AdmissionOK")?;
        (condition.reason == "PodsRefused").then(|| condition.message.clone())
    })?;
    assert!(message.contains(refusal), "{message}");
    stage.until_event("report", "Refused", refusal, seconds(20))?;
    Ok(())
}

#[test]
fn timings_that_cannot_keep_the_promise_are_refused_by_the_api_server_with_the_remedy() -> Result<()> {
    let stage = Stage::open("timings")?;
    let cases = [
        (
            json!({"ttl": "8s"}),
            "spec.ttl 8s is too short: renewInterval 2.666s + renewTimeout 1s + 3 × stall 0.5s + gracePeriod 2s + \
             killBudget 2s = 9.166s must be below ttl/1.2 − 0.5s = 6.166s. Set ttl to 14s or more.",
        ),
        (
            json!({"ttl": "20s", "gracePeriod": "10s"}),
            "= 21.166s must be below ttl/1.2 − 0.5s = 16.166s. Set ttl to 30.001s or more, or shorten gracePeriod \
             to 5s or less.",
        ),
        (
            json!({"commitMargin": "5s"}),
            "spec.commitMargin 5s is too long: renewInterval 5s + renewTimeout 1s + stall 0.5s + commitMargin 5s = \
             11.5s must be below the 9.5s from a renewal to the kill instant. Set ttl to 19s or more, or shorten \
             commitMargin to 2.999s or less.",
        ),
        (json!({"ttl": "1s"}), "spec.ttl is 1s: it must lie between 5s and"),
        (
            json!({"maxHold": "1m", "maxHoldWarning": "1m"}),
            "spec.maxHoldWarning 60s is too long: it must be at most half of maxHold 60s. Set it to 30s or less, or \
             raise maxHold.",
        ),
        (
            json!({"standby": {"mode": "Cold", "readiness": "Ready"}}),
            "spec.standby.readiness is Ready with mode Cold",
        ),
    ];
    for (spec, says) in cases {
        let manifest = json!({
            "apiVersion": "fencedlease.dev/v1alpha1", "kind": "FencedLease",
            "metadata": {"name": "report"}, "spec": spec,
        });
        let text = stage.apply_refused(&manifest)?;
        assert!(text.contains(says), "{says:?} is not in {text}");
    }
    assert!(stage.read_leases()?.is_empty());
    stage.lease_of_installation("report", &json!({"ttl": "14s"}))?;
    Ok(())
}
