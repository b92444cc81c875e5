//! Every kind of workload: one of its pods holds, and what follows when that one goes is what its kind does.

use anyhow::{Context as _, Result};
use fencedlease_crds::Phase;
use fencedlease_end_to_end::timings::short;
use fencedlease_end_to_end::{Pod, RedisBehindProxy, Stage, Workload, seconds};
use k8s_openapi::api::batch::v1::Job;
use serde_json::json;

/// Ends by itself, well, after a while.
const ENDS: &str = r#"echo "working with fence $FENCEDLEASE_FENCE"; sleep 2"#;

fn says_its_fence(stage: &Stage, holder: &Pod<'_>, fence: i64) -> Result<()> {
    stage.eventually(seconds(20), "the application says its fence", |_| {
        Ok(holder.logs("app")?.contains(&format!("working with fence {fence}")).then_some(()))
    })
}

/// A workload whose pods run on: one holds, and when it is deleted another one follows with a greater fence.
fn goes_on(stage: &Stage, workload: &Workload, standbys: i64) -> Result<()> {
    let manifest = workload.manifest();
    let kind = manifest["kind"].as_str().context("no kind")?;
    let lease = kind.to_lowercase();
    stage.lease_of_installation(&lease, &short())?;
    stage.start(workload)?;
    let holder = stage.holder(&lease, seconds(60))?;
    let fence = stage.fence(&lease)?;
    says_its_fence(stage, &holder, fence)?;
    stage.until_standbys(&lease, standbys, seconds(60))?;
    holder.delete()?;
    let next = stage.holder_above(&lease, fence, seconds(60))?;
    assert_ne!(next.uid(), holder.uid(), "{kind}");
    says_its_fence(stage, &next, stage.fence(&lease)?)?;
    let status = stage.read_lease(&lease)?.status.unwrap_or_default();
    let workload = status.holder.and_then(|holder| holder.workload).context("no workload is told")?;
    assert_eq!((workload.kind.as_str(), workload.name.as_str()), (kind, lease.as_str()));
    Ok(())
}

#[test]
fn a_holder_of_each_kind_that_runs_on_is_followed_with_a_greater_fence() -> Result<()> {
    let stage = Stage::open("kinds")?;
    let nodes = i64::try_from(stage.cluster().nodes()?.len())?;
    goes_on(&stage, &Workload::stateful_set("statefulset").guarded_by("statefulset").replicas(2), 1)?;
    stage.kubectl(&["delete", "statefulset", "statefulset", "--wait=false"])?;
    goes_on(&stage, &Workload::daemon_set("daemonset").guarded_by("daemonset"), nodes - 1)?;
    stage.kubectl(&["delete", "daemonset", "daemonset", "--wait=false"])?;
    goes_on(&stage, &Workload::replica_set("replicaset").guarded_by("replicaset").replicas(2), 1)
}

#[test]
fn a_bare_pod_holds_and_nothing_follows_it_and_a_generated_name_is_guarded_too() -> Result<()> {
    let stage = Stage::open("bare")?;
    stage.lease_of_installation("report", &short())?;
    stage.start(&Workload::pod("report").guarded_by("report"))?;
    let holder = stage.holder("report", seconds(60))?;
    let fence = stage.fence("report")?;
    says_its_fence(&stage, &holder, fence)?;

    let mut generated = Workload::pod("named").guarded_by("report").manifest();
    generated["metadata"] = json!({
        "generateName": "named-", "labels": {"app": "named"}, "annotations": generated["metadata"]["annotations"],
    });
    stage.create(&generated)?;
    stage.until_standbys("report", 1, seconds(60))?;
    holder.delete()?;
    let next = stage.holder_above("report", fence, seconds(60))?;
    assert!(next.name().starts_with("named-"), "{}", next.name());
    says_its_fence(&stage, &next, stage.fence("report")?)?;

    next.delete()?;
    stage.until_lease("report", seconds(60), "phase Idle", |status| {
        (status.phase == Some(Phase::Idle) && status.holder.is_none()).then_some(())
    })?;
    stage.until_no_pods("app=named", seconds(30))
}

/// Waits until a Job is complete and its lease is released.
fn completes(stage: &Stage, job: &str, lease: &str) -> Result<Job> {
    let done = stage.eventually(seconds(90), &format!("Job {job} is complete"), |stage| {
        let job: Job = stage.get(&["job", job])?;
        let conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let done = conditions.into_iter().any(|it| it.type_ == "Complete" && it.status == "True");
        Ok(done.then_some(job))
    })?;
    stage.until_lease(lease, seconds(30), "phase Idle", |status| {
        (status.phase == Some(Phase::Idle)).then_some(())
    })?;
    Ok(done)
}

