use k8s_openapi::jiff::Timestamp;

use super::*;

fn object(kind: &str, name: &str, uid: Option<&str>) -> ObjectName {
    ObjectName {
        api_version: "apps/v1".to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        uid: uid.map(str::to_owned),
    }
}

fn refused(object: ObjectName, owner: Option<ObjectName>) -> Refused {
    Refused {
        namespace: "shop".to_owned(),
        lease: Some("report".to_owned()),
        object,
        owner,
        message: "cannot be guarded".to_owned(),
        at: Timestamp::UNIX_EPOCH,
    }
}

fn names(refused: &Refused) -> Vec<String> {
    told(refused).into_iter().filter_map(|reference| reference.name).collect()
}

#[test]
fn a_refused_pod_is_told_of_on_its_owner() {
    let owner = Some(object("ReplicaSet", "report-7c9", Some("u")));
    let refused = refused(object("Pod", "report-7c9-…", Some("never")), owner);
    assert_eq!(names(&refused), ["report-7c9"]);
    assert_eq!(told(&refused)[0].namespace.as_deref(), Some("shop"));
}

#[test]
fn a_refused_workload_is_told_of_on_itself_if_it_exists() {
    assert_eq!(names(&refused(object("Deployment", "report", Some("u")), None)), ["report"]);
    assert_eq!(names(&refused(object("Deployment", "report", None), None)), Vec::<String>::new());
}
