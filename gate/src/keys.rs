//! Which keys does a resource have? One file each, read anew while the gate runs, so that a key is changed
//! without a restart.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use fencedlease_wire::gate::{GateKey, GateKeyError, GuardedResource};

type Map = HashMap<GuardedResource, Arc<[GateKey]>>;

/// The keys of all resources.
pub struct Keys {
    folder: PathBuf,
    resources: Vec<GuardedResource>,
    current: RwLock<Map>,
}

/// Why keys cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// A file cannot be read.
    #[error("cannot read {path}, which has the key of {resource}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Whose key it is.
        resource: GuardedResource,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// A file has no key.
    #[error("{path} has no key of {resource}")]
    Key {
        /// The file.
        path: PathBuf,
        /// Whose key it is.
        resource: GuardedResource,
        /// Why not.
        #[source]
        source: GateKeyError,
    },
}

impl Keys {
    /// The keys of these resources, from files named `NAMESPACE_NAME` in this folder.
    pub fn load(folder: &Path, resources: Vec<GuardedResource>) -> Result<Self, KeysError> {
        let current = RwLock::new(read(folder, &resources)?);
        Ok(Self { folder: folder.to_owned(), resources, current })
    }

    /// Reads the files anew. Where one is wrong, all keys stay as they were.
    pub fn reload(&self) -> Result<(), KeysError> {
        let map = read(&self.folder, &self.resources)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = map;
        Ok(())
    }

    /// The keys of one resource; none if it is not guarded here.
    pub fn of(&self, resource: &GuardedResource) -> Option<Arc<[GateKey]>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).get(resource).cloned()
    }
}

fn read(folder: &Path, resources: &[GuardedResource]) -> Result<Map, KeysError> {
    let one = |resource: &GuardedResource| {
        // A name has no '_', so no two resources share a file.
        let path = folder.join(resource.as_str().replace('/', "_"));
        let text = fs::read_to_string(&path).map_err(|source| {
            let resource = resource.clone();
            KeysError::Read { path: path.clone(), resource, source }
        })?;
        let keys = GateKey::parse_file(&text).map_err(|source| KeysError::Key {
            path,
            resource: resource.clone(),
            source,
        })?;
        Ok((resource.clone(), keys.into()))
    };
    resources.iter().map(one).collect()
}
