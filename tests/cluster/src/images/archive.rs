//! An image as one archive: `manifest.json`, the configuration, and one layer. The same content gives the same
//! bytes, so that an image's id changes only with what is in it.

use std::io::{self, Write};

use serde_json::json;
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

/// A file, folder or link in an image.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// Where, without a leading slash.
    pub path: String,
    /// Its permission bits.
    pub mode: u32,
    /// What it is.
    pub kind: Kind,
}

/// What an entry is. All belong to root.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Kind {
    /// A folder.
    Folder,
    /// A file with this content.
    File(Vec<u8>),
    /// A symbolic link to this path.
    Link(String),
}

/// How a container of the image is run when its pod says nothing else.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Settings {
    /// `uid:gid`; empty for root.
    pub user: &'static str,
    /// The first words of its command, which a pod's `command` replaces.
    pub entrypoint: &'static [&'static str],
    /// The words that follow, which a pod's `args` replace.
    pub command: &'static [&'static str],
    /// Where it starts.
    pub folder: &'static str,
}

/// By which an image is known.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Digests {
    /// The image's id: the digest of its configuration, `sha256:…`.
    pub image: String,
    /// The digest of its layer, `sha256:…`.
    pub layer: String,
}

/// Writes an archive that `ctr images import`, `docker load`, `kind load` and `k3d image import` take.
pub fn write_archive(
    out: impl Write,
    name: &str,
    entries: &[Entry],
    settings: &Settings,
) -> io::Result<Digests> {
    let layer = layer(entries)?;
    let layer_digest = hex(&layer);
    let config = config(&layer_digest, settings).to_string().into_bytes();
    let config_digest = hex(&config);
    let layer_path = format!("{layer_digest}/layer.tar");
    let config_path = format!("{config_digest}.json");
    let manifest = json!([{"Config": config_path, "RepoTags": [name], "Layers": [layer_path]}]);

    let mut archive = Builder::new(out);
    append(&mut archive, &config_path, 0o644, &config)?;
    append(&mut archive, &layer_path, 0o644, &layer)?;
    append(&mut archive, "manifest.json", 0o644, manifest.to_string().as_bytes())?;
    archive.into_inner()?.flush()?;
    Ok(Digests { image: format!("sha256:{config_digest}"), layer: format!("sha256:{layer_digest}") })
}

fn config(layer: &str, settings: &Settings) -> serde_json::Value {
    let never = "1970-01-01T00:00:00Z";
    json!({
        "architecture": architecture(std::env::consts::ARCH),
        "os": "linux",
        "created": never,
        "config": {
            "User": settings.user,
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
            "Entrypoint": settings.entrypoint,
            "Cmd": settings.command,
            "WorkingDir": settings.folder,
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer}")]},
        "history": [{"created": never, "created_by": "cluster images"}],
    })
}

/// What container images call an architecture of Rust.
fn architecture(name: &str) -> &str {
    match name {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn layer(entries: &[Entry]) -> io::Result<Vec<u8>> {
    let mut layer = Builder::new(Vec::new());
    for entry in entries {
        match &entry.kind {
            Kind::Folder => {
                let mut header = header(EntryType::Directory, entry.mode, 0);
                layer.append_data(&mut header, format!("{}/", entry.path), io::empty())?;
            }
            Kind::File(content) => append(&mut layer, &entry.path, entry.mode, content)?,
            Kind::Link(to) => {
                let mut header = header(EntryType::Symlink, entry.mode, 0);
                layer.append_link(&mut header, &entry.path, to)?;
            }
        }
    }
    layer.into_inner()
}

fn append<W: Write>(archive: &mut Builder<W>, path: &str, mode: u32, content: &[u8]) -> io::Result<()> {
    let mut header = header(EntryType::Regular, mode, content.len() as u64);
    archive.append_data(&mut header, path, content)
}

fn header(kind: EntryType, mode: u32, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}

fn hex(content: &[u8]) -> String {
    format!("{:x}", Sha256::digest(content))
}

#[cfg(test)]
mod tests;
