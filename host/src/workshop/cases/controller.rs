//! Finds the controller of a plugin that a case calls. This module must not know what else a case
//! holds.

use anyhow::{Result, bail};
use vmhost_core::{ControllerDescription, Description};

use super::read::Case;

/// Returns the controller that the case calls.
pub(crate) fn controller<'d>(
    case: &Case,
    description: &'d Description,
) -> Result<&'d ControllerDescription> {
    let request = case.folder.join("request.json");
    let names: Vec<&str> = description
        .controllers
        .iter()
        .map(|controller| controller.name.as_str())
        .collect();
    let names = names.join(", ");
    if let Some(name) = &case.request.controller {
        return match description.controller(name) {
            Some(controller) => Ok(controller),
            None => bail!(
                "{}: controller: the plugin has no controller {name:?}; available: {names}",
                request.display()
            ),
        };
    }
    let kind = case.object.as_ref().map(|given| &given.key.kind);
    let fits = |of: &&ControllerDescription| kind.is_none_or(|kind| of.kind() == *kind);
    let mut fitting = description.controllers.iter().filter(fits);
    match (fitting.next(), fitting.next(), &case.object) {
        (Some(controller), None, _) => Ok(controller),
        (None, _, Some(given)) => bail!(
            "{}: the plugin has no controller for {}; available: {names}",
            given.place,
            given.key.kind
        ),
        _ => bail!(
            "{}: controller is missing; available: {names}",
            request.display()
        ),
    }
}
