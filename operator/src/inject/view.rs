//! What does a pod say that matters here? Typed, and for reading only: what is written is written on the raw
//! JSON, so that fields which this version does not know survive.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use super::checks::unknown_names;
use super::strip::Stripped;
use crate::admit::Problem;
use crate::admit::annotations::{self, COMMAND, CONTAINERS, PodAnnotations};

/// A pod without our parts.
pub(super) struct PodView {
    pub(super) metadata: ObjectMeta,
    pub(super) spec: PodSpec,
    pub(super) annotations: PodAnnotations,
    /// Containers that ran under the guard already, so that their command line is known to be whole.
    wrapped: BTreeSet<String>,
}

/// A container that is to be guarded.
pub(super) struct Guarded<'a> {
    /// The list of the spec in which it stands.
    pub(super) list: List,
    /// Where it stands there.
    pub(super) index: usize,
    pub(super) container: &'a Container,
    /// What runs in it: command and arguments.
    pub(super) line: Vec<String>,
}

/// A list of containers in a pod's spec.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum List {
    Init,
    Regular,
}

impl List {
    /// Its key in the spec.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Init => "initContainers",
            Self::Regular => "containers",
        }
    }
}

impl Guarded<'_> {
    /// The path of one of its fields, with its name, for people.
    pub(super) fn field(&self, name: &str) -> String {
        format!("spec.{}[{}].{name} ({})", self.list.key(), self.index, self.container.name)
    }
}

impl PodView {
    pub(super) fn new(stripped: &Stripped) -> Result<Self, Vec<Problem>> {
        let part = |name: &str| {
            stripped.pod.get(name).cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()))
        };
        let unreadable = |name: &str, error: serde_json::Error| {
            let text = format!(
                "{name} cannot be read as a pod's ({error}). Correct it as kubectl explain pod.{name} says."
            );
            vec![Problem::said(text)]
        };
        let metadata: ObjectMeta =
            serde_json::from_value(part("metadata")).map_err(|error| unreadable("metadata", error))?;
        let spec: PodSpec =
            serde_json::from_value(part("spec")).map_err(|error| unreadable("spec", error))?;
        let empty = std::collections::BTreeMap::new();
        let annotations = annotations::of_pod("metadata", metadata.annotations.as_ref().unwrap_or(&empty));
        let mut problems = annotations::of_labels("metadata", metadata.labels.as_ref().unwrap_or(&empty));
        match annotations {
            Ok(annotations) if problems.is_empty() => {
                Ok(Self { metadata, spec, annotations, wrapped: stripped.wrapped.clone() })
            }
            Ok(_) => Err(problems),
            Err(wrong) => {
                problems.extend(wrong);
                Err(problems)
            }
        }
    }

    /// The init containers of the user's and of others, with their place in the stripped pod.
    pub(super) fn init_containers(&self) -> impl Iterator<Item = (usize, &Container)> {
        self.spec.init_containers.iter().flatten().enumerate()
    }

    /// Whether a controller made the pod, and would make another one.
    pub(super) fn has_controller(&self) -> bool {
        self.metadata.owner_references.iter().flatten().any(|owner| owner.controller == Some(true))
    }

    /// The containers that may be guarded, in the order in which they run. Native sidecars are not among them.
    pub(super) fn candidates(&self) -> impl Iterator<Item = (List, usize, &Container)> {
        let init = self.init_containers().map(|(index, container)| (List::Init, index, container));
        let regular = self.spec.containers.iter().enumerate();
        let regular = regular.map(|(index, container)| (List::Regular, index, container));
        init.filter(|(_, _, container)| !is_native_sidecar(container)).chain(regular)
    }

    /// The containers to be guarded, in the order in which they run.
    pub(super) fn guarded(&self) -> (Vec<Guarded<'_>>, Vec<Problem>) {
        let named = self.annotations.containers.as_ref();
        let field = |key: &str| format!("metadata.annotations[{key}]");
        let mut problems =
            named.map_or_else(Vec::new, |named| unknown_names(&field(CONTAINERS), named, self));
        let commands: BTreeSet<String> = self.annotations.commands.keys().cloned().collect();
        problems.extend(unknown_names(&field(COMMAND), &commands, self));
        let mut guarded = Vec::new();
        for (list, index, container) in self.candidates() {
            if named.is_some_and(|named| !named.contains(&container.name)) {
                continue;
            }
            let one = Guarded { list, index, container, line: Vec::new() };
            match self.line(&one) {
                Ok(line) => guarded.push(Guarded { line, ..one }),
                Err(problem) => problems.push(problem),
            }
        }
        (guarded, problems)
    }

    fn line(&self, of: &Guarded<'_>) -> Result<Vec<String>, Problem> {
        let container = of.container;
        let name = &container.name;
        let field = of.field("command");
        let own = container.command.as_deref().filter(|command| !command.is_empty());
        let annotated = self.annotations.commands.get(name).map(Vec::as_slice);
        let command = match (own, annotated) {
            (Some(own), Some(annotated)) if own != annotated && !self.wrapped.contains(name) => {
                let found = format!("{own:?}, while {COMMAND} says {annotated:?}");
                let next = format!("Remove the container from {COMMAND}: the spec's command is what counts.");
                return Err(Problem::new(field, &found, "one command", &next));
            }
            (Some(command), _) | (None, Some(command)) => command,
            (None, None) => {
                let example = serde_json::json!({ name: ["/path/to/program"] });
                let image = container.image.as_deref().unwrap_or("IMAGE");
                let next = format!(
                    "Write the image's command into the spec, or annotate the pod template with {COMMAND}: '{example}'. Find it with: docker inspect --format '{{{{json .Config.Entrypoint}}}} {{{{json .Config.Cmd}}}}' {image}"
                );
                let accepted = format!("a command in the spec or in {COMMAND}, because the guard starts it");
                return Err(Problem::new(
                    field,
                    "not set: the image's own command is not known here",
                    &accepted,
                    &next,
                ));
            }
        };
        Ok(command.iter().chain(container.args.iter().flatten()).cloned().collect())
    }
}

/// Whether a container runs beside the others for as long as the pod lives.
pub(super) fn is_native_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}
