//! What two plugins of a host must not share: their name, and finalizers.

use vmhost_core::{ControllerDescription, Description, Gvk};

/// A conflict between two plugins.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Shared {
    /// Both have the same name.
    #[error(
        "two plugins are both named {0:?}; the name must be unique because it owns fields in the cluster"
    )]
    Name(String),
    /// Both add the same finalizer to objects of one kind.
    #[error(
        "plugins {plugin} and {other} add the finalizer {finalizer} to the same kind: the first to finish would remove it before the other has cleaned up"
    )]
    Finalizer {
        /// The new plugin.
        plugin: String,
        /// The running plugin.
        other: String,
        /// The finalizer.
        finalizer: String,
    },
}

/// Returns an error if two plugins conflict. Each needs its own name, and neither may remove
/// finalizers that the other has added.
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

/// Compares group and kind only: every version of a kind shows the same objects.
fn is_same_kind(a: &Gvk, b: &Gvk) -> bool {
    a.group == b.group && a.kind == b.kind
}
