//! Workloads for tests: a manifest with everything that the *restricted* Pod Security Standard asks for, and a
//! shell script as the application.

use serde_json::{Value, json};

/// Images that every cluster of the tests has.
const IMAGE: &str = "fencedlease.dev/busybox:dev";

/// What an application does that has nothing special to do: it says that it works, and works.
const WORKS: &str = r#"echo "working with fence ${FENCEDLEASE_FENCE:-none}"; while sleep 0.2; do :; done"#;

/// A workload of one container named `app`. Each method gives it something else than the default.
#[derive(Clone, Debug)]
pub struct Workload {
    kind: Kind,
    name: String,
    replicas: u32,
    lease: Option<String>,
    annotations: Vec<(String, String)>,
    script: String,
    user: Option<u32>,
    grace_seconds: u32,
    strategy: Option<Value>,
    changes: Option<Value>,
    node: Option<String>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Deployment,
    StatefulSet,
    DaemonSet,
    ReplicaSet,
    Job,
    CronJob,
    Pod,
}

impl Workload {
    /// A Deployment of one replica, with `strategy: Recreate`. Its pods carry the label `app` with its name.
    pub fn deployment(name: &str) -> Self {
        Self::new(Kind::Deployment, name)
    }

    /// A StatefulSet of one replica, whose pods start together.
    pub fn stateful_set(name: &str) -> Self {
        Self::new(Kind::StatefulSet, name)
    }

    /// A DaemonSet.
    pub fn daemon_set(name: &str) -> Self {
        Self::new(Kind::DaemonSet, name)
    }

    /// A ReplicaSet of one replica that no Deployment owns.
    pub fn replica_set(name: &str) -> Self {
        Self::new(Kind::ReplicaSet, name)
    }

    /// A Job that is not repeated.
    pub fn job(name: &str) -> Self {
        Self::new(Kind::Job, name)
    }

    /// A `CronJob` of such a Job, which starts none by itself.
    pub fn cron_job(name: &str) -> Self {
        Self::new(Kind::CronJob, name)
    }

    /// A pod without an owner.
    pub fn pod(name: &str) -> Self {
        Self::new(Kind::Pod, name)
    }

    fn new(kind: Kind, name: &str) -> Self {
        Self {
            kind,
            name: name.to_owned(),
            replicas: 1,
            lease: None,
            annotations: Vec::new(),
            script: WORKS.to_owned(),
            user: Some(10001),
            grace_seconds: 10,
            strategy: Some(json!({"type": "Recreate"})),
            changes: None,
            node: None,
        }
    }

    /// Asks for a FencedLease, by annotation of the pod template.
    #[must_use]
    pub fn guarded_by(mut self, lease: &str) -> Self {
        self.lease = Some(lease.to_owned());
        self
    }

    /// A further annotation of the pod template; `key` is what follows `fencedlease.dev/`.
    #[must_use]
    pub fn annotated(mut self, key: &str, value: &str) -> Self {
        self.annotations.push((format!("fencedlease.dev/{key}"), value.to_owned()));
        self
    }

    /// How many pods; of a Deployment, StatefulSet or ReplicaSet.
    #[must_use]
    pub fn replicas(mut self, replicas: u32) -> Self {
        self.replicas = replicas;
        self
    }

    /// What the application does, as a script of busybox's shell.
    #[must_use]
    pub fn script(mut self, script: &str) -> Self {
        script.clone_into(&mut self.script);
        self
    }

    /// The application is root and may change its user: no security context.
    #[must_use]
    pub fn as_root(mut self) -> Self {
        self.user = None;
        self
    }

    /// terminationGracePeriodSeconds.
    #[must_use]
    pub fn grace_seconds(mut self, seconds: u32) -> Self {
        self.grace_seconds = seconds;
        self
    }

    /// A Deployment that is updated by Kubernetes' own default, RollingUpdate.
    #[must_use]
    pub fn rolling(mut self) -> Self {
        self.strategy = None;
        self
    }

