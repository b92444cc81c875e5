//! What docs/applications.md shows is taken from programs that run.
#![allow(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::fs;

use fencedlease_client_tests::root;

/// The languages of the page's snippets, and the files that they are taken from.
const SOURCES: [(&str, &[&str]); 6] = [
    ("python", &["python/report.py"]),
    ("go", &["go/main.go"]),
    ("java", &["java/Report.java"]),
    ("sh", &["shell/report.sh"]),
    ("rust", &["rust/examples/report.rs"]),
    ("sql", &["python/report.py", "go/main.go", "java/Report.java", "shell/report.sh"]),
];

#[test]
fn every_snippet_is_part_of_a_program_that_runs() {
    let page = fs::read_to_string(root().join("docs/applications.md")).unwrap();
    let mut counts = [0; SOURCES.len()];
    for block in page.split("```").skip(1).step_by(2) {
        let (language, snippet) = block.split_once('\n').unwrap();
        let index = SOURCES.iter().position(|(name, _)| *name == language);
        let index =
            index.unwrap_or_else(|| panic!("a snippet in {language:?}, which no program is written in"));
        for file in SOURCES[index].1 {
            let source = fs::read_to_string(root().join("clients").join(file)).unwrap();
            assert!(source_has(&source, snippet), "{file} has not what the page shows:\n{snippet}");
        }
        counts[index] += 1;
    }
    assert!(counts.iter().all(|&count| count > 0), "snippets by language: {counts:?}");
}

/// Whether the lines are there, one after the other, however far they are indented. A line of the page may be
/// part of a longer one of the program.
fn source_has(source: &str, snippet: &str) -> bool {
    let trimmed = |text: &str| text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>();
    let (source, snippet) = (trimmed(source), trimmed(snippet));
    source
        .windows(snippet.len())
        .any(|lines| lines.iter().zip(&snippet).all(|(line, part)| line.contains(&**part)))
}

#[test]
fn what_is_not_in_the_program_is_noticed() {
    assert!(source_has("a\n  b(1)\nc", "b(1)\nc\n"));
    assert!(!source_has("a\n  b(1)\nc", "b(2)\nc\n"));
    assert!(!source_has("a\n  b(1)\nc", "a\nc\n"));
}

#[test]
fn every_exit_code_of_the_programs_is_explained() {
    let page = fs::read_to_string(root().join("docs/applications.md")).unwrap();
    for code in [0, 10, 11, 12, 13] {
        assert!(page.lines().any(|line| line.starts_with(&format!("| {code} |"))), "no row for {code}");
    }
}
