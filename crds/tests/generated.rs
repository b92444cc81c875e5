//! The committed YAML is what the code generates.

use std::fs;
use std::path::Path;

use fencedlease_crds::generate::files;

#[test]
fn the_committed_files_are_what_the_code_generates() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for (path, text) in files().unwrap() {
        let committed = fs::read_to_string(root.join(path)).unwrap_or_default();
        assert!(committed == text, "{path} is not what the code generates: run `make crds` and commit it");
    }
}

#[test]
fn the_charts_copy_has_no_braces_that_helm_would_read() {
    let [_, (path, text)] = files().unwrap();
    let braces: Vec<&str> = text.lines().filter(|line| line.contains("{{") || line.contains("}}")).collect();
    assert_eq!(braces, ["{{- if .Values.crds.install }}", "{{- end }}"], "{path}");
}
