//! Names: of a kind, of an object within its kind, of an object in the cluster.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::tailed::Tailed;

/// Group, version and kind. The core group is the empty string.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gvk {
    /// API group without the version; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// API version within the group.
    pub version: String,
    /// The kind, singular CamelCase.
    pub kind: String,
}

impl Gvk {
    /// Builds one from its three parts.
    pub fn new(group: &str, version: &str, kind: &str) -> Self {
        Self {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
        }
    }

    /// Splits `apps/v1` or `v1` and adds the kind.
    pub fn from_api_version(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self::new(group, version, kind)
    }

    /// `apps/v1`, or `v1` for the core group: what stands in an object's `apiVersion`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// `VirtualMachine.v1.cloud.waibizi.com`, as kubectl names a kind exactly; `Pod.v1` in the core group.
impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.kind, self.version)?;
        if self.group.is_empty() {
            Ok(())
        } else {
            write!(f, ".{}", self.group)
        }
    }
}

/// Namespace and name of an object within its kind: the only thing that a workqueue ever holds.
///
/// One shared allocation, `namespace/name` as client-go writes it, so that a clone is one atomic increment and hashing reads one string.
#[derive(Clone)]
pub struct ObjectName(Arc<Tailed<NamespaceLen>>);

/// 0: cluster-scoped, and no slash in the text.
struct NamespaceLen(u32);

impl ObjectName {
    /// Names an object; `None` for a cluster-scoped kind. An empty namespace counts as none.
    pub fn new(namespace: Option<&str>, name: &str) -> Self {
        match namespace {
            Some(namespace) if !namespace.is_empty() => {
                let head = NamespaceLen(namespace.len() as u32);
                let len = namespace.len() + 1 + name.len();
                Self(Tailed::new(head, len, [namespace, "/", name]))
            }
            _ => Self(Tailed::new(NamespaceLen(0), name.len(), [name])),
        }
    }

    fn namespace_len(&self) -> usize {
        self.0.0 as usize
    }

    /// The namespace; none for a cluster-scoped kind.
    pub fn namespace(&self) -> Option<&str> {
        let len = self.namespace_len();
        (len > 0).then(|| &self.0.text[..len])
    }

    /// The name within the namespace.
    pub fn name(&self) -> &str {
        match self.namespace_len() {
            0 => &self.0.text,
            len => &self.0.text[len + 1..],
        }
    }

    /// `namespace/name`, or the name alone.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }
}

impl PartialEq for ObjectName {
    fn eq(&self, other: &Self) -> bool {
        // Keys of one object are most often the same allocation.
        Arc::ptr_eq(&self.0, &other.0) || self.0.text == other.0.text
    }
}
impl Eq for ObjectName {}
impl Hash for ObjectName {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.text.hash(state);
    }
}
impl PartialOrd for ObjectName {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for ObjectName {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.namespace(), self.name()).cmp(&(other.namespace(), other.name()))
    }
}
impl Borrow<str> for ObjectName {
    fn borrow(&self) -> &str {
        &self.0.text
    }
}
impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}
impl fmt::Debug for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

/// Names one object of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectKey {
    /// Its kind.
    pub kind: Gvk,
    /// Its name within the kind.
    pub name: ObjectName,
}

/// `VirtualMachine.v1.cloud.waibizi.com default/public-wx`.
impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_splits_at_its_namespace() {
        for (namespace, name, text) in [
            (Some("ns"), "a", "ns/a"),
            (None, "node-1", "node-1"),
            (Some(""), "n", "n"),
        ] {
            let key = ObjectName::new(namespace, name);
            assert_eq!(key.as_str(), text);
            assert_eq!(key.name(), name);
            assert_eq!(key.namespace(), namespace.filter(|n| !n.is_empty()));
        }
    }

    #[test]
    fn names_are_ordered_by_namespace_first() {
        let mut names = [
            ObjectName::new(Some("a-b"), "x"),
            ObjectName::new(Some("a"), "z"),
            ObjectName::new(None, "q"),
        ];
        names.sort();
        assert_eq!(names.map(|n| n.to_string()), ["q", "a/z", "a-b/x"]);
    }

    #[test]
    fn a_gvk_is_made_from_an_api_version() {
        assert_eq!(
            Gvk::from_api_version("apps/v1", "Deployment").to_string(),
            "Deployment.v1.apps"
        );
        assert_eq!(Gvk::from_api_version("v1", "Pod").to_string(), "Pod.v1");
        assert_eq!(Gvk::from_api_version("v1", "Pod").api_version(), "v1");
    }
}
