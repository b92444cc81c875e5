//! Which packages do Python's programs in `guards/` need, and where do tests find them?

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::command::{command, hex, run};
use crate::error::{Error, Result};
use crate::paths::Paths;
use crate::progress::Progress;

/// Every package with its version, as users install them.
const LIST: &str = "../../guards/requirements.txt";

/// The folder with the packages, for `PYTHONPATH`. Fails if they have not been installed for the Python in PATH.
pub fn python_packages(paths: &Paths) -> Result<PathBuf> {
    let folder = folder(paths)?;
    if folder.exists() {
        return Ok(folder);
    }
    Err(Error::missing(
        format!("{} is not there, with the packages of guards/requirements.txt", folder.display()),
        "Run: make programs",
    ))
}

/// Installs the packages into a folder of their own, if they are not there.
pub fn install_python(paths: &Paths, progress: &Progress) -> Result<()> {
    let folder = folder(paths)?;
    if folder.exists() {
        return Ok(());
    }
    let all = paths.python();
    if all.exists() {
        // Those of another list.
        fs::remove_dir_all(&all).map_err(Error::file("remove", &all))?;
    }
    let unfinished = all.join("unfinished");
    fs::create_dir_all(&unfinished).map_err(Error::file("make", &unfinished))?;
    let list = list().display().to_string();
    // Only what is built already, so that no compiler or header is asked for.
    let words = ["python3", "-m", "pip", "install", "--quiet", "--only-binary", ":all:", "--no-deps"];
    progress.during("Installing Python's packages for the tests (about 30 s)", || {
        let mut pip = command(&words);
        pip.args(["--root-user-action", "ignore", "--requirement", &list]);
        run(pip.arg("--target").arg(&unfinished))
    })?;
    fs::rename(&unfinished, &folder).map_err(Error::file("keep", &folder))
}

/// Another list and another Python have another folder: some packages are compiled for one version.
fn folder(paths: &Paths) -> Result<PathBuf> {
    let list = list();
    let mut digest = Sha256::new();
    digest.update(fs::read(&list).map_err(Error::file("read", &list))?);
    digest.update(run(&mut command(&["python3", "--version"]))?);
    Ok(paths.python().join(hex(&digest.finalize()[..6])))
}

fn list() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(LIST)
}
