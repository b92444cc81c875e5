//! Files of the private volume that only this program reads.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Writes a file whole or not at all, readable by us alone.
pub(super) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let unfinished = path.with_extension("unfinished");
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    file.write_all(content)?;
    drop(file);
    fs::rename(&unfinished, path)
}
