//! Why a definition could not be installed: one variant for each thing that somebody else has to do.

use std::time::Duration;

use crate::write::WriteError;

/// Why a CustomResourceDefinition is not installed, or not served. Each text names it and what to do.
#[derive(Debug, thiserror::Error)]
pub enum CrdError {
    /// What the plugin carries is no definition. The plugin's author has to act.
    #[error("CustomResourceDefinition {name:?}: {detail}")]
    Invalid {
        /// As far as there is one.
        name: String,
        /// What is wrong.
        detail: String,
    },
    /// A newer plugin has installed it.
    #[error(
        "CustomResourceDefinition {name} was installed by version {installed} of the plugin, which is newer than {wanted}: run that one, or remove the annotation {} to go back",
        super::PLUGIN_VERSION
    )]
    Newer {
        /// The definition.
        name: String,
        /// The version that installed it.
        installed: String,
        /// The version that would.
        wanted: String,
    },
    /// Objects that are stored could not be read any more.
    #[error(
        "CustomResourceDefinition {name}: the plugin's definition has no version {versions}, in which objects were stored (status.storedVersions): keep the version, or migrate the objects first"
    )]
    DropsStored {
        /// The definition.
        name: String,
        /// The versions, joined by commas.
        versions: String,
    },
    /// Somebody else owns fields that the plugin wants otherwise.
    #[error(
        "CustomResourceDefinition {name}: fields belong to others: {fields}: apply the plugin's definition by hand with --server-side --force-conflicts, or leave it to them and run without --install-crds"
    )]
    Conflict {
        /// The definition.
        name: String,
        /// Each field with its manager.
        fields: String,
    },
    /// It is being deleted, with all objects of its kind.
    #[error("CustomResourceDefinition {0} is being deleted: wait until it is gone")]
    Terminating(String),
    /// It was there, and is no more.
    #[error("CustomResourceDefinition {0} is gone: somebody has deleted it")]
    Gone(String),
    /// Another definition has its names.
    #[error("CustomResourceDefinition {name}: its names are not accepted: {detail}")]
    NamesRefused {
        /// The definition.
        name: String,
        /// The condition's reason and message.
        detail: String,
    },
    /// It takes too long.
    #[error("CustomResourceDefinition {name} is not established after {after:?}: {detail}")]
    NotEstablished {
        /// The definition.
        name: String,
        /// How long was waited.
        after: Duration,
        /// What its condition says, or why it could not be looked at.
        detail: String,
    },
    /// It could not be looked at.
    #[error("CustomResourceDefinition {name}: cannot read it")]
    Read {
        /// The definition.
        name: String,
        /// Why.
        source: WriteError,
    },
    /// The server refused it, or did not answer.
    #[error("CustomResourceDefinition {name}: cannot apply it")]
    Apply {
        /// The definition.
        name: String,
        /// Why.
        source: WriteError,
    },
}

impl CrdError {
    /// Is another try worth it, with nobody doing anything?
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Read { source, .. } | Self::Apply { source, .. } => match source {
                WriteError::Status { code, .. } => *code == 429 || *code >= 500,
                _ => true,
            },
            Self::NotEstablished { .. } | Self::Terminating(_) => true,
            _ => false,
        }
    }

    /// Returns whether only another definition can be installed, whatever becomes of the cluster:
    /// no right, no owner of a field and no other definition stands in the way of this one.
    pub fn is_of_the_definition(&self) -> bool {
        match self {
            Self::Invalid { .. } => true,
            Self::Apply {
                source: WriteError::Status { code, .. },
                ..
            } => matches!(code, 400 | 422),
            _ => false,
        }
    }
}
