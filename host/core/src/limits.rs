//! What one call of a policy may use.

use std::time::Duration;

/// Limits of a plugin's instances and calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long one call may take, wall clock.
    pub call_timeout: Duration,
    /// Linear memory of one instance, in bytes, all memories together.
    pub memory: usize,
    /// Calls after which an instance is dropped; 1 is full isolation.
    pub reuse: u32,
    /// What one call may copy out of the guest into the host, in bytes (outcome, log lines, read requests).
    pub returned: usize,
    /// The largest answer to one read of the cache, in bytes.
    pub read: usize,
    /// The largest component that is compiled, in bytes. Compiling cannot be interrupted.
    pub component: u64,
}

impl Default for Limits {
    /// 10 s a call (as Yoke's and Metacontroller's), 64 MiB an instance, 1,000 calls an instance, 8 MiB out, 16 MiB in, components to 64 MiB.
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
