//! The API group of vmhost's own kinds: the only place in the code that names their domain. It must
//! not know what the kinds are for. To publish vmhost under another domain, change it here and in
//! the manifests of `host/package`.

use crate::key::Gvk;

/// The API group of `Plugin`, `PluginRevision` and `PluginPolicy`, and the prefix of labels,
/// annotations and finalizers of vmhost's own.
pub const GROUP: &str = "vmhost.dev";

/// The version of that group that this host reads and writes.
pub const VERSION: &str = "v1alpha1";

/// The kind of this name in vmhost's own group.
pub fn own(kind: &str) -> Gvk {
    Gvk::new(GROUP, VERSION, kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kinds_are_in_one_group() {
        assert_eq!(own("Plugin").to_string(), "Plugin.v1alpha1.vmhost.dev");
    }
}
