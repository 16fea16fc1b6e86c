//! What decides how much of a plugin's turns may be told. Plain data.

use crate::journal::redact::{PluginSecrets, Redact};

/// The rules of the host, and what is known of the plugin.
#[derive(Clone, Copy)]
pub(crate) struct Secrecy<'a> {
    /// Finds what is secret, and hides it.
    pub(crate) redact: &'a Redact,
    /// What the plugin may know besides what its turns saw. If it may have read or written objects
    /// with sensitive values, no random number of its turns is told: a secret of this turn or of
    /// another one may be made of it.
    pub(crate) plugin: PluginSecrets<'a>,
}
