//! Which images there are, and what is in them. To add one, add it here.

use super::archive::Settings;
use crate::config::PAUSE_IMAGE;

/// One image.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Image {
    /// Its name with tag.
    pub name: &'static str,
    /// What is in it.
    pub parts: &'static [Part],
    /// Whether it runs as user 65532 rather than as root.
    pub nonroot: bool,
    /// The first words of its command.
    pub entrypoint: &'static [&'static str],
    /// The words that follow.
    pub command: &'static [&'static str],
    /// Where it starts.
    pub folder: &'static str,
}

/// Something in an image.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Part {
    /// A program of this workspace, linked statically, in the root folder.
    Own {
        /// The crate.
        package: &'static str,
        /// The program.
        binary: &'static str,
    },
    /// A program of this host at the same path, with the libraries that it loads.
    Host {
        /// Where it lies, here and there.
        path: &'static str,
        /// The Debian package that brings it.
        package: &'static str,
    },
    /// busybox with a link for each of its commands, users, and the folders that programs expect.
    Userland,
    /// PostgreSQL's server and client.
    Postgresql,
    /// An empty folder that everybody may write to.
    Scratch(&'static str),
}

const NONROOT: &str = "65532:65532";

const fn scratch_image(
    name: &'static str,
    parts: &'static [Part],
    entrypoint: &'static [&'static str],
    command: &'static [&'static str],
) -> Image {
    Image { name, parts, nonroot: true, entrypoint, command, folder: "/" }
}

const fn own(package: &'static str, binary: &'static str) -> Part {
    Part::Own { package, binary }
}

const fn host(path: &'static str, package: &'static str) -> Part {
    Part::Host { path, package }
}

/// All images.
pub const IMAGES: [Image; 9] = [
    scratch_image(PAUSE_IMAGE, &[own("fencedlease-faults", "pause")], &["/pause"], &[]),
    Image {
        name: "fencedlease.dev/busybox:dev",
        parts: &[Part::Userland, host("/usr/bin/curl", "curl"), Part::Scratch("tmp")],
        nonroot: false,
        entrypoint: &[],
        command: &["sh"],
        folder: "/",
    },
    scratch_image(
        "fencedlease.dev/sidecar:dev",
        &[own("fencedlease-sidecar", "fencedlease")],
        &["/fencedlease"],
        &[],
    ),
    scratch_image(
        "fencedlease.dev/operator:dev",
        &[own("fencedlease-operator", "fencedlease-operator")],
        &["/fencedlease-operator"],
        &[],
    ),
    scratch_image(
        "fencedlease.dev/gate:dev",
        &[own("fencedlease-gate", "fencedlease-gate")],
        &["/fencedlease-gate"],
        &[],
    ),
    scratch_image(
        "fencedlease.dev/faultproxy:dev",
        &[own("fencedlease-faults", "fault-proxy")],
        &["/fault-proxy"],
        &["run"],
    ),
    Image {
        name: "fencedlease.dev/redis:dev",
        parts: &[
            Part::Userland,
            host("/usr/bin/redis-server", "redis-server"),
            host("/usr/bin/redis-cli", "redis-tools"),
            Part::Scratch("data"),
            Part::Scratch("tmp"),
        ],
        nonroot: true,
        entrypoint: &[],
        command: &["redis-server"],
        folder: "/data",
    },
    Image {
        name: "fencedlease.dev/nginx:dev",
        parts: &[
            Part::Userland,
            host("/usr/sbin/nginx", "nginx-light"),
            Part::Scratch("data"),
            Part::Scratch("tmp"),
        ],
        nonroot: true,
        entrypoint: &[],
        command: &["nginx"],
        folder: "/data",
    },
    Image {
        name: "fencedlease.dev/postgresql:dev",
        parts: &[
            Part::Userland,
            Part::Postgresql,
            host("/usr/bin/curl", "curl"),
            Part::Scratch("data"),
            Part::Scratch("tmp"),
        ],
        nonroot: true,
        entrypoint: &[],
        command: &["postgres"],
        folder: "/data",
    },
];

// === impl Image ===

impl Image {
    /// The name of its archive on disk, without ending.
    pub fn file(&self) -> &'static str {
        let last = self.name.rsplit_once('/').map_or(self.name, |(_, last)| last);
        last.split_once(':').map_or(last, |(file, _)| file)
    }

    /// How its containers run.
    pub fn settings(&self) -> Settings {
        Settings {
            user: if self.nonroot { NONROOT } else { "" },
            entrypoint: self.entrypoint,
            command: self.command,
            folder: self.folder,
        }
    }
}

#[cfg(test)]
mod tests;
