//! The container images of the tests: what is in them, and which have to be made again?
//!
//! No registry and no container engine is asked. An image is one archive as `docker save` writes it, with one
//! layer, made of programs of this workspace and of this host.

mod archive;
mod list;
mod own;
mod parts;
mod postgresql;

pub use archive::{Digests, Entry, Kind, Settings, write_archive};
pub use list::{IMAGES, Image, Part};

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::progress::Progress;

/// An image that lies on disk as an archive.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ImageArchive {
    /// Its name with tag, as a pod's manifest has it.
    pub name: String,
    /// The archive.
    pub path: PathBuf,
    /// The image's id, `sha256:…`, as `crictl images` shows it. It changes only with the content.
    pub digest: String,
    /// Size of the archive, uncompressed.
    pub bytes: u64,
}

/// What was known when an archive was written; beside it on disk.
#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct Record {
    /// What it was made of.
    stamp: String,
    digest: String,
    bytes: u64,
}

/// Builds all images of [`IMAGES`] below `cache`, doing work only for what changed.
/// Fails if a program of this workspace does not compile, or if one of this host is not installed.
pub fn build_all(cache: &Path, progress: &Progress) -> Result<Vec<ImageArchive>> {
    build(cache, progress, |_| true)
}

/// Builds the images that `wanted` says yes to.
pub fn build(
    cache: &Path,
    progress: &Progress,
    wanted: impl Fn(&Image) -> bool,
) -> Result<Vec<ImageArchive>> {
    let folder = cache.join("images");
    fs::create_dir_all(&folder).map_err(Error::file("make", &folder))?;
    let images: Vec<&Image> = IMAGES.iter().filter(|&image| wanted(image)).collect();
    let programs = own::build(&images, &cache.join("target"), progress)?;
    images.iter().map(|image| archive(image, &folder, &programs, progress)).collect()
}

/// The archive of an image as it was built last, whether or not it would be built the same today.
pub fn built_before(cache: &Path, image: &Image) -> Option<ImageArchive> {
    let file = |ending: &str| cache.join("images").join(format!("{}.{ending}", image.file()));
    let path = file("tar");
    let record = known(&file("json"), &path)?;
    Some(ImageArchive { name: image.name.to_owned(), path, digest: record.digest, bytes: record.bytes })
}

fn archive(image: &Image, folder: &Path, programs: &Path, progress: &Progress) -> Result<ImageArchive> {
    let path = folder.join(format!("{}.tar", image.file()));
    let record_path = folder.join(format!("{}.json", image.file()));
    let files = parts::files(image, programs)?;
    let settings = image.settings();
    let stamp = parts::stamp(&files, &settings)?;
    let record = match known(&record_path, &path) {
        Some(record) if record.stamp == stamp => record,
        _ => {
            let record = write(&path, stamp, image, &files, &settings)?;
            replace(&record_path, &serde_json::to_vec(&record).map_err(document(image))?)?;
            progress.step(&format!("Image {}: {}", image.name, size(record.bytes)));
            record
        }
    };
    Ok(ImageArchive { name: image.name.to_owned(), path, digest: record.digest, bytes: record.bytes })
}

fn write(
    path: &Path,
    stamp: String,
    image: &Image,
    files: &[parts::File],
    settings: &Settings,
) -> Result<Record> {
    let mut archive = Vec::new();
    let entries = parts::entries(files)?;
    let digests =
        write_archive(&mut archive, image.name, &entries, settings).map_err(Error::file("write", path))?;
    replace(path, &archive)?;
    Ok(Record { stamp, digest: digests.image, bytes: archive.len() as u64 })
}

/// The record of an archive that is there.
fn known(record: &Path, archive: &Path) -> Option<Record> {
    let record: Record = serde_json::from_slice(&fs::read(record).ok()?).ok()?;
    let there = fs::metadata(archive).is_ok_and(|archive| archive.len() == record.bytes);
    there.then_some(record)
}

/// Writes a file whole or not at all.
fn replace(path: &Path, content: &[u8]) -> Result<()> {
    let unfinished = path.with_extension("unfinished");
    fs::write(&unfinished, content).map_err(Error::file("write", &unfinished))?;
    fs::rename(&unfinished, path).map_err(Error::file("rename", &unfinished))
}

fn document(image: &Image) -> impl FnOnce(serde_json::Error) -> Error {
    let what = format!("the record of image {}", image.name);
    move |source| Error::Document { what, source }
}

/// Bytes as people read them.
fn size(bytes: u64) -> String {
    let tenths = bytes * 10 / (1024 * 1024);
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests;
