//! What an operator gives to start a canary. Plain data.

use std::sync::Arc;

use crate::canary::steps::Steps;
use crate::deploy::loaded::Loaded;
use crate::journal::story::Warning;

/// Returns the warnings about keys that hold now.
pub(crate) type Warned = Arc<dyn Fn() -> Vec<Warning> + Send + Sync>;

/// A version to try.
pub(crate) struct Start {
    /// The version.
    pub(crate) loaded: Loaded,
    /// How its weight grows.
    pub(crate) steps: Steps,
    /// Tells what is wrong with keys.
    pub(crate) warned: Warned,
}
