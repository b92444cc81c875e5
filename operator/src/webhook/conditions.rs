//! When does the API server ask at all? The `matchConditions` of the webhook configurations, in CEL. What has no
//! key under our prefix never meets a webhook of ours, also while the operator is away.
//!
//! An expression that fails refuses the request, so each is written so that it cannot: absent fields are
//! optional values, and at CREATE the old object is an empty one.

/// For pods. At CREATE: an annotation or label under our prefix. At UPDATE: an annotation under our prefix that
/// is new, changed or gone; not a label, since the operator changes those.
pub const POD: &str = "[oldObject == null ? {} : oldObject].exists(o, [\
[object.?metadata.?annotations.orValue({}), o.?metadata.?annotations.orValue({})]]\
.exists(p, p[0].exists(k, k.startsWith('fencedlease.dev/') && (!(k in p[1]) || p[0][k] != p[1][k])) || \
p[1].exists(k, k.startsWith('fencedlease.dev/') && !(k in p[0])))) || \
(oldObject == null && object.?metadata.?labels.orValue({}).exists(k, k.startsWith('fencedlease.dev/')))";

/// For Deployments, StatefulSets, DaemonSets, ReplicaSets, Jobs and CronJobs, at CREATE and UPDATE: an annotation
/// or label under our prefix that is new, changed or gone, on the object itself or in its pod template.
pub const WORKLOAD: &str = "[oldObject == null ? {} : oldObject].exists(o, [\
[object.?metadata.?annotations.orValue({}), o.?metadata.?annotations.orValue({})], \
[object.?metadata.?labels.orValue({}), o.?metadata.?labels.orValue({})], \
[object.?spec.?template.?metadata.?annotations.orValue({}), o.?spec.?template.?metadata.?annotations.orValue({})], \
[object.?spec.?template.?metadata.?labels.orValue({}), o.?spec.?template.?metadata.?labels.orValue({})], \
[object.?spec.?jobTemplate.?spec.?template.?metadata.?annotations.orValue({}), \
o.?spec.?jobTemplate.?spec.?template.?metadata.?annotations.orValue({})], \
[object.?spec.?jobTemplate.?spec.?template.?metadata.?labels.orValue({}), \
o.?spec.?jobTemplate.?spec.?template.?metadata.?labels.orValue({})]]\
.exists(p, p[0].exists(k, k.startsWith('fencedlease.dev/') && (!(k in p[1]) || p[0][k] != p[1][k])) || \
p[1].exists(k, k.startsWith('fencedlease.dev/') && !(k in p[0]))))";

#[cfg(test)]
mod tests;
