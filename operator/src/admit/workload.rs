//! What happens when a workload is created or changed whose keys under our prefix are new or changed? The
//! annotation on its own metadata is copied into its pod template, and guarding is not turned on or off while
//! pods of both kinds would run.

use std::collections::BTreeMap;

use json_patch::Patch;
use serde_json::{Map, Value};

use super::annotations::{self, COPIED, LEASE, WorkloadAnnotations};
use super::overlap::{Overlap, overlap, refusal_text};
use super::patch::difference;
use super::problem::{Cause, Problem, Refusal};

/// The kinds of workload whose pod template is looked after.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WorkloadKind {
    /// `apps/v1` Deployment.
    Deployment,
    /// `apps/v1` StatefulSet.
    StatefulSet,
    /// `apps/v1` DaemonSet.
    DaemonSet,
    /// `apps/v1` ReplicaSet.
    ReplicaSet,
    /// `batch/v1` Job.
    Job,
    /// `batch/v1` CronJob.
    CronJob,
}

/// A request to create or change a workload.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadChange<'a> {
    /// The kind.
    pub kind: WorkloadKind,
    /// The request's namespace.
    pub namespace: &'a str,
    /// The object as it is to be, as raw JSON.
    pub new: &'a Value,
    /// The object as it was; `None` at creation.
    pub old: Option<&'a Value>,
}

/// What is answered to a change that is admitted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Admitted {
    /// What the API server is to change in the object.
    pub patch: Patch,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// The FencedLease that the pod template asks for afterwards.
    pub lease: Option<String>,
}

/// What is decided from the objects alone.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// The change is admitted.
    Settled(Admitted),
    /// It is admitted if the workload has no pod left.
    IfNoPodIsLeft(Pending),
}

/// A change that is admitted if the workload has no pod left, terminating ones included.
#[derive(Clone, Debug, PartialEq)]
pub struct Pending {
    /// The label selector of the workload's pods, as the API takes it.
    pub selector: String,
    admitted: Admitted,
    refusal: Refusal,
}

impl WorkloadKind {
    /// The kind of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [
            Self::Deployment,
            Self::StatefulSet,
            Self::DaemonSet,
            Self::ReplicaSet,
            Self::Job,
            Self::CronJob,
        ];
        all.into_iter().find(|kind| kind.as_str() == name)
    }

    /// The kind's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
            Self::DaemonSet => "DaemonSet",
            Self::ReplicaSet => "ReplicaSet",
            Self::Job => "Job",
            Self::CronJob => "CronJob",
        }
    }

    /// The way from the object to its pod template.
    fn template_path(self) -> &'static [&'static str] {
        match self {
            Self::CronJob => &["spec", "jobTemplate", "spec", "template"],
            _ => &["spec", "template"],
        }
    }

    /// The pod template in an object of this kind.
    pub fn template(self, object: &Value) -> &Value {
        self.template_path().iter().fold(object, |value, key| &value[*key])
    }

    fn template_metadata(self) -> String {
        format!("{}.metadata", self.template_path().join("."))
    }
}

impl WorkloadChange<'_> {
    /// The object's name, as messages have it.
    pub fn name(&self) -> &str {
        let metadata = &self.new["metadata"];
        metadata["name"].as_str().or_else(|| metadata["generateName"].as_str()).unwrap_or("…")
    }

    fn refused(&self, cause: Cause, problems: Vec<Problem>) -> Refusal {
        let subject =
            format!("{} {}/{} cannot be changed so", self.kind.as_str(), self.namespace, self.name());
        Refusal::new(cause, subject, problems)
    }
}

impl Pending {
    /// The answer, once it is known how many pods are left.
    pub fn with_pods_left(self, pods: usize) -> Result<Admitted, Refusal> {
        if pods == 0 {
            return Ok(self.admitted);
        }
        let Refusal { cause, subject, mut problems } = self.refusal;
        problems.push(Problem::said(format!(
            "It is scaled to 0, but {pods} of its pods are still there, those that are ending included: wait until they are gone and repeat the change."
        )));
        Err(Refusal::new(cause, subject, problems))
    }
}

