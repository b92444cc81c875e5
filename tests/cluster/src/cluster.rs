//! A cluster of this host's own: from nothing to Ready, from whatever is left to nothing, and what it is now.

mod down;
mod files;
mod images;
mod leftovers;
mod lock;
mod start;
mod state;
mod status;
mod up;

pub use down::down;
pub use images::{load_images, named_images};
pub use leftovers::{Leftovers, leftovers};
pub use lock::Lock;
pub use state::State;
pub use status::{Health, health, status};
pub use up::up;
