//! What a load makes: plain data for the swap that follows.

use std::time::Duration;

use vmhost_engine::Plugin;

/// A plugin that was loaded.
pub struct Loaded {
    /// The code.
    pub plugin: Plugin,
    /// What the code was made of.
    pub bytes: Vec<u8>,
    /// From source to bytes, if the host built it.
    pub build: Option<Duration>,
    /// From bytes to code.
    pub compile: Duration,
}
