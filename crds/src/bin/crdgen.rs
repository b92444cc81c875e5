//! Writes the CRD's YAML, and the chart's copy of it.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

fn main() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("crds lies in the repository")?;
    for (path, text) in fencedlease_crds::generate::files()? {
        let path = root.join(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        eprintln!("wrote {}", path.display());
    }
    Ok(())
}
