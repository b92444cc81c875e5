//! Images on every node of a running cluster.

use super::lock::Lock;
use super::state::State;
use crate::config::PAUSE_IMAGE;
use crate::error::{Error, Result};
use crate::images::{self, IMAGES, Image};
use crate::machine::Machine;
use crate::node::Node;
use crate::paths::Paths;
use crate::progress::Progress;

/// Builds the images of those short names (all, if none is given) and hands each node what it lacks.
/// Fails if a name is not known, if a program does not compile, or if no cluster runs.
pub fn load_images(paths: &Paths, names: &[String], progress: &Progress) -> Result<()> {
    let wanted = named_images(names)?;
    let archives = {
        let _lock = Lock::take(paths, "images", progress)?;
        images::build(paths.cache(), progress, wanted)?
    };
    let _lock = Lock::take(paths, "run", progress)?;
    let state = State::read(paths).ok_or_else(|| {
        Error::missing("no cluster runs that could take images", "Bring it up first: cluster up")
    })?;
    state.nodes().try_for_each(|node| Node::new(paths, node).import(&archives, progress))?;
    progress.step(&format!("{} image(s) are on {} node(s)", archives.len(), state.nodes));
    Ok(())
}

/// Hands a new node the pause image, without which no pod starts, and what the first node has.
pub(super) fn give_what_others_have(paths: &Paths, node: &Node, progress: &Progress) -> Result<()> {
    let first = Node::new(paths, Machine::Node(1));
    let wanted = |image: &Image| image.name == PAUSE_IMAGE || first.has(image.name);
    let mut archives = Vec::new();
    for image in IMAGES.iter().filter(|image| wanted(image)) {
        // As it was built last: a build may have to wait minutes for another's.
        match images::built_before(paths.cache(), image) {
            Some(archive) => archives.push(archive),
            None => archives.extend(images::build(paths.cache(), progress, |it| it.name == image.name)?),
        }
    }
    node.import(&archives, progress)
}

/// Says which images are meant by short names such as `sidecar`: all, if none is given.
/// Fails for a name that no image has.
pub fn named_images(names: &[String]) -> Result<impl Fn(&Image) -> bool> {
    if let Some(unknown) = names.iter().find(|name| !IMAGES.iter().any(|image| image.file() == name.as_str()))
    {
        let known: Vec<&str> = IMAGES.iter().map(Image::file).collect();
        return Err(Error::missing(
            format!("there is no image {unknown}"),
            format!("There are {}", known.join(", ")),
        ));
    }
    Ok(|image: &Image| names.is_empty() || names.iter().any(|name| name == image.file()))
}
