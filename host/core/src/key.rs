//! Names of kinds, of objects within their kind, and of objects in the cluster. This module must
//! not know which kinds a cluster serves.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::tailed::Tailed;

/// Returns whether `text` can be one segment of a URL path, encoded or not. A proxy that normalises
/// paths would resolve `.` and `..`.
pub fn is_path_segment(text: &str) -> bool {
    !matches!(text, "" | "." | "..") && !text.contains(['/', '%'])
}

/// Returns whether `text` is an RFC 1123 label, as the names of namespaces are.
pub fn is_dns_label(text: &str) -> bool {
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=63).contains(&text.len())
        && text.chars().all(|c| edge(c) || c == '-')
        && text.starts_with(edge)
        && text.ends_with(edge)
}

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
    /// Builds a kind from its three parts.
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

    /// The bytes of its three parts.
    pub fn text_bytes(&self) -> usize {
        self.group.len() + self.version.len() + self.kind.len()
    }

    /// `apps/v1`, or `v1` for the core group: the value of an object's `apiVersion`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// Formats a kind as kubectl's fully qualified form: `VirtualMachine.v1.cloud.waibizi.com`, or
/// `Pod.v1` in the core group.
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
/// The name is one shared allocation, `namespace/name` as client-go writes it: a clone is one
/// atomic increment, and hashing reads one string.
#[derive(Clone)]
pub struct ObjectName(Arc<Tailed<NamespaceLen>>);

/// Length of the namespace in bytes; 0 if the object is cluster-scoped and the text has no slash.
struct NamespaceLen(u32);

impl ObjectName {
    /// Names an object. An empty namespace counts as `None`, which means cluster-scoped.
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

    /// The namespace; `None` for a cluster-scoped object.
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
        // Keys of the same object usually share one allocation.
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

/// Names one object in the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectKey {
    /// The object's kind.
    pub kind: Gvk,
    /// The object's name within the kind.
    pub name: ObjectName,
}

impl ObjectKey {
    /// The bytes of its texts.
    pub fn text_bytes(&self) -> usize {
        self.kind.text_bytes() + self.name.as_str().len()
    }
}

/// Formats a key as `VirtualMachine.v1.cloud.waibizi.com default/public-wx`.
impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_has_a_label_for_a_name() {
        for (text, is_label) in [
            ("a", true),
            ("team-1", true),
            ("", false),
            ("-a", false),
            ("a-", false),
            ("a.b", false),
            ("A", false),
            ("a/b", false),
        ] {
            assert_eq!(is_dns_label(text), is_label, "{text:?}");
        }
        assert!(is_dns_label(&"a".repeat(63)) && !is_dns_label(&"a".repeat(64)));
    }

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
