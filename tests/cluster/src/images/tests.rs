mod installed_packages;

use super::*;

#[test]
fn cargo_builds_each_program_once_and_statically() {
    let images: Vec<&Image> = IMAGES.iter().collect();
    let programs = own::programs(&images);
    assert!(programs.contains(&("fencedlease-sidecar", "fencedlease")));
    let cargo = own::cargo(&programs, Path::new("/target"), "x86_64-unknown-linux-gnu");
    let shown = crate::command::shown(&cargo);
    assert_eq!(shown.matches("--bin fault-proxy").count(), 1, "{shown}");
    let flags = cargo
        .get_envs()
        .find(|(name, _)| *name == "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS")
        .and_then(|(_, value)| value);
    assert_eq!(flags.unwrap(), "-C target-feature=+crt-static");
    // The last two stand for all that the cargo says which runs this test.
    for gone in ["RUSTFLAGS", "CARGO_MANIFEST_DIR", "CARGO_PKG_NAME"] {
        assert!(cargo.get_envs().any(|(name, value)| name == gone && value.is_none()), "{gone}");
    }
}

#[test]
fn sizes_are_in_mebibytes() {
    assert_eq!(size(5 * 1024 * 1024 + 300 * 1024), "5.2 MiB");
}
