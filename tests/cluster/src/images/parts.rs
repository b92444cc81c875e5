//! From what an image holds to the files that go into it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::archive::{Entry, Kind, Settings};
use super::list::{Image, Part};
use super::postgresql;
use crate::command::{command, run};
use crate::error::{Error, Result};

const BUSYBOX: &str = "/bin/busybox";

const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh
nobody:x:65534:65534:nobody:/:/bin/sh
nonroot:x:65532:65532:nonroot:/tmp:/bin/sh
";

const GROUP: &str = "root:x:0:
nogroup:x:65534:
nonroot:x:65532:
";

/// A file of an image, by where its content comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct File {
    /// Where it goes, without a leading slash.
    pub(super) path: String,
    pub(super) mode: u32,
    pub(super) from: From,
}

/// Where the content of a file comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum From {
    /// A file of this host.
    Host(PathBuf),
    /// This text.
    Text(&'static str),
    /// It is a folder.
    Folder,
    /// It is a link to this path.
    Link(String),
}

/// All files of an image, in the order of their paths, each once. `programs` is the folder with those of this
/// workspace.
pub(super) fn files(image: &Image, programs: &Path) -> Result<Vec<File>> {
    let mut files = BTreeMap::new();
    let mut add = |file: File| files.insert(file.path.clone(), file);
    for part in image.parts {
        match *part {
            Part::Own { binary, .. } => {
                add(file(binary, 0o755, From::Host(programs.join(binary))));
            }
            Part::Host { path, package } => {
                for needed in with_libraries(path, package)? {
                    add(file(&needed, 0o755, From::Host(needed.clone().into())));
                }
            }
            Part::Scratch(path) => {
                add(file(path, 0o1777, From::Folder));
            }
            Part::Userland => userland()?.into_iter().for_each(|file| {
                add(file);
            }),
            Part::Postgresql => postgresql::files()?.into_iter().for_each(|file| {
                add(file);
            }),
        }
    }
    Ok(files.into_values().collect())
}

pub(super) fn file(path: &str, mode: u32, from: From) -> File {
    File { path: path.trim_start_matches('/').to_owned(), mode, from }
}

/// A program and the paths of the libraries that it loads, as the loader asks for them.
pub(super) fn with_libraries(path: &str, package: &str) -> Result<Vec<String>> {
    if !Path::new(path).exists() {
        return Err(Error::missing(
            format!("{path} is missing, which goes into an image"),
            format!("As root on Debian or Ubuntu: apt-get install {package}"),
        ));
    }
    let mut needed = vec![path.to_owned()];
    needed.extend(libraries(&run(&mut command(&["ldd", path]))?));
    Ok(needed)
}

/// The paths in what `ldd` prints.
pub(super) fn libraries(ldd: &str) -> Vec<String> {
    let path = |line: &str| {
        let (_, found) = line.split_once("=>").unwrap_or(("", line));
        found.split_whitespace().next().filter(|path| path.starts_with('/')).map(str::to_owned)
    };
    ldd.lines().filter_map(path).collect()
}

fn userland() -> Result<Vec<File>> {
    if !Path::new(BUSYBOX).exists() {
        return Err(Error::missing(
            format!("{BUSYBOX} is missing, which goes into images"),
            "As root on Debian or Ubuntu: apt-get install busybox-static",
        ));
    }
    let applets = run(&mut command(&[BUSYBOX, "--list-full"]))?;
    let mut files = vec![
        file("root", 0o700, From::Folder),
        file("etc/passwd", 0o644, From::Text(PASSWD)),
        file("etc/group", 0o644, From::Text(GROUP)),
    ];
    let links = applets.lines().filter(|path| !path.is_empty());
    files.extend(links.map(|path| file(path, 0o777, From::Link(BUSYBOX.to_owned()))));
    files.push(file(BUSYBOX, 0o755, From::Host(BUSYBOX.into())));
    Ok(files)
}

/// Changes whenever the image could: paths, sizes and times of its files, and how it is run. No content is read.
pub(super) fn stamp(files: &[File], settings: &Settings) -> Result<String> {
    let mut stamp = format!("{settings:?}");
    for file in files {
        // Writing to a text cannot fail.
        let _ = write!(stamp, "\n{file:?}");
        if let From::Host(path) = &file.from {
            let seen = fs::metadata(path).map_err(Error::file("read", path))?;
            let _ = write!(stamp, " {} {}.{}", seen.len(), seen.mtime(), seen.mtime_nsec());
        }
    }
    Ok(format!("{:x}", Sha256::digest(stamp)))
}

/// The files with their content.
pub(super) fn entries(files: &[File]) -> Result<Vec<Entry>> {
    files
        .iter()
        .map(|file| {
            let kind = match &file.from {
                From::Host(path) => Kind::File(fs::read(path).map_err(Error::file("read", path))?),
                From::Text(text) => Kind::File(text.as_bytes().to_vec()),
                From::Folder => Kind::Folder,
                From::Link(to) => Kind::Link(to.clone()),
            };
            Ok(Entry { path: file.path.clone(), mode: file.mode, kind })
        })
        .collect()
}

#[cfg(test)]
mod tests;
