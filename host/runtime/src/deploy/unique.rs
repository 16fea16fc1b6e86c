//! What no two plugins of a host may share.

use vmhost_core::{ControllerDescription, Description, Gvk};

/// What two plugins would share.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Shared {
    /// The name.
    #[error("they are both named {0:?}: the name owns fields in the cluster, so it must be unique")]
    Name(String),
    /// A finalizer on objects of one kind.
    #[error(
        "plugin {plugin} puts {finalizer} on the same kind as plugin {other}: the first of them to finish would take it from the other"
    )]
    Finalizer {
        /// The plugin that would do so.
        plugin: String,
        /// The plugin that does.
        other: String,
        /// The finalizer.
        finalizer: String,
    },
}

/// May two plugins run beside each other? Each has a name of its own, and neither takes finalizers
/// off that the other one has put on.
pub(crate) fn check(one: &Description, other: &Description) -> Result<(), Shared> {
    if one.name == other.name {
        return Err(Shared::Name(one.name.clone()));
    }
    let same = |a: &ControllerDescription, b: &ControllerDescription| {
        a.finalizer == b.finalizer && is_same_kind(&a.kind(), &b.kind())
    };
    let shared = one
        .controllers
        .iter()
        .filter(|a| other.controllers.iter().any(|b| same(a, b)))
        .find_map(|a| a.finalizer.clone());
    match shared {
        None => Ok(()),
        Some(finalizer) => Err(Shared::Finalizer {
            plugin: one.name.clone(),
            other: other.name.clone(),
            finalizer,
        }),
    }
}

/// Another version of a kind shows the same objects.
fn is_same_kind(a: &Gvk, b: &Gvk) -> bool {
    a.group == b.group && a.kind == b.kind
}
