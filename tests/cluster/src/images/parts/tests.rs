use tempfile::tempdir;

use super::*;

const SETTINGS: Settings = Settings { user: "", entrypoint: &[], command: &[], folder: "/" };

#[test]
fn libraries_are_found_in_each_kind_of_line() {
    let ldd = "\tlinux-vdso.so.1 (0x00007ffd)
\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f1a)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f1b)
\tlibgone.so.1 => not found
";
    assert_eq!(libraries(ldd), ["/lib/x86_64-linux-gnu/libm.so.6", "/lib64/ld-linux-x86-64.so.2"]);
    assert!(libraries("\tstatically linked\n").is_empty());
}

#[test]
fn a_program_of_the_host_comes_with_its_loader() {
    let needed = with_libraries("/bin/sh", "dash").unwrap();
    assert_eq!(needed[0], "/bin/sh");
    assert!(needed.iter().any(|path| path.contains("/ld-linux")), "{needed:?}");
}

#[test]
fn a_program_that_is_not_installed_is_named_with_its_package() {
    let error = with_libraries("/usr/bin/nowhere", "nowhere-tools").unwrap_err().to_string();
    assert!(error.contains("/usr/bin/nowhere") && error.contains("apt-get install nowhere-tools"), "{error}");
}

#[test]
fn a_stamp_changes_with_content_time_and_settings_and_with_nothing_else() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("program");
    fs::write(&path, "one").unwrap();
    let files = [file("program", 0o755, From::Host(path.clone()))];
    let first = stamp(&files, &SETTINGS).unwrap();
    assert_eq!(stamp(&files, &SETTINGS).unwrap(), first);
    assert_ne!(stamp(&files, &Settings { user: "1", ..SETTINGS }).unwrap(), first);
    fs::write(&path, "other").unwrap();
    assert_ne!(stamp(&files, &SETTINGS).unwrap(), first);
}

#[test]
fn entries_have_the_content_of_the_files() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("program");
    fs::write(&path, "content").unwrap();
    let files = [file("/bin/program", 0o755, From::Host(path)), file("data", 0o1777, From::Folder)];
    let entries = entries(&files).unwrap();
    assert_eq!(entries[0].path, "bin/program");
    assert_eq!(entries[0].kind, Kind::File(b"content".to_vec()));
    assert_eq!(entries[1].kind, Kind::Folder);
}