#[test]
fn jobs_of_every_restart_policy_and_of_a_cron_job_complete_and_release() -> Result<()> {
    let stage = Stage::open("jobs")?;
    stage.lease_of_installation("report", &short())?;
    stage.start(&Workload::job("never").guarded_by("report").script(ENDS))?;
    completes(&stage, "never", "report")?;
    let first = stage.fence("report")?;

    let on_failure = json!({"restartPolicy": "OnFailure"});
    stage.start(&Workload::job("on-failure").guarded_by("report").script(ENDS).with_pod_spec(on_failure))?;
    completes(&stage, "on-failure", "report")?;
    let second = stage.fence("report")?;

    stage.start(&Workload::cron_job("nightly").guarded_by("report").script(ENDS))?;
    stage.kubectl(&["create", "job", "nightly-1", "--from=cronjob/nightly"])?;
    completes(&stage, "nightly-1", "report")?;
    let third = stage.fence("report")?;
    assert!(first < second && second < third, "fences {first}, {second}, {third}");
    for job in ["never", "on-failure", "nightly-1"] {
        let pods = stage.pods(&format!("job-name={job}"))?;
        assert_eq!(pods.len(), 1, "{job}");
        assert!(pods[0].is_injected() && pods[0].phase() == "Succeeded", "{job}: {}", pods[0].phase());
    }
    Ok(())
}

/// Takes the lease away from whoever has it.
fn take_away(redis: &RedisBehindProxy<'_>) -> Result<()> {
    let key = redis.cli(&["KEYS", "fencedlease:v1:*:lease"])?;
    assert_eq!(redis.cli(&["DEL", key.trim()])?.trim(), "1");
    Ok(())
}

/// Works until it is ended, unless it is not the first to do so.
const SECOND_ENDS: &str = r#"echo "working with fence $FENCEDLEASE_FENCE"
if [ "$FENCEDLEASE_FENCE" -gt 1 ]; then sleep 2; exit 0; fi; while sleep 0.2; do :; done"#;

#[test]
fn a_loss_is_not_counted_by_a_job_whose_failure_policy_names_our_exit_code() -> Result<()> {
    let stage = Stage::open("failure policy")?;
    let redis = stage.redis_behind_proxy()?;
    for (name, policy) in [("counts", None), ("ignores", Some([195, 196]))] {
        stage.lease(name, &redis, &short())?;
        let mut job = Workload::job(name).guarded_by(name).script(SECOND_ENDS).manifest();
        if let Some(codes) = policy {
            let rule = json!({"action": "Ignore", "onExitCodes": {"operator": "In", "values": codes}});
            job["spec"]["podFailurePolicy"] = json!({"rules": [rule]});
        }
        stage.apply(&job)?;
        let holder = stage.holder(name, seconds(60))?;
        says_its_fence(&stage, &holder, stage.fence(name)?)?;
        take_away(&redis)?;
        let lost = holder.until(seconds(30), "has failed", |pod| pod.phase() == "Failed")?;
        assert_eq!(lost.last_end("app")?.context("the container has not ended")?.exit_code, 195);
        if policy.is_some() {
            let done = completes(&stage, name, name)?;
            let status = done.status.context("no status")?;
            assert_eq!((status.failed.unwrap_or_default(), status.succeeded), (0, Some(1)), "{status:?}");
            assert_eq!(stage.fence(name)?, 2);
        } else {
            stage.eventually(seconds(60), "the Job has failed", |stage| {
                let job: Job = stage.get(&["job", name])?;
                let conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
                Ok(conditions.into_iter().any(|it| it.type_ == "Failed" && it.status == "True").then_some(()))
            })?;
            assert_eq!(stage.pods(&format!("job-name={name}"))?.len(), 1);
        }
    }
    Ok(())
}

#[test]
fn active_deadline_seconds_count_waiting_too() -> Result<()> {
    let stage = Stage::open("deadline")?;
    stage.lease_of_installation("report", &short())?;
    stage.start(&Workload::pod("first").guarded_by("report"))?;
    stage.holder("report", seconds(60))?;
    let mut job = Workload::job("second").guarded_by("report").script(ENDS).manifest();
    job["spec"]["activeDeadlineSeconds"] = 10.into();
    stage.apply(&job)?;
    stage.eventually(seconds(60), "the Job has exceeded its deadline while it waited", |stage| {
        let job: Job = stage.get(&["job", "second"])?;
        let conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let late = conditions.into_iter().any(|it| it.reason.as_deref() == Some("DeadlineExceeded"));
        Ok(late.then_some(()))
    })?;
    assert_eq!(stage.fence("report")?, 1, "nobody else has held");
    Ok(())
}
