//! When does the API server ask at all? The `matchConditions` of the webhook configurations, in CEL. What has no
//! key under our prefix never meets a webhook of ours, also while the operator is away.
//!
//! An expression that fails refuses the request, so each is written so that it cannot.

/// For pods, at CREATE: a key under our prefix.
pub const NEW_POD: &str = "object.?metadata.?annotations.orValue({}).exists(k, k.startsWith('fencedlease.dev/')) || \
object.?metadata.?labels.orValue({}).exists(k, k.startsWith('fencedlease.dev/'))";

/// For pods, at UPDATE: an annotation under our prefix that is new, changed or gone. Labels are left out, since
/// the operator changes them.
pub const LIVE_POD: &str = "[[object.?metadata.?annotations.orValue({}), \
oldObject.?metadata.?annotations.orValue({})]]\
.exists(p, p[0].exists(k, k.startsWith('fencedlease.dev/') && (!(k in p[1]) || p[0][k] != p[1][k])) || \
p[1].exists(k, k.startsWith('fencedlease.dev/') && !(k in p[0])))";

/// For Deployments, StatefulSets, DaemonSets, ReplicaSets and Jobs, at CREATE and UPDATE: a key under our prefix
/// that is new, changed or gone, on the object itself or in its pod template.
pub const WORKLOAD: &str = "[oldObject == null ? {} : oldObject].exists(o, [\
[object.?metadata.?annotations.orValue({}), o.?metadata.?annotations.orValue({})], \
[object.?metadata.?labels.orValue({}), o.?metadata.?labels.orValue({})], \
[object.?spec.?template.?metadata.?annotations.orValue({}), o.?spec.?template.?metadata.?annotations.orValue({})], \
[object.?spec.?template.?metadata.?labels.orValue({}), o.?spec.?template.?metadata.?labels.orValue({})]]\
.exists(p, p[0].exists(k, k.startsWith('fencedlease.dev/') && (!(k in p[1]) || p[0][k] != p[1][k])) || \
p[1].exists(k, k.startsWith('fencedlease.dev/') && !(k in p[0]))))";

/// The same for CronJobs, whose pod template lies deeper.
pub const CRON_JOB: &str = "[oldObject == null ? {} : oldObject].exists(o, [\
[object.?metadata.?annotations.orValue({}), o.?metadata.?annotations.orValue({})], \
[object.?metadata.?labels.orValue({}), o.?metadata.?labels.orValue({})], \
[object.?spec.?jobTemplate.?spec.?template.?metadata.?annotations.orValue({}), \
o.?spec.?jobTemplate.?spec.?template.?metadata.?annotations.orValue({})], \
[object.?spec.?jobTemplate.?spec.?template.?metadata.?labels.orValue({}), \
o.?spec.?jobTemplate.?spec.?template.?metadata.?labels.orValue({})]]\
.exists(p, p[0].exists(k, k.startsWith('fencedlease.dev/') && (!(k in p[1]) || p[0][k] != p[1][k])) || \
p[1].exists(k, k.startsWith('fencedlease.dev/') && !(k in p[0]))))";

#[cfg(test)]
mod tests;
