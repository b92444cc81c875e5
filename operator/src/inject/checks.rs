//! Which pods cannot be guarded? Each with the field, the value, what is accepted and the next step.

use std::collections::BTreeSet;

use fencedlease_wire::paths;
use k8s_openapi::api::core::v1::{Container, LifecycleHandler, PodSpec};

use super::names::{ENV_PREFIX, SIDECAR, is_our_volume, normal_path};
use super::view::{Guarded, PodView, is_native_sidecar};
use crate::admit::Problem;

/// Annotations by which the kubelet marks pods that it runs whatever the API server says.
const STATIC_POD_MARKS: [&str; 2] = ["kubernetes.io/config.mirror", "kubernetes.io/config.source"];

/// Everything about the pod that keeps it from being guarded.
pub(super) fn problems(view: &PodView, guarded: &[Guarded<'_>]) -> Vec<Problem> {
    let mut problems = pod_problems(view);
    problems.extend(name_problems(&view.spec));
    for one in guarded {
        problems.extend(container_problems(one));
    }
    problems
}

fn pod_problems(view: &PodView) -> Vec<Problem> {
    let spec = &view.spec;
    let mut problems = Vec::new();
    let annotations = view.metadata.annotations.iter().flatten();
    if let Some((mark, _)) = annotations.into_iter().find(|(key, _)| STATIC_POD_MARKS.contains(&key.as_str()))
    {
        problems.push(Problem::new(
            format!("metadata.annotations[{mark}]"),
            "set: this is a static pod",
            "pods made through the API server, because the kubelet runs a static one whatever is decided here",
            "Run it as a Deployment or a DaemonSet.",
        ));
    }
    if spec.host_pid == Some(true) {
        problems.push(Problem::new(
            "spec.hostPID",
            "true",
            "false or unset, because the guard must be process 1 of its container",
            "Remove spec.hostPID from the pod template.",
        ));
    }
    if spec.share_process_namespace == Some(true) {
        problems.push(Problem::new(
            "spec.shareProcessNamespace",
            "true",
            "false or unset, because the guard must be process 1 of its container",
            "Remove spec.shareProcessNamespace from the pod template; a guard for shared process namespaces comes with a later release.",
        ));
    }
    problems.extend(windows_problem(spec));
    if spec.ephemeral_containers.as_ref().is_some_and(|list| !list.is_empty()) {
        problems.push(Problem::new(
            "spec.ephemeralContainers",
            "set",
            "unset at creation",
            "Remove it; kubectl debug adds such a container to the running pod.",
        ));
    }
    problems
}

fn windows_problem(spec: &PodSpec) -> Option<Problem> {
    const SELECTOR: &str = "kubernetes.io/os";
    let selected = spec.node_selector.as_ref().and_then(|selector| selector.get(SELECTOR));
    let field = if spec.os.as_ref().is_some_and(|os| os.name == "windows") {
        "spec.os.name"
    } else if selected.is_some_and(|os| os == "windows") {
        "spec.nodeSelector[kubernetes.io/os]"
    } else {
        return None;
    };
    Some(Problem::new(
        field,
        "windows",
        "linux or unset",
        "Run the workload on Linux nodes, or without the annotation.",
    ))
}

/// What of the user's has a name of ours.
fn name_problems(spec: &PodSpec) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, volume) in spec.volumes.iter().flatten().enumerate() {
        if is_our_volume(&volume.name) {
            let field = format!("spec.volumes[{index}].name");
            problems.push(Problem::new(
                field,
                &volume.name,
                "a name that is not FencedLease's",
                "Rename the volume.",
            ));
        }
    }
    let init = spec.init_containers.iter().flatten().enumerate().map(|pair| ("initContainers", pair));
    let regular = spec.containers.iter().enumerate().map(|pair| ("containers", pair));
    for (list, (index, container)) in init.chain(regular) {
        if container.name == SIDECAR {
            let field = format!("spec.{list}[{index}].name");
            let next = "Rename the container; the sidecar of that name is added by itself.";
            problems.push(Problem::new(field, SIDECAR, "a name that is not the sidecar's", next));
        }
        for mount in container.volume_mounts.iter().flatten().filter(|mount| is_our_volume(&mount.name)) {
            let field = format!("spec.{list}[{index}].volumeMounts ({})", container.name);
            problems.push(Problem::new(
                field,
                &mount.name,
                "volumes of the pod's own, because who mounts FencedLease's may speak for the lease",
                "Remove the mount: guarded containers get theirs by themselves.",
            ));
        }
    }
    problems
}

