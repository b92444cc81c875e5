use serde_json::json;

use super::*;

fn archive() -> ImageArchive {
    ImageArchive {
        name: "fencedlease.dev/sidecar:dev".to_owned(),
        path: PathBuf::from("/cache/images/sidecar.tar"),
        digest: "sha256:0".to_owned(),
        bytes: 1,
    }
}

fn lines(delivery: &Delivery) -> Vec<String> {
    delivery.commands(&archive()).iter().map(|words| words.join(" ")).collect()
}

#[test]
fn only_known_words_choose_a_cluster() {
    assert_eq!(Target::parse("").unwrap(), Target::Own);
    assert_eq!(Target::parse("current").unwrap(), Target::Current);
    let message = Target::parse("Current").unwrap_err().to_string();
    assert!(message.contains("\"Current\"") && message.contains("CLUSTER=current"), "{message}");
}

#[test]
fn a_version_is_read_also_where_a_provider_adds_a_plus() {
    assert_eq!(version_of(&json!({"major": "1", "minor": "31+"})), Some((1, 31)));
    assert_eq!(version_of(&json!({})), None);
}

#[test]
fn kind_and_k3d_get_archives_and_others_a_push() {
    let kind = delivery("kind-dev", None, |_| true).unwrap();
    assert_eq!(lines(&kind), ["kind load image-archive /cache/images/sidecar.tar --name dev"]);
    let k3d = delivery("k3d-one", Some(""), |_| true).unwrap();
    assert_eq!(lines(&k3d), ["k3d image import /cache/images/sidecar.tar --cluster one"]);
    let docker = delivery("prod", Some("r.example/team/"), |program| program == "docker").unwrap();
    assert_eq!(
        lines(&docker),
        [
            "docker load --input /cache/images/sidecar.tar",
            "docker tag fencedlease.dev/sidecar:dev r.example/team/sidecar:dev",
            "docker push r.example/team/sidecar:dev",
        ]
    );
    let skopeo = delivery("kind-dev", Some("r.example"), |_| true).unwrap();
    assert_eq!(lines(&skopeo).len(), 1);
    assert!(lines(&skopeo)[0].ends_with("docker://r.example/sidecar:dev"));
}

#[test]
fn what_cannot_be_handed_over_says_what_to_do() {
    let message = |context: &str, registry: Option<&str>| {
        delivery(context, registry, |_| false).unwrap_err().to_string()
    };
    assert!(message("prod", None).contains("IMAGE_REGISTRY"));
    assert!(message("kind-dev", None).contains("Put kind into PATH"));
    assert!(message("prod", Some("r.example")).contains("skopeo, docker and podman"));
}

#[test]
fn images_of_others_keep_their_names() {
    assert_eq!(image_reference("docker.io/library/redis:8", Some("r.example")), "docker.io/library/redis:8");
    assert_eq!(image_reference("fencedlease.dev/sidecar:dev", None), "fencedlease.dev/sidecar:dev");
}
