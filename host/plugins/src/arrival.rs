//! Whether the plugins that were there when the host started have been looked at. It must not know
//! what came of that: a plugin that is refused keeps no host out of service.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the first looks that are still to come.
pub(crate) struct Arrival(Arc<AtomicUsize>);

/// One first look; it is over when this is dropped.
pub(crate) struct FirstLook(Arc<AtomicUsize>);

impl Arrival {
    /// Begins with one look: that at the list of all plugins.
    pub(crate) fn begin() -> (Self, FirstLook) {
        let left = Arc::new(AtomicUsize::new(1));
        (Self(left.clone()), FirstLook(left))
    }

    /// Returns why `/readyz` has to wait.
    pub(crate) fn ready(&self) -> Result<(), String> {
        match self.0.load(Ordering::SeqCst) {
            0 => Ok(()),
            _ => Err("the Plugin objects have not all been looked at yet".to_owned()),
        }
    }
}

impl FirstLook {
    /// Another look that is part of this one's.
    pub(crate) fn another(&self) -> Self {
        self.0.fetch_add(1, Ordering::SeqCst);
        Self(self.0.clone())
    }
}

impl Drop for FirstLook {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_the_first_list_are_waited_for() {
        let (arrival, list) = Arrival::begin();
        assert!(arrival.ready().is_err());
        let plugin = list.another();
        drop(list);
        assert!(arrival.ready().is_err());
        drop(plugin);
        assert!(arrival.ready().is_ok());
    }
}
