//! Resource limits of a plugin. This module must not know how a limit is enforced.

use std::time::Duration;

/// Resource limits of a plugin's instances and calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum wall-clock time of one call.
    pub call_timeout: Duration,
    /// Maximum linear memory of one instance in bytes, all memories together.
    pub memory: usize,
    /// Calls after which an instance is dropped; 1 gives full isolation.
    pub reuse: u32,
    /// Maximum number of bytes that one call may copy from the guest to the host (outcome, log
    /// lines, read requests).
    pub returned: usize,
    /// Maximum size of the answer to one cache read, in bytes.
    pub read: usize,
    /// Maximum size of a component in bytes. Compilation cannot be interrupted.
    pub component: u64,
}

impl Default for Limits {
    /// 10 s per call (as in Yoke and Metacontroller), 64 MiB per instance, 1,000 calls per
    /// instance, 8 MiB returned, 16 MiB per read, components up to 64 MiB.
    fn default() -> Self {
        Self {
            call_timeout: Duration::from_secs(10),
            memory: 64 << 20,
            reuse: 1000,
            returned: 8 << 20,
            read: 16 << 20,
            component: 64 << 20,
        }
    }
}
