//! Can the sidecar find the operator and the installation's Redis? Both have names that only the cluster's DNS knows.

use k8s_openapi::api::core::v1::PodSpec;

const OF_THE_CLUSTER: &str = "ClusterFirst";

/// A warning, if the pod asks the node's DNS instead: that is what the default comes to with the node's network.
pub(super) fn warning(spec: &PodSpec) -> Option<String> {
    let policy = spec.dns_policy.as_deref().unwrap_or(OF_THE_CLUSTER);
    let (found, next) = match (policy, spec.host_network == Some(true)) {
        (OF_THE_CLUSTER, true) => {
            ("ClusterFirst with spec.hostNetwork, which asks the node's DNS", "ClusterFirstWithHostNet")
        }
        ("Default", true) => ("Default, which asks the node's DNS", "ClusterFirstWithHostNet"),
        ("Default", false) => ("Default, which asks the node's DNS", OF_THE_CLUSTER),
        _ => return None,
    };
    Some(format!(
        "spec.dnsPolicy is {found}: the sidecar may not find the operator, nor a Redis by its Service's name, and the pod then never holds the lease. Set it to {next}."
    ))
}
