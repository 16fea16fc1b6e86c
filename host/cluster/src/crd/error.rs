//! Why a definition could not be installed: one variant for each required action.

use std::time::Duration;

use crate::error::Error;

/// Why a CustomResourceDefinition is not installed, or not served. Each text names the definition
/// and the required action.
#[derive(Debug, thiserror::Error)]
pub enum CrdError {
    /// The plugin's definition is invalid. The author of the plugin must fix it.
    #[error("CustomResourceDefinition {name:?}: {detail}")]
    Invalid {
        /// The definition's name; empty if missing.
        name: String,
        /// What is wrong.
        detail: String,
    },
    /// A newer version of the plugin installed the definition.
    #[error(
        "CustomResourceDefinition {name} was installed by version {installed} of the plugin, which is newer than {wanted}: run that version, or remove the annotation {} to downgrade",
        super::PLUGIN_VERSION
    )]
    Newer {
        /// The definition.
        name: String,
        /// The version that installed it.
        installed: String,
        /// The version that this host runs.
        wanted: String,
    },
    /// Stored objects would become unreadable.
    #[error(
        "CustomResourceDefinition {name}: the plugin's definition drops version {versions}, which stored objects use (status.storedVersions): keep the version, or migrate the objects first"
    )]
    DropsStored {
        /// The definition.
        name: String,
        /// The versions, joined by commas.
        versions: String,
    },
    /// Another manager owns fields for which the plugin wants other values.
    #[error(
        "CustomResourceDefinition {name}: other managers own {fields}: apply the plugin's definition by hand with kubectl apply --server-side --force-conflicts, or keep theirs and run without --install-crds"
    )]
    Conflict {
        /// The definition.
        name: String,
        /// Each field with its manager.
        fields: String,
    },
    /// The definition is being deleted, with all objects of its kind.
    #[error("CustomResourceDefinition {0} is being deleted: wait until it is gone")]
    Terminating(String),
    /// The definition was deleted while vmhost waited for it.
    #[error("CustomResourceDefinition {0} was deleted while vmhost waited for it")]
    Gone(String),
    /// Another definition holds the names.
    #[error("CustomResourceDefinition {name}: names not accepted: {detail}")]
    NamesRefused {
        /// The definition.
        name: String,
        /// The condition's reason and message.
        detail: String,
    },
    /// The definition was not established in time.
    #[error("CustomResourceDefinition {name} is not established after {after:?}: {detail}")]
    NotEstablished {
        /// The definition.
        name: String,
        /// The timeout.
        after: Duration,
        /// The condition's text, or why the definition could not be read.
        detail: String,
    },
    /// The definition could not be read.
    #[error("cannot read CustomResourceDefinition {name}")]
    Read {
        /// The definition.
        name: String,
        /// The cause.
        source: Error,
    },
    /// The server refused the definition, or did not answer.
    #[error("cannot apply CustomResourceDefinition {name}")]
    Apply {
        /// The definition.
        name: String,
        /// The cause.
        source: Error,
    },
}

impl CrdError {
    /// Returns whether a retry may succeed without an action by anyone.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Read { source, .. } | Self::Apply { source, .. } => {
                source.code().is_none_or(|code| code == 429 || code >= 500)
            }
            Self::NotEstablished { .. } | Self::Terminating(_) => true,
            _ => false,
        }
    }

    /// Returns whether the definition itself is at fault, so that only another definition can be
    /// installed: the cause is not a missing permission, a field owner or another definition.
    pub fn is_of_the_definition(&self) -> bool {
        match self {
            Self::Invalid { .. } => true,
            Self::Apply { source, .. } => matches!(source.code(), Some(400 | 422)),
            _ => false,
        }
    }
}
