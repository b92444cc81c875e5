//! One target under libFuzzer: the one that `FENCEDLEASE_FUZZ_TARGET` names.
#![no_main]

use std::sync::LazyLock;

use fencedlease_fuzz::{Target, target};

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("FENCEDLEASE_FUZZ_TARGET").unwrap_or_default();
    target(&name).unwrap_or_else(|| {
        eprintln!("FENCEDLEASE_FUZZ_TARGET is {name:?}, which is no target; run `make fuzz`.");
        std::process::exit(2)
    })
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (TARGET.run)(bytes));
