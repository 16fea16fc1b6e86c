//! The order to start a canary. Plain data. It must not know how an order is carried out.

use std::sync::Arc;

use crate::canary::rules::Tuning;
use crate::canary::steps::Steps;
use crate::config::terms::Terms;
use crate::deploy::loaded::Loaded;
use crate::journal::story::Warning;

/// Returns the present warnings about keys.
pub(crate) type Warned = Arc<dyn Fn() -> Vec<Warning> + Send + Sync>;

/// An order to try a version.
pub(crate) struct Start {
    /// The version.
    pub(crate) loaded: Loaded,
    /// The steps in which the candidate's share grows.
    pub(crate) steps: Steps,
    /// When it is aborted, and which objects it begins with.
    pub(crate) tuning: Tuning,
    /// Returns the present warnings about keys.
    pub(crate) warned: Warned,
    /// The terms that the candidate runs under.
    pub(crate) terms: Arc<Terms>,
}
