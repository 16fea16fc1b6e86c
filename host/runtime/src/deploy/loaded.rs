//! The result of a load: plain data for the swap that follows. It must not know how a swap is done.

use std::sync::Arc;
use std::time::Duration;

use vmhost_engine::Plugin;

/// A loaded plugin. `P` is the plugin itself, or a reference to one that generations share.
pub struct Loaded<P = Plugin> {
    /// The plugin with its compiled code.
    pub plugin: P,
    /// The component that the code was compiled from. Empty if it is not known any more.
    pub bytes: Vec<u8>,
    /// The time from source to component, if the host built it.
    pub build: Option<Duration>,
    /// The compilation time.
    pub compile: Duration,
}

impl Loaded {
    /// Returns the same plugin in a form that several generations can share.
    pub(crate) fn shared(self) -> Loaded<Arc<Plugin>> {
        Loaded {
            plugin: Arc::new(self.plugin),
            bytes: self.bytes,
            build: self.build,
            compile: self.compile,
        }
    }
}
