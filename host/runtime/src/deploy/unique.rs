//! What two plugins of a host must not share: their name, finalizers, and conversions.

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
    /// Both convert the objects of one CustomResourceDefinition, which can ask only one.
    #[error(
        "plugins {plugin} and {other} both convert {definition}, and the API server can ask only one: remove the conversion from one of them"
    )]
    Conversion {
        /// The new plugin.
        plugin: String,
        /// The running plugin.
        other: String,
        /// The definition's name.
        definition: String,
    },
}

/// Returns an error if two plugins conflict. Each needs its own name, and neither may remove
/// finalizers that the other has added.
pub(crate) fn check(one: &Description, other: &Description) -> Result<(), Shared> {
    if one.name == other.name {
        return Err(Shared::Name(one.name.clone()));
    }
    let mut converted = one.conversions.iter().map(|of| of.definition());
    let twice = converted.find(|of| other.conversions.iter().any(|b| b.definition() == *of));
    if let Some(definition) = twice {
        return Err(Shared::Conversion {
            plugin: one.name.clone(),
            other: other.name.clone(),
            definition,
        });
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

#[cfg(test)]
mod tests {
    use super::*;

    fn plugin(name: &str, plural: &str) -> Description {
        Description::parse(&format!(
            r#"{{"apiVersion":"vmhost/v1","name":"{name}","conversions":[{{"name":"c","group":"x.io","kind":"Vm","resource":"{plural}","versions":["v1","v2"]}}]}}"#
        ))
        .unwrap()
    }

    #[test]
    fn a_definition_asks_one_plugin() {
        let (one, other) = (plugin("one", "vms"), plugin("other", "vms"));
        let text = check(&one, &other).unwrap_err().to_string();
        assert!(
            text.contains("vms.x.io") && text.contains("other"),
            "{text}"
        );
        assert_eq!(check(&one, &plugin("other", "disks")), Ok(()));
    }
}
