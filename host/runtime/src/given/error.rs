//! Why a plugin that was handed over does not run. It must not know what is done about it.

use vmhost_core::chain_line;

use crate::deploy::error::ReloadError;
use crate::deploy::orders::OrderError;

/// Why a plugin that was handed over does not run.
#[derive(Debug, thiserror::Error)]
pub enum GivenError {
    /// No plugin has the name.
    #[error("no plugin is named {0:?}")]
    NoPlugin(String),
    /// The version was rolled back. The text says how to lift that.
    #[error("{0}")]
    RolledBack(String),
    /// The plugin's present state does not allow it. It may later.
    #[error("{0}")]
    Refused(String),
    /// The version does not fit this host or this cluster.
    #[error("{about}")]
    Unfit {
        /// Why.
        about: String,
        /// Whether the same version may fit later.
        may_pass: bool,
    },
}

impl From<OrderError> for GivenError {
    fn from(error: OrderError) -> Self {
        match error {
            OrderError::RolledBack(why) => Self::RolledBack(why),
            OrderError::Unfit(source) => Self::Unfit {
                about: chain_line(&*source),
                may_pass: source
                    .downcast_ref::<ReloadError>()
                    .is_some_and(|error| error.longest_pause().is_some()),
            },
            other => Self::Refused(other.to_string()),
        }
    }
}
