//! Machines as parts of a state that is told from others: by all that their `Debug` shows.

use std::fmt::{self, Debug, Write as _};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

/// Compared and hashed by what `Debug` shows of it, so that what is shipped needs neither. An owner token shows
/// nothing; here the id of its holding tells as much.
///
/// A step changes one machine of four: the others are shared with the state before, and not rendered anew.
#[derive(Clone)]
pub(super) struct Rendered<T> {
    value: Arc<T>,
    digest: OnceLock<u64>,
}

struct Hashed<'a, H>(&'a mut H);

// === impl Rendered ===

impl<T> Rendered<T> {
    pub(super) fn new(value: T) -> Self {
        Self { value: Arc::new(value), digest: OnceLock::new() }
    }
}

impl<T: Debug> Hash for Rendered<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let digest = self.digest.get_or_init(|| {
            let mut hasher = DefaultHasher::new();
            let written = write!(Hashed(&mut hasher), "{:?}", self.value);
            assert!(written.is_ok(), "a hasher takes everything");
            hasher.finish()
        });
        state.write_u64(*digest);
    }
}

impl<T: Debug> PartialEq for Rendered<T> {
    fn eq(&self, other: &Self) -> bool {
        format!("{:?}", self.value) == format!("{:?}", other.value)
    }
}

impl<T: Debug> Debug for Rendered<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(formatter)
    }
}

impl<T> Deref for Rendered<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Clone> DerefMut for Rendered<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.digest.take();
        Arc::make_mut(&mut self.value)
    }
}

// === impl Hashed ===

impl<H: Hasher> fmt::Write for Hashed<'_, H> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}
