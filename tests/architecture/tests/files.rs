//! What no file of the repository may have.

use fencedlease_architecture::files;

/// A file above this is read by nobody to its end.
const MOST_LINES: usize = 500;
/// The one file that may hold unsafe code: system calls that no library offers.
const UNSAFE: &str = "sidecar/src/sys.rs";

#[test]
fn no_source_or_page_is_longer_than_five_hundred_lines() {
    let all = files(&[".rs", ".md", ".lua", ".go", ".sh", "Makefile", "Cargo.toml"]).unwrap();
    assert!(all.len() > 50, "found only {} files", all.len());
    let too_long: Vec<String> = all
        .iter()
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, lines)| *lines > MOST_LINES)
        .map(|(path, lines)| format!("{}: {lines} lines", path.display()))
        .collect();
    assert!(too_long.is_empty(), "split these: {too_long:#?}");
}

#[test]
fn unsafe_code_is_allowed_in_one_file() {
    let allowing: Vec<String> = files(&[".rs"])
        .unwrap()
        .iter()
        .filter(|(_, text)| text.contains("(unsafe_code"))
        .map(|(path, _)| path.display().to_string())
        .filter(|path| path != UNSAFE && !path.starts_with("tests/architecture/"))
        .collect();
    assert!(allowing.is_empty(), "unsafe code belongs into {UNSAFE}: {allowing:?}");
}

#[test]
fn no_file_leaves_work_undone_or_tests_skipped() {
    let words = ["TODO", "FIXME", "todo!(", "unimplemented!(", "#[ignore"];
    let mut found = Vec::new();
    for (path, text) in files(&[".rs", ".md", ".lua", ".yaml", ".tpl", ".go", ".toml", "Makefile"]).unwrap() {
        if path.starts_with("tests/architecture") {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            if words.iter().any(|word| line.contains(word)) {
                found.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "finish these, or file an issue: {found:#?}");
}
