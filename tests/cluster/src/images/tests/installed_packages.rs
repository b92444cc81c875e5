//! Tests that need what `make programs` installs; `make check` leaves them out by the name of this module.

use tempfile::tempdir;

use super::*;

/// An image of files of this host, so that nothing has to be compiled.
const SMALL: Image = Image {
    name: "example.test/small:dev",
    parts: &[Part::Userland, Part::Scratch("data")],
    nonroot: true,
    entrypoint: &[],
    command: &["sh"],
    folder: "/data",
};

#[test]
fn an_archive_is_written_once_and_again_when_it_is_gone_or_cut_short() {
    let cache = tempdir().unwrap();
    let folder = cache.path().join("images");
    fs::create_dir(&folder).unwrap();
    let progress = Progress::start();
    let build = || archive(&SMALL, &folder, Path::new("/nowhere"), &progress).unwrap();
    let written = |built: &ImageArchive| fs::metadata(&built.path).unwrap().modified().unwrap();

    let first = build();
    let time = written(&first);
    assert_eq!(first.path, folder.join("small.tar"));
    assert_eq!(first.bytes, fs::metadata(&first.path).unwrap().len());
    assert_eq!((build(), written(&first)), (first.clone(), time));

    let before = |name: &Image| built_before(cache.path(), name);
    assert_eq!(before(&SMALL), Some(first.clone()));
    fs::write(&first.path, "cut short").unwrap();
    assert_eq!(before(&SMALL), None);
    assert_eq!(build(), first);
    fs::remove_file(&first.path).unwrap();
    assert_eq!(build(), first);
    assert!(written(&first) > time);
}

#[test]
fn the_shell_of_the_userland_is_a_link_to_busybox() {
    let files = parts::files(&SMALL, Path::new("/nowhere")).unwrap();
    let shell = files.iter().find(|file| file.path == "bin/sh").unwrap();
    assert_eq!(shell.from, parts::From::Link("/bin/busybox".to_owned()));
}

#[test]
fn a_postgresql_server_finds_all_it_needs_in_its_image() {
    let image = IMAGES.iter().find(|image| image.file() == "postgresql").unwrap();
    let root = tempdir().unwrap();
    for entry in parts::entries(&parts::files(image, Path::new("/nowhere")).unwrap()).unwrap() {
        unpack(root.path(), &entry);
    }
    // As in a pod: not root, nothing of this host's files, and what a container runtime adds.
    let null = Entry { path: "dev/null".into(), mode: 0o666, kind: Kind::File(Vec::new()) };
    unpack(root.path(), &null);
    let started = "initdb -D /data/db -U postgres -A trust --no-locale -E UTF8 --no-sync &&
        echo 'SELECT 6 * 7' | postgres --single -D /data/db -c timezone=GMT postgres";
    let folder = format!("--root={}", root.path().display());
    let mut inside = crate::command::command(&[
        "unshare",
        "--user",
        "--map-user=65532",
        "--map-group=65532",
        &folder,
        "/bin/sh",
        "-c",
        started,
    ]);
    let said = crate::command::run(&mut inside).unwrap();
    assert!(said.contains("= \"42\""), "{said}");
}

fn unpack(root: &Path, entry: &Entry) {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let path = root.join(&entry.path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    match &entry.kind {
        Kind::Folder => fs::create_dir_all(&path).unwrap(),
        Kind::File(content) => fs::write(&path, content).unwrap(),
        Kind::Link(to) => return symlink(to, &path).unwrap(),
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(entry.mode)).unwrap();
}
