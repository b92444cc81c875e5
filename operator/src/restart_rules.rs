//! Does this cluster have container restart rules? Found by a dry run: with the feature gate off the API
//! server drops the fields in silence.

use k8s_openapi::api::core::v1::{
    Container, ContainerRestartRule, ContainerRestartRuleOnExitCodes, Pod, PodSpec,
};
use std::time::Duration;

use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::sync::watch;

use crate::admin::Readiness;

/// What stands between the operator and being ready, by name.
pub const ANSWER: &str = "whether the cluster has container restart rules";
/// How often the cluster is asked; an upgrade of its control plane changes the answer.
const ASK: Duration = Duration::from_mins(10);
/// How soon it is asked again after a failure.
const ASK_AGAIN: Duration = Duration::from_secs(30);

/// Asks the API server of `namespace`, which creates nothing.
pub async fn supported(client: Client, namespace: &str) -> Result<bool, kube::Error> {
    let pods: Api<Pod> = Api::namespaced(client, namespace);
    let params = PostParams { dry_run: true, ..PostParams::default() };
    let answer = pods.create(&params, &trial()).await?;
    Ok(keeps_rules(&answer))
}

/// Asks every ten minutes until `stop`, and tells `answer` what changed. While the API server does not
/// answer, what was known stays.
pub async fn keep_asking(
    client: Client,
    namespace: String,
    answer: watch::Sender<bool>,
    readiness: Readiness,
    mut stop: watch::Receiver<bool>,
) {
    loop {
        let pause = match supported(client.clone(), &namespace).await {
            Ok(new) => {
                let changed = answer.send_if_modified(|old| std::mem::replace(old, new) != new);
                if changed {
                    tracing::info!(supported = new, "container restart rules");
                }
                ASK
            }
            Err(error) => {
                tracing::warn!(%error, "cannot find out whether the cluster has container restart rules");
                ASK_AGAIN
            }
        };
        // Pods that are injected before the first answer would wait in vain for rules that the cluster has;
        // after a failure they are injected as for a cluster without, which works everywhere.
        readiness.done(ANSWER);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

/// Whether the rules of [`trial`] are still in the answer.
pub fn keeps_rules(pod: &Pod) -> bool {
    let containers = pod.spec.as_ref().map_or(&[][..], |spec| &spec.containers);
    containers.iter().any(|container| {
        container.restart_policy.as_deref() == Some("Never")
            && container.restart_policy_rules.as_ref().is_some_and(|rules| !rules.is_empty())
    })
}

/// A pod that every admission policy lets pass, with one rule.
pub fn trial() -> Pod {
    let rule = ContainerRestartRule {
        action: "Restart".to_owned(),
        exit_codes: Some(ContainerRestartRuleOnExitCodes {
            operator: "NotIn".to_owned(),
            values: Some(vec![i32::from(fencedlease_wire::exit::LOST)]),
        }),
    };
    let container = serde_json::json!({
        "name": "trial",
        "image": "fencedlease.dev/never-pulled",
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true,
            "runAsNonRoot": true,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "resources": {
            "requests": {"cpu": "1m", "memory": "1Mi"},
            "limits": {"cpu": "1m", "memory": "1Mi"},
        },
    });
    let container = serde_json::from_value(container).unwrap_or_default();
    let container = Container {
        restart_policy: Some("Never".to_owned()),
        restart_policy_rules: Some(vec![rule]),
        ..container
    };
    Pod {
        metadata: ObjectMeta {
            generate_name: Some("fencedlease-restart-rules-".to_owned()),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec {
            automount_service_account_token: Some(false),
            containers: vec![container],
            ..PodSpec::default()
        }),
        status: None,
    }
}

#[cfg(test)]
mod tests;