/// Decides about a change.
pub fn decide(change: WorkloadChange<'_>) -> Result<Decision, Refusal> {
    let WorkloadChange { kind, new, old, .. } = change;
    if has_controller(new) || new["metadata"].get("deletionTimestamp").is_some_and(|time| !time.is_null()) {
        // Its owner is looked after instead: a ReplicaSet that is changed under its Deployment is only replaced.
        return Ok(Decision::Settled(Admitted::default()));
    }
    let (own, template_lease) = read(change)?;
    let copy = copy(change, &own, template_lease.as_deref())?;
    let lease = copy.lease(template_lease);
    let mut admitted = Admitted { lease, ..Admitted::default() };
    if kind == WorkloadKind::Job && old.is_some() && !matches!(copy, Copy::Nothing) {
        return job_stays(change, &own, admitted);
    }
    admitted.patch = difference(new, &applied(kind, new, &copy));
    if let Copy::Set(name) = &copy {
        admitted.warnings.push(format!(
            "{LEASE} was copied into {}.annotations. Put it into the manifest's pod template too ({LEASE}: {name}), so that what you apply is what runs.",
            kind.template_metadata()
        ));
    }
    match old {
        Some(old) => change_over(change, old, own.allow_overlap, admitted),
        None => Ok(Decision::Settled(admitted)),
    }
}

/// Admits what is settled so far unless pods that are guarded otherwise would run beside the new ones.
fn change_over(
    change: WorkloadChange<'_>,
    old: &Value,
    allow_overlap: bool,
    mut admitted: Admitted,
) -> Result<Decision, Refusal> {
    let before = keys(&change.kind.template(old)["metadata"], "annotations").remove(LEASE);
    if before == admitted.lease {
        return Ok(Decision::Settled(admitted));
    }
    let refusal = |next: &str| {
        let text = refusal_text(change, before.as_deref(), admitted.lease.as_deref(), next);
        change.refused(Cause::Overlap, vec![Problem::said(text)])
    };
    let warning = match overlap(change.kind, change.new, old) {
        _ if allow_overlap => {
            "Guarded and unguarded pods may run side by side until the rollout is complete, as fencedlease.dev/allow-overlap says. Remove that annotation afterwards."
        }
        Overlap::None => return Ok(Decision::Settled(admitted)),
        Overlap::AsTheUserDeletes => {
            "With OnDelete, pods of both kinds run side by side if you delete them one by one. Scale to 0 or delete all of them together."
        }
        Overlap::IfPodsAreLeft(selector) => {
            let refusal = refusal("");
            return Ok(Decision::IfNoPodIsLeft(Pending { selector, admitted, refusal }));
        }
        Overlap::Some(next) => return Err(refusal(&next)),
    };
    admitted.warnings.push(warning.to_owned());
    Ok(Decision::Settled(admitted))
}

/// What is to be done to the copy in the template and to its mark.
enum Copy {
    Nothing,
    /// The template gets this name, marked as ours.
    Set(String),
    /// What is marked as ours goes, and the mark.
    Remove,
    /// The template is the user's own; only a stale mark goes.
    Unmark,
}

impl Copy {
    fn lease(&self, template: Option<String>) -> Option<String> {
        match self {
            Self::Set(name) => Some(name.clone()),
            Self::Remove => None,
            Self::Nothing | Self::Unmark => template,
        }
    }
}

fn copy(
    change: WorkloadChange<'_>,
    own: &WorkloadAnnotations,
    template: Option<&str>,
) -> Result<Copy, Refusal> {
    let ours = own.copied.is_some() && own.copied.as_deref() == template;
    match (own.lease.as_deref(), template) {
        (Some(name), Some(template)) if name == template => {
            let stale = own.copied.is_some() && !ours;
            Ok(if stale { Copy::Unmark } else { Copy::Nothing })
        }
        (Some(name), Some(template)) if !ours => {
            let field = format!("{}.annotations[{LEASE}]", change.kind.template_metadata());
            let accepted = format!("the same name as metadata.annotations[{LEASE}], which is {name}");
            let next = "Remove one of the two, or give both the same name.";
            Err(change.refused(Cause::Annotation, vec![Problem::new(field, template, &accepted, next)]))
        }
        (Some(name), _) => Ok(Copy::Set(name.to_owned())),
        (None, Some(_)) if ours => Ok(Copy::Remove),
        (None, _) if own.copied.is_some() => Ok(Copy::Unmark),
        (None, _) => Ok(Copy::Nothing),
    }
}