    /// Runs on this node only.
    #[must_use]
    pub fn on_node(mut self, node: &str) -> Self {
        self.node = Some(node.to_owned());
        self
    }

    /// Changes the pod's spec by a JSON merge patch, for what has no method here.
    #[must_use]
    pub fn with_pod_spec(mut self, changes: Value) -> Self {
        self.changes = Some(changes);
        self
    }

    /// The manifest.
    pub fn manifest(&self) -> Value {
        let (name, metadata) = (&self.name, self.pod_metadata());
        let template = json!({"metadata": metadata, "spec": self.pod_spec()});
        match self.kind {
            Kind::Deployment => {
                let mut manifest = json!({
                    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
                    "spec": {
                        "replicas": self.replicas,
                        "selector": {"matchLabels": {"app": name}},
                        "template": template,
                    },
                });
                if let Some(strategy) = &self.strategy {
                    manifest["spec"]["strategy"] = strategy.clone();
                }
                manifest
            }
            Kind::StatefulSet | Kind::DaemonSet | Kind::ReplicaSet => {
                let mut manifest = json!({
                    "apiVersion": "apps/v1", "kind": format!("{:?}", self.kind), "metadata": {"name": name},
                    "spec": {"selector": {"matchLabels": {"app": name}}, "template": template},
                });
                if self.kind != Kind::DaemonSet {
                    manifest["spec"]["replicas"] = self.replicas.into();
                }
                if self.kind == Kind::StatefulSet {
                    manifest["spec"]["podManagementPolicy"] = "Parallel".into();
                }
                manifest
            }
            Kind::Job => json!({
                "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
                "spec": {"backoffLimit": 0, "template": template},
            }),
            Kind::CronJob => json!({
                "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name},
                "spec": {
                    "schedule": "0 0 1 1 *", "suspend": true, "concurrencyPolicy": "Forbid",
                    "jobTemplate": {"spec": {"backoffLimit": 0, "template": template}},
                },
            }),
            Kind::Pod => {
                let mut manifest = template;
                manifest["apiVersion"] = "v1".into();
                manifest["kind"] = "Pod".into();
                manifest["metadata"]["name"] = name.as_str().into();
                manifest
            }
        }
    }

    fn pod_metadata(&self) -> Value {
        let mut annotations = json!({});
        if let Some(lease) = &self.lease {
            annotations["fencedlease.dev/lease"] = lease.as_str().into();
        }
        for (key, value) in &self.annotations {
            annotations[key] = value.as_str().into();
        }
        json!({"labels": {"app": self.name}, "annotations": annotations})
    }

    fn pod_spec(&self) -> Value {
        let mut container = json!({
            "name": "app",
            "image": IMAGE,
            "imagePullPolicy": "IfNotPresent",
            "command": ["sh", "-c"],
            "args": [self.script],
        });
        let mut spec = json!({
            "terminationGracePeriodSeconds": self.grace_seconds,
            "automountServiceAccountToken": false,
        });
        if let Some(user) = self.user {
            container["securityContext"] = json!({
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]},
            });
            spec["securityContext"] = json!({
                "runAsNonRoot": true,
                "runAsUser": user,
                "seccompProfile": {"type": "RuntimeDefault"},
            });
        }
        if let Some(node) = &self.node {
            spec["nodeSelector"] = json!({"kubernetes.io/hostname": node});
        }
        if matches!(self.kind, Kind::Job | Kind::CronJob) {
            spec["restartPolicy"] = "Never".into();
        }
        spec["containers"] = json!([container]);
        if let Some(changes) = &self.changes {
            merge(&mut spec, changes);
        }
        spec
    }
}

/// A JSON merge patch (RFC 7396).
fn merge(target: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            if let Some(target) = target.as_object_mut() {
                target.remove(key);
            }
        } else {
            merge(&mut target[key], value);
        }
    }
}

#[cfg(test)]
mod tests;
