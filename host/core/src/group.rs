//! The API group of vmhost's own kinds. It is in one place, since whoever publishes vmhost under
//! another domain changes it here and in `host/package/chart/files/crds`.

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
