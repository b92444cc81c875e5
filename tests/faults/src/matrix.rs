//! The fault matrix: which faults are injected, what must follow, and what tests saw.
//!
//! A test that has injected a fault and seen what must follow calls [`shown`] as its last step. Where
//! [`FOLDER`] names a folder the row is kept there, and `make faults` writes `docs/faults.md` from all of them.

mod page;
mod rows;

use std::io;
use std::path::Path;
use std::{env, fs, process, thread};

use serde::{Deserialize, Serialize};

pub use page::page;
pub use rows::{ROWS, Row};

/// The variable that names the folder which rows are kept in.
pub const FOLDER: &str = "FENCEDLEASE_FAULTS_DIR";

/// What one test saw of one row.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Shown {
    /// The row's number.
    pub number: u8,
    /// The test's file, as the compiler names it.
    pub file: String,
    /// The test's name.
    pub test: String,
    /// What was injected how often, and what was measured.
    pub outcome: String,
}

/// Keeps what the calling test saw of these rows. The test's name is the thread's, so it is called by the test's
/// own thread. Fails on a number that no row has, and where the folder cannot be written.
#[track_caller]
pub fn shown(numbers: &[u8], outcome: &str) -> io::Result<()> {
    let file = std::panic::Location::caller().file();
    let name = thread::current().name().unwrap_or("main").to_owned();
    for &number in numbers {
        if ROWS.iter().all(|row| row.number != number) {
            return Err(io::Error::other(format!("the fault matrix has no row {number}; add it to ROWS")));
        }
        let Some(folder) = env::var_os(FOLDER) else { continue };
        let shown = Shown { number, file: file.to_owned(), test: name.clone(), outcome: outcome.to_owned() };
        let place = Path::new(&folder).join(format!("{number:02}-{}.json", name.replace("::", "-")));
        let unfinished = place.with_extension(process::id().to_string());
        fs::create_dir_all(&folder)?;
        fs::write(&unfinished, serde_json::to_vec_pretty(&shown)?)?;
        fs::rename(&unfinished, &place)?;
    }
    Ok(())
}

/// All that is kept in a folder, in order. Fails on a file that no test wrote.
pub fn read(folder: &Path) -> io::Result<Vec<Shown>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "json") {
            all.push(serde_json::from_slice(&fs::read(&path)?)?);
        }
    }
    all.sort();
    Ok(all)
}

#[cfg(test)]
mod tests;
