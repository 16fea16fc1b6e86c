//! The questions and orders about shadows that the admin address passes on. This module must not
//! know how a shadow is run.

use std::time::Duration;

use bytes::Bytes;
use vmhost_core::ObjectName;

use crate::deploy::orders::OrderError;
use crate::shadow::report::{ShadowReport, ShadowTurn};

/// The shadows of a host. No function waits for the thread of a shadow.
pub(crate) trait Shadowing: Send + Sync {
    /// Starts the shadow of a plugin with this component. It loads in the background.
    fn start(
        &self,
        plugin: &str,
        component: Bytes,
        lasts: Option<Duration>,
    ) -> Result<ShadowReport, OrderError>;

    /// Ends the shadow of a plugin.
    fn stop(&self, plugin: &str) -> Result<ShadowReport, OrderError>;

    /// Returns the report on the plugin's present or last shadow. `None` if it had none.
    fn report(&self, plugin: &str) -> Option<ShadowReport>;

    /// The last turns of a key in which the candidate did something else. `None` if the controller
    /// of this label had no shadow.
    fn turns(&self, controller: &str, key: &ObjectName) -> Option<Vec<ShadowTurn>>;
}
