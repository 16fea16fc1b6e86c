//! A controller for the tests of other modules.

use super::*;
use crate::observe::metrics::Metrics;

/// A controller of Pods.
pub(crate) fn controller() -> Arc<Controller> {
    controller_with(r#""primary":{"version":"v1","kind":"Pod"}"#)
}

/// A controller whose description has these fields, and a name.
pub(crate) fn controller_with(fields: &str) -> Arc<Controller> {
    let description = Description::parse(&format!(
        r#"{{"apiVersion":"vmhost/v1","name":"p","controllers":[{{"name":"c",{fields}}}]}}"#
    ))
    .unwrap();
    Controller::new(
        &description,
        &description.controllers[0],
        None,
        Metrics::new().unwrap().controller("p", "c"),
        &MapBuffer::new(1 << 20),
        &Arc::new(WakeLog::new(1 << 20)),
        None,
    )
}