/// A Job's pod template cannot change, so neither can what was decided at its creation.
fn job_stays(
    change: WorkloadChange<'_>,
    own: &WorkloadAnnotations,
    mut admitted: Admitted,
) -> Result<Decision, Refusal> {
    let template = keys(&change.kind.template(change.new)["metadata"], "annotations").remove(LEASE);
    if own.lease.is_some() && own.lease != template {
        let problem = Problem::new(
            format!("metadata.annotations[{LEASE}]"),
            "changed on a Job that exists, whose pod template cannot change",
            "the annotation at the Job's creation",
            "Delete the Job, and create it with the annotation in spec.template.metadata.annotations.",
        );
        return Err(change.refused(Cause::Immutable, vec![problem]));
    }
    if let Some(name) = &template {
        let text =
            format!("This Job stays guarded by {name}: the pod template of a Job that exists cannot change.");
        admitted.warnings.push(text);
    }
    admitted.lease = template;
    Ok(Decision::Settled(admitted))
}

/// What the object's own annotations ask for, and the FencedLease of its template.
fn read(change: WorkloadChange<'_>) -> Result<(WorkloadAnnotations, Option<String>), Refusal> {
    let metadata = &change.new["metadata"];
    let place = change.kind.template_metadata();
    let template = &change.kind.template(change.new)["metadata"];
    let mut problems = annotations::of_labels("metadata", &keys(metadata, "labels"));
    problems.extend(annotations::of_labels(&place, &keys(template, "labels")));
    let own = annotations::of_workload(&keys(metadata, "annotations"));
    let pods = annotations::of_pod(&place, &keys(template, "annotations"));
    match (own, pods) {
        (Ok(own), Ok(pods)) if problems.is_empty() => Ok((own, pods.lease)),
        (own, pods) => {
            problems.extend(own.err().into_iter().chain(pods.err()).flatten());
            Err(change.refused(Cause::Annotation, problems))
        }
    }
}

fn applied(kind: WorkloadKind, new: &Value, copy: &Copy) -> Value {
    let mut object = new.clone();
    let (copied, mark) = match copy {
        Copy::Nothing => return object,
        Copy::Set(name) => (Some(Some(name)), Some(name)),
        Copy::Remove => (Some(None), None),
        Copy::Unmark => (None, None),
    };
    set(&mut object, &["metadata"], COPIED, mark);
    if let Some(copied) = copied {
        let path: Vec<&str> = kind.template_path().iter().copied().chain(["metadata"]).collect();
        set(&mut object, &path, LEASE, copied);
    }
    object
}

/// Sets an annotation, or takes it out, in the metadata at this path.
fn set(object: &mut Value, path: &[&str], key: &str, value: Option<&String>) {
    let Some((first, rest)) = path.split_first() else {
        let annotations = object
            .as_object_mut()
            .map(|metadata| metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new())));
        let Some(annotations) = annotations else { return };
        if !annotations.is_object() {
            *annotations = Value::Object(Map::new());
        }
        if let Some(annotations) = annotations.as_object_mut() {
            match value {
                Some(value) => drop(annotations.insert(key.to_owned(), value.clone().into())),
                None => drop(annotations.remove(key)),
            }
        }
        return;
    };
    if let Some(parent) = object.as_object_mut() {
        set(parent.entry(*first).or_insert_with(|| Value::Object(Map::new())), rest, key, value);
    }
}

fn has_controller(object: &Value) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    owners.is_some_and(|owners| owners.iter().any(|owner| owner["controller"] == true))
}

/// Annotations or labels of raw metadata.
pub(crate) fn keys(metadata: &Value, of: &str) -> BTreeMap<String, String> {
    let pairs = metadata[of].as_object().into_iter().flatten();
    pairs.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

#[cfg(test)]
mod tests;
