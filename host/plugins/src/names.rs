//! The names of what this crate writes into the cluster. It must not know what is written.

use vmhost_cluster::Resource;
use vmhost_core::group::{GROUP, own};

/// The field manager of the leader's status.
pub(crate) const MANAGER: &str = "vmhost/plugins";

/// The finalizer of a `Plugin`, which holds its deletion until its own finalizers are gone.
pub(crate) fn finalizer() -> String {
    format!("{GROUP}/plugin")
}

/// The annotation that lets a `Plugin` go although objects carry its finalizers.
pub(crate) fn abandon() -> String {
    format!("{GROUP}/abandon")
}

/// The label of a revision with the name of its `Plugin`.
pub(crate) fn label() -> String {
    format!("{GROUP}/plugin")
}

/// The resource of `Plugin`.
pub(crate) fn plugins() -> Resource {
    resource("Plugin", "plugins")
}

/// The resource of `PluginRevision`.
pub(crate) fn revisions() -> Resource {
    resource("PluginRevision", "pluginrevisions")
}

fn resource(kind: &str, plural: &str) -> Resource {
    Resource {
        kind: own(kind),
        plural: plural.to_owned(),
        namespaced: true,
        subresources: vec!["status".to_owned()],
    }
}
