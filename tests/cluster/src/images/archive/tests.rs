use std::collections::BTreeMap;
use std::io::Read;

use serde_json::Value;
use tar::Archive;

use super::*;

const SETTINGS: Settings =
    Settings { user: "65532:65532", entrypoint: &["/app"], command: &["run"], folder: "/" };

fn entry(path: &str, mode: u32, kind: Kind) -> Entry {
    Entry { path: path.to_owned(), mode, kind }
}

fn sample() -> Vec<Entry> {
    vec![
        entry("tmp", 0o1777, Kind::Folder),
        entry("app", 0o755, Kind::File(b"program".to_vec())),
        entry("bin/sh", 0o777, Kind::Link("/bin/busybox".to_owned())),
    ]
}

fn written(entries: &[Entry]) -> (Vec<u8>, Digests) {
    let mut archive = Vec::new();
    let digests = write_archive(&mut archive, "example.test/app:dev", entries, &SETTINGS).unwrap();
    (archive, digests)
}

fn files(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for file in Archive::new(archive).entries().unwrap() {
        let mut file = file.unwrap();
        let mut content = Vec::new();
        file.read_to_end(&mut content).unwrap();
        files.insert(file.path().unwrap().to_str().unwrap().to_owned(), content);
    }
    files
}

fn at<'a>(files: &'a BTreeMap<String, Vec<u8>>, path: &Value) -> &'a [u8] {
    &files[path.as_str().unwrap()]
}

#[test]
fn the_manifest_leads_to_name_configuration_and_layer() {
    let (archive, digests) = written(&sample());
    let files = files(&archive);
    assert_eq!(files.len(), 3);
    let manifest: Value = serde_json::from_slice(&files["manifest.json"]).unwrap();
    assert_eq!(manifest[0]["RepoTags"][0], "example.test/app:dev");
    let config = at(&files, &manifest[0]["Config"]);
    assert_eq!(digests.image, format!("sha256:{}", hex(config)));
    let layer = at(&files, &manifest[0]["Layers"][0]);
    assert_eq!(digests.layer, format!("sha256:{}", hex(layer)));

    let config: Value = serde_json::from_slice(config).unwrap();
    assert_eq!(config["rootfs"]["diff_ids"][0], digests.layer);
    assert_eq!(config["config"]["User"], "65532:65532");
    assert_eq!(config["config"]["Entrypoint"][0], "/app");
    assert_eq!(config["config"]["Cmd"][0], "run");
}

#[test]
fn the_layer_has_each_entry_with_mode_and_owner() {
    let layer = layer(&sample()).unwrap();
    let mut archive = Archive::new(layer.as_slice());
    let seen: Vec<_> = archive
        .entries()
        .unwrap()
        .map(|file| {
            let file = file.unwrap();
            let header = file.header();
            assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
            let link = file.link_name().unwrap().map(|to| to.to_str().unwrap().to_owned());
            (
                file.path().unwrap().to_str().unwrap().to_owned(),
                header.mode().unwrap(),
                header.entry_type(),
                link,
            )
        })
        .collect();
    let link = Some("/bin/busybox".to_owned());
    assert_eq!(
        seen,
        [
            ("tmp/".to_owned(), 0o1777, EntryType::Directory, None),
            ("app".to_owned(), 0o755, EntryType::Regular, None),
            ("bin/sh".to_owned(), 0o777, EntryType::Symlink, link),
        ]
    );
}

#[test]
fn a_path_that_is_longer_than_a_header_holds_is_kept_whole() {
    let path = format!("usr/lib/{}", "long/".repeat(40) + "file");
    let layer = layer(&[entry(&path, 0o644, Kind::File(b"x".to_vec()))]).unwrap();
    assert_eq!(files(&layer)[&path], b"x");
}

#[test]
fn the_same_content_gives_the_same_bytes_and_another_one_another_id() {
    assert_eq!(written(&sample()), written(&sample()));
    let mut other = sample();
    other[0].mode = 0o755;
    assert_ne!(written(&sample()).1.image, written(&other).1.image);
}

#[test]
fn architectures_have_the_names_that_images_use() {
    assert_eq!(["x86_64", "aarch64", "riscv64"].map(architecture), ["amd64", "arm64", "riscv64"]);
}
