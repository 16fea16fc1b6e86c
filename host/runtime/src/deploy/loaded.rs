//! The result of a load: plain data for the swap that follows.

use std::time::Duration;

use vmhost_engine::Plugin;

/// A loaded plugin.
pub struct Loaded {
    /// The plugin with its compiled code.
    pub plugin: Plugin,
    /// The component that the code was compiled from.
    pub bytes: Vec<u8>,
    /// The time from source to component, if the host built it.
    pub build: Option<Duration>,
    /// The compilation time.
    pub compile: Duration,
}