fn container_problems(guarded: &Guarded<'_>) -> Vec<Problem> {
    let container = guarded.container;
    let mut problems = Vec::new();
    let field = |name: &str| guarded.field(name);
    let hooks = container.lifecycle.as_ref();
    let hooks = [
        ("lifecycle.postStart", hooks.and_then(|hooks| hooks.post_start.as_ref())),
        ("lifecycle.preStop", hooks.and_then(|hooks| hooks.pre_stop.as_ref())),
    ];
    for (name, handler) in hooks.into_iter().filter_map(|(name, hook)| Some((name, foreign_kind(hook?)?))) {
        problems.push(Problem::new(
            field(&format!("{name}.{handler}")),
            "set: the kubelet itself would act, also without the lease",
            "exec, which runs only under the lease, or sleep",
            "Do it in a command (lifecycle exec), or in the container's own program (at SIGTERM, for preStop).",
        ));
    }
    for mount in container.volume_mounts.iter().flatten().filter(|mount| covers_ours(&mount.mount_path)) {
        problems.push(Problem::new(
            field("volumeMounts"),
            &mount.mount_path,
            "paths outside /run/fencedlease, where the guard is mounted",
            "Mount the volume elsewhere.",
        ));
    }
    for variable in container.env.iter().flatten().filter(|variable| variable.name.starts_with(ENV_PREFIX)) {
        problems.push(Problem::new(
            field("env"),
            &variable.name,
            "names that do not begin with FENCEDLEASE_, since the guard sets those",
            "Remove or rename the variable.",
        ));
    }
    problems
}

/// The kind of a hook that is not run in the container, or is not known.
fn foreign_kind(handler: &LifecycleHandler) -> Option<&'static str> {
    if handler.http_get.is_some() {
        Some("httpGet")
    } else if handler.tcp_socket.is_some() {
        Some("tcpSocket")
    } else {
        None
    }
}

/// Whether a mount at this path would hide our volume or part of it. `/var/run` is a link to `/run` in most images.
fn covers_ours(path: &str) -> bool {
    let path = normal_path(path);
    let path = path.strip_prefix("/var").filter(|rest| rest.starts_with("/run/")).unwrap_or(&path);
    path == paths::SHARED_DIR
        || path.strip_prefix(paths::SHARED_DIR).is_some_and(|rest| rest.starts_with('/'))
}

/// What is wrong with names in an annotation that are no container which may be guarded.
pub(super) fn unknown_names(field: &str, named: &BTreeSet<String>, view: &PodView) -> Vec<Problem> {
    let known: Vec<&str> = view.candidates().map(|(_, _, container)| container.name.as_str()).collect();
    let unknown = named.iter().filter(|name| !known.contains(&name.as_str()));
    unknown
        .map(|name| {
            let is_sidecar = |container: &Container| container.name == *name && is_native_sidecar(container);
            if view.init_containers().any(|(_, container)| is_sidecar(container)) {
                let next = "Leave it out: it runs beside the guarded containers and needs no lease.";
                let found = format!("{name}, which is a native sidecar (restartPolicy: Always)");
                return Problem::new(field, &found, "other containers of the pod", next);
            }
            let nearest = crate::admit::problem::nearest(name, known.iter().copied());
            let next = nearest
                .map_or_else(|| "Correct the name.".to_owned(), |name| format!("Did you mean {name}?"));
            let found = format!("{name}, which is no container of the pod");
            Problem::new(field, &found, &known.join(", "), &next)
        })
        .collect()
}
