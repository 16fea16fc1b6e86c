//! The revisions of a plugin that exist: what they were, and how their `spec` was. Plain data, out
//! of the store. It must not know how a revision is made.

use serde::Deserialize;
use serde_json::{Map, Value};
use vmhost_core::ObjectName;

use crate::listed::listed;
use crate::object::Plugin;
use crate::shared::Shared;

/// A revision that exists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Past {
    pub(crate) number: i64,
    #[serde(skip)]
    pub(crate) name: String,
    /// The origin of the component.
    pub(crate) source: String,
    /// The digest of the origin.
    pub(crate) digest: String,
    /// `sha256:` and the digest of the component.
    component: String,
    template: String,
}

/// A `PluginRevision`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Object {
    metadata: Named,
    spec: Past,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Named {
    name: String,
    owner_references: Vec<Owner>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Owner {
    uid: String,
}

impl Past {
    /// The digest of the component in hex.
    pub(crate) fn component(&self) -> &str {
        let component = self.component.as_str();
        component.strip_prefix("sha256:").unwrap_or(component)
    }

    /// What of the `spec` made it up. `None` if that was too long.
    pub(crate) fn template(&self) -> Option<Map<String, Value>> {
        serde_json::from_str(&self.template).ok()
    }

    /// Reads a revision of the plugin with this uid. `None` if it is of another one.
    fn parse(text: &str, uid: &str) -> Option<Self> {
        let object: Object = serde_json::from_str(text).ok()?;
        let mut owners = object.metadata.owner_references.iter();
        owners.any(|owner| owner.uid == uid).then_some(Self {
            name: object.metadata.name,
            ..object.spec
        })
    }
}

/// Returns whether the store shows a revision.
pub(crate) fn exists(shared: &Shared, plugin: &Plugin, name: &str) -> bool {
    let name = ObjectName::new(Some(&plugin.metadata.namespace), name);
    shared.revisions.store().get(name.as_str()).is_some()
}

/// The revisions of a plugin, the oldest first. An error while they are not known.
pub(crate) async fn all(shared: &Shared, plugin: &Plugin) -> Result<Vec<Past>, String> {
    let revisions = &shared.revisions;
    let known = listed(revisions).await;
    known.map_err(|state| format!("PluginRevision objects are not known yet: {state}"))?;
    let metadata = &plugin.metadata;
    let mut objects = revisions.store().snapshots();
    objects.retain(|object| object.name.namespace() == Some(metadata.namespace.as_str()));
    let mut all: Vec<Past> = objects
        .iter()
        .filter_map(|object| Past::parse(&object.text, &metadata.uid))
        .collect();
    all.sort_by(|a, b| (a.number, &a.name).cmp(&(b.number, &b.name)));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_read_again() {
        let text = r#"{"metadata":{"name":"vm-1","ownerReferences":[{"uid":"u"}]},
            "spec":{"plugin":"vm","number":3,"source":"path","digest":"sha256:d",
                "component":"sha256:c","template":"{\"path\":\"vm.wasm\"}"}}"#;
        let past = Past::parse(text, "u").unwrap();
        assert_eq!((past.number, past.name.as_str()), (3, "vm-1"));
        assert_eq!((past.component(), past.digest.as_str()), ("c", "sha256:d"));
        assert_eq!(past.template().unwrap()["path"], "vm.wasm");
        assert_eq!(Past::parse(text, "another"), None);
    }
}
