//! Which pods cannot be guarded? Each with the field, the value, what is accepted and the next step.

use std::collections::BTreeSet;

use fencedlease_wire::paths;
use k8s_openapi::api::core::v1::{Container, LifecycleHandler, PodSpec, Probe};

use super::names::{ENV_PREFIX, SIDECAR, is_our_volume, normal_path};
use super::view::{Guarded, PodView};
use crate::admit::Problem;
use crate::admit::annotations::CONTAINERS;

/// Annotations by which the kubelet marks pods that it runs whatever the API server says.
const STATIC_POD_MARKS: [&str; 2] = ["kubernetes.io/config.mirror", "kubernetes.io/config.source"];

/// Everything about the pod that keeps it from being guarded.
pub(super) fn problems(view: &PodView, guarded: &[Guarded<'_>]) -> Vec<Problem> {
    let mut problems = pod_problems(view);
    problems.extend(init_container_problems(view));
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

fn init_container_problems(view: &PodView) -> Vec<Problem> {
    // Whoever names what is guarded has left them out knowingly.
    if view.annotations.containers.is_some() {
        return Vec::new();
    }
    let own = view.init_containers().filter(|(_, container)| !is_native_sidecar(container));
    let names: Vec<&str> = view.spec.containers.iter().map(|container| container.name.as_str()).collect();
    own.map(|(index, container)| {
        Problem::new(
            format!("spec.initContainers[{index}] ({})", container.name),
            "an init container, which would run before the lease is held",
            "native sidecars (restartPolicy: Always), or init containers that are left out by name",
            &format!(
                "If it writes nothing that the lease guards, name what is guarded: {CONTAINERS}: \"{}\". Else do its work in a guarded container's command; guarded init containers come with a later release.",
                names.join(",")
            ),
        )
    })
    .collect()
}

fn is_native_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
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
    let (container, index) = (guarded.container, guarded.index);
    let mut problems = Vec::new();
    let field = |name: &str| format!("spec.containers[{index}].{name} ({})", container.name);
    let probes = [
        ("livenessProbe", &container.liveness_probe),
        ("readinessProbe", &container.readiness_probe),
        ("startupProbe", &container.startup_probe),
    ];
    for (name, probe) in probes {
        if probe.as_ref().is_some_and(is_exec) {
            problems.push(Problem::new(
                field(&format!("{name}.exec")),
                "set: it would start programs beside the guard",
                "httpGet, tcpSocket or grpc",
                "Probe the container by httpGet, tcpSocket or grpc, or remove the probe; exec probes come with a later release.",
            ));
        }
    }
    let hooks = container.lifecycle.as_ref();
    let hooks = [
        ("lifecycle.postStart", hooks.and_then(|hooks| hooks.post_start.as_ref())),
        ("lifecycle.preStop", hooks.and_then(|hooks| hooks.pre_stop.as_ref())),
    ];
    for (name, handler) in hooks.into_iter().filter_map(|(name, hook)| Some((name, hook_kind(hook?)?))) {
        problems.push(Problem::new(
            field(&format!("{name}.{handler}")),
            "set: it would act beside the guard, also without the lease",
            "sleep, or no hook",
            "Do its work in the container's own command (at SIGTERM, for preStop); such hooks come with a later release.",
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

fn is_exec(probe: &Probe) -> bool {
    probe.exec.is_some()
}

fn hook_kind(handler: &LifecycleHandler) -> Option<&'static str> {
    if handler.exec.is_some() {
        Some("exec")
    } else if handler.http_get.is_some() {
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

/// The names that stand in the annotation and in the pod alike, and what is wrong with the others.
pub(super) fn unknown_names(field: &str, named: &BTreeSet<String>, view: &PodView) -> Vec<Problem> {
    let regular: Vec<&str> = view.spec.containers.iter().map(|container| container.name.as_str()).collect();
    let unknown = named.iter().filter(|name| !regular.contains(&name.as_str()));
    unknown
        .map(|name| {
            if view.init_containers().any(|(_, container)| container.name == *name) {
                let next = "Leave it out; guarded init containers come with a later release.";
                let found = format!("{name}, which is an init container");
                return Problem::new(field, &found, "regular containers of the pod", next);
            }
            let nearest = crate::admit::problem::nearest(name, regular.iter().copied());
            let next = nearest
                .map_or_else(|| "Correct the name.".to_owned(), |name| format!("Did you mean {name}?"));
            Problem::new(
                field,
                &format!("{name}, which is no container of the pod"),
                &regular.join(", "),
                &next,
            )
        })
        .collect()
}
