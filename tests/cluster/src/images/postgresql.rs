//! Which files make a PostgreSQL? The newest that Debian's packages have put on this host: server, client and
//! what `initdb` reads.

use std::fs;
use std::path::{Path, PathBuf};

use super::parts::{File, From, file, with_libraries};
use crate::error::{Error, Result};

const VERSIONS: &str = "/usr/lib/postgresql";
const PACKAGE: &str = "postgresql";
const PROGRAMS: [&str; 3] = ["postgres", "initdb", "psql"];
/// What `initdb` loads into every database.
const MODULES: [&str; 2] = ["plpgsql.so", "dict_snowball.so"];
/// In the shared folder, and of no use to a server.
const LEFT_OUT: [&str; 2] = ["man", "contrib"];

/// The files at the same paths as on this host, and a link below `/usr/bin` for each program.
pub(super) fn files() -> Result<Vec<File>> {
    let version = newest()?;
    let home = Path::new(VERSIONS).join(&version);
    // The server knows GMT by itself, and complains without the folder of the others.
    let mut files = vec![file("usr/share/zoneinfo", 0o755, From::Folder)];
    for program in PROGRAMS {
        let path = home.join("bin").join(program).display().to_string();
        for needed in with_libraries(&path, PACKAGE)? {
            files.push(file(&needed, 0o755, From::Host(needed.clone().into())));
        }
        files.push(file(&format!("usr/bin/{program}"), 0o777, From::Link(path)));
    }
    let modules = MODULES.iter().map(|module| home.join("lib").join(module));
    let shared = Path::new("/usr/share/postgresql").join(&version);
    for path in modules.chain(below(&shared)?) {
        files.push(file(&path.display().to_string(), 0o644, From::Host(path)));
    }
    Ok(files)
}

fn newest() -> Result<String> {
    let numbers = fs::read_dir(VERSIONS).into_iter().flatten().filter_map(|entry| {
        let entry = entry.ok()?;
        let is_server = entry.path().join("bin").join("postgres").exists();
        entry.file_name().to_str()?.parse::<u32>().ok().filter(|_| is_server)
    });
    numbers.max().map(|number| number.to_string()).ok_or_else(|| {
        Error::missing(
            format!("there is no server below {VERSIONS}, which goes into an image"),
            format!("As root on Debian or Ubuntu: apt-get install {PACKAGE}"),
        )
    })
}

/// All files below a folder, but for what no server needs.
fn below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(Error::file("read", folder))? {
        let path = entry.map_err(Error::file("read", folder))?.path();
        let is_left_out = path.file_name().is_some_and(|name| LEFT_OUT.iter().any(|it| name == *it));
        if path.is_dir() && !is_left_out {
            files.extend(below(&path)?);
        } else if path.is_file() {
            files.push(path);
        }
    }
    Ok(files)
}
