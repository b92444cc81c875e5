//! `docs/faults.md`, from the rows and what tests saw of them.

use std::fmt::Write as _;

use super::{ROWS, Shown};

const HEAD: &str = "# What goes wrong, and what happens then

One row a fault: what was injected, what must follow, and what the tests measured. The page is written by `make faults`
from the tests' own results; figures are those of that run, on two cores. A row that several tests show has a line for
each.

| # | fault | what must follow | measured | test |
| --- | --- | --- | --- | --- |
";

/// The page. Rows that no test has shown are named at its end.
pub fn page(shown: &[Shown]) -> String {
    let mut page = HEAD.to_owned();
    let mut missing = Vec::new();
    for row in &ROWS {
        let tests: Vec<&Shown> = shown.iter().filter(|it| it.number == row.number).collect();
        if tests.is_empty() {
            missing.push(row);
        }
        for Shown { file, test, outcome, .. } in tests {
            // Writing to a text cannot fail.
            let _ = writeln!(
                page,
                "| {} | {} | {} | {} | `{file}` {} |",
                row.number,
                row.fault,
                row.must,
                outcome.replace('|', "\\|"),
                test.rsplit("::").next().unwrap_or(test).replace('_', " ")
            );
        }
    }
    if !missing.is_empty() {
        page.push_str("\nNot shown by a test yet:\n\n");
    }
    for row in missing {
        let _ = writeln!(page, "- {}: {}", row.number, row.fault);
    }
    page
}
