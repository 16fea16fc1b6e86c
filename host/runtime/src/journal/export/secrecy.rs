//! What decides which values of a plugin's turns a case may contain. Plain data. It must not know
//! turns.

use crate::journal::redact::{PluginSecrets, Redact};

/// The rules of the host, and what the plugin may know.
#[derive(Clone, Copy)]
pub(crate) struct Secrecy<'a> {
    /// Finds sensitive values, and hides them.
    pub(crate) redact: &'a Redact,
    /// What the plugin may know besides what its turns saw. If it may have read or written objects
    /// with sensitive values, a case contains no random numbers: the guest may have made a secret
    /// from them, in this turn or in another one.
    pub(crate) plugin: PluginSecrets<'a>,
}
