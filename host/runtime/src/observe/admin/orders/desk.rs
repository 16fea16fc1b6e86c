//! What the routes about one plugin share: it finds the plugin that a path names, and formats a
//! refusal. This module must not know any single order.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use vmhost_core::chain;

use crate::canary::order::Warned;
use crate::deploy::history::History;
use crate::deploy::history::error::HistoryError;
use crate::deploy::loader::Loader;
use crate::deploy::orders::OrderError;
use crate::deploy::slot::Slot;
use crate::journal::redact::Redact;
use crate::shadow::door::Shadowing;

/// Returns all plugins of the host. `None` if the host shuts down.
pub(crate) type Slots = dyn Fn() -> Option<Vec<Arc<Slot>>> + Send + Sync;

/// The state of the routes about one plugin.
#[derive(Clone)]
pub(crate) struct Desk {
    /// The plugins.
    pub(crate) slots: Arc<Slots>,
    /// The versions that ran before.
    pub(crate) history: Arc<History>,
    /// The maximum size of a component in bytes.
    pub(crate) largest_component: u64,
    /// Loads the versions that clients send.
    pub(crate) loader: Arc<Loader>,
    /// Hides sensitive values in documents about objects.
    pub(crate) redact: Arc<Redact>,
    /// Returns the present warnings about keys.
    pub(crate) warned: Warned,
    /// The shadows of the plugins.
    pub(crate) shadows: Arc<dyn Shadowing>,
}

/// Why a request about one plugin is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    /// The host shuts down.
    #[error("shutting down")]
    Stopping,
    /// No plugin has the name.
    #[error("no plugin is named {asked:?}; the plugins are: {known}")]
    NoPlugin { asked: String, known: String },
    /// The plugin has had no canary since the start of the host.
    #[error("no canary of {0} has run since vmhost started")]
    NoCanary(String),
    /// The component of a version is not kept. The digest may be any text of the client.
    #[error(
        "this vmhost does not keep the component of {0:?}: its history has lost it or is off (--history), or the version runs from source by an interpreter"
    )]
    NoComponent(String),
    /// The history cannot answer.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The order was not carried out.
    #[error(transparent)]
    Order(#[from] OrderError),
}

impl Desk {
    /// Returns the plugin of this name.
    pub(crate) fn slot(&self, name: &str) -> Result<Arc<Slot>, Refused> {
        let slots = (self.slots)().ok_or(Refused::Stopping)?;
        let found = slots.iter().find(|slot| slot.name == name).cloned();
        found.ok_or_else(|| {
            let mut known: Vec<&str> = slots.iter().map(|slot| slot.name.as_str()).collect();
            known.sort_unstable();
            Refused::NoPlugin {
                asked: name.to_owned(),
                known: known.join(", "),
            }
        })
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let status = match &self {
            Self::Stopping | Self::Order(OrderError::Dropped | OrderError::Busy) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::NoPlugin { .. } | Self::NoCanary(_) | Self::NoComponent(_) | Self::History(_) => {
                StatusCode::NOT_FOUND
            }
            Self::Order(OrderError::Refused(_) | OrderError::RolledBack(_)) => StatusCode::CONFLICT,
            Self::Order(OrderError::Unfit(_)) => StatusCode::UNPROCESSABLE_ENTITY,
        };
        (status, format!("{}\n", chain(&self))).into_response()
    }
}
