//! Where does everything of the harness lie?

use std::env;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::machine::Machine;

/// Folders that each simulated machine covers with one of its own.
pub const COVERED: [&str; 3] = ["/run", "/var/lib", "/var/log"];

/// The harness's folders, all below one cache folder.
#[derive(Debug, Clone)]
pub struct Paths {
    cache: PathBuf,
}

impl Paths {
    /// The folders below `$FENCEDLEASE_CACHE`, else `~/.cache/fencedlease`.
    /// Fails if neither that variable nor `HOME` is set, or if the folder is one that machines cover.
    pub fn from_env() -> Result<Self> {
        let cache = match (env::var_os("FENCEDLEASE_CACHE"), env::var_os("HOME")) {
            (Some(cache), _) if !cache.is_empty() => PathBuf::from(cache),
            (_, Some(home)) => Path::new(&home).join(".cache/fencedlease"),
            (_, None) => {
                return Err(Error::missing(
                    "neither FENCEDLEASE_CACHE nor HOME is set",
                    "Set FENCEDLEASE_CACHE to a folder with 12 GiB of room",
                ));
            }
        };
        let cache = std::path::absolute(&cache).map_err(Error::file("find", &cache))?;
        Self::new(cache)
    }

    /// The folders below `cache`, an absolute path.
    pub fn new(cache: PathBuf) -> Result<Self> {
        if let Some(covered) = COVERED.iter().find(|covered| cache.starts_with(covered)) {
            return Err(Error::missing(
                format!(
                    "FENCEDLEASE_CACHE is {}, below {covered}, which each simulated machine covers",
                    cache.display()
                ),
                "Set it to a folder elsewhere, for example below your home",
            ));
        }
        Ok(Self { cache })
    }

    /// The folder that holds all others.
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    /// Built programs, one for each version and way of building.
    pub fn tools(&self) -> PathBuf {
        self.cache.join("tools")
    }

    /// Links to the programs in use, under their plain names: a folder for `PATH`.
    pub fn bin(&self) -> PathBuf {
        self.cache.join("bin")
    }

    /// Python's packages for tests, one folder for each list of them.
    pub fn python(&self) -> PathBuf {
        self.cache.join("python")
    }

    /// Image archives.
    pub fn images(&self) -> PathBuf {
        self.cache.join("images")
    }

    /// Everything of the running cluster; there only while it runs.
    pub fn run(&self) -> PathBuf {
        self.cache.join("run")
    }

    /// A kubeconfig with all rights on the running cluster.
    pub fn kubeconfig(&self) -> PathBuf {
        self.run().join("kubeconfig")
    }

    /// One log for each component of the running cluster.
    pub fn logs(&self) -> PathBuf {
        self.run().join("logs")
    }

    /// Keys and certificates of the running cluster.
    pub fn pki(&self) -> PathBuf {
        self.run().join("pki")
    }

    /// Configurations and state of one simulated machine.
    pub fn machine(&self, machine: Machine) -> PathBuf {
        self.run().join(machine.name())
    }

    /// The socket on which the first process of a machine takes requests.
    pub fn socket(&self, machine: Machine) -> PathBuf {
        self.machine(machine).join("init.sock")
    }

    /// The log of a component.
    pub fn log(&self, machine: Machine, component: &str) -> PathBuf {
        self.logs().join(format!("{}-{component}.log", machine.name()))
    }
}
