//! The currently served kinds.
//!
//! Owns the lookup from a path to a kind, and the order of groups and versions. Rebuilt when a
//! CustomResourceDefinition changes; a reader keeps its snapshot. Must not know objects.

use std::cmp::Reverse;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::builtin;
use crate::kinds::{Kind, Target};
use crate::openapi::{self, KindInfo};

/// A snapshot of the served kinds.
#[derive(Debug)]
pub(crate) struct Registry {
    kinds: Vec<Arc<Kind>>,
    /// Built on first use: the documents are large, and kubectl asks for them often.
    openapi_index: OnceLock<Value>,
    openapi_v2: OnceLock<Vec<u8>>,
}

/// A group and its versions, the preferred one first.
#[derive(Debug, PartialEq)]
pub(crate) struct Group {
    pub name: String,
    pub versions: Vec<String>,
}

impl Registry {
    pub fn new() -> Registry {
        Registry::of_kinds(builtin::kinds())
    }

    fn of_kinds(kinds: Vec<Arc<Kind>>) -> Registry {
        Registry {
            kinds,
            openapi_index: OnceLock::new(),
            openapi_v2: OnceLock::new(),
        }
    }

    /// Returns a registry of the same built-in kinds and these custom kinds.
    pub fn with_custom(&self, custom: impl IntoIterator<Item = Arc<Kind>>) -> Registry {
        let builtin = self.kinds.iter().filter(|k| !k.custom).cloned();
        Registry::of_kinds(builtin.chain(custom).collect())
    }

    pub fn kinds(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.kinds.iter()
    }

    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<Target> {
        let kind = self
            .kinds
            .iter()
            .find(|k| k.plural == plural && k.group == group)?;
        let version = kind
            .versions
            .iter()
            .position(|v| v.served && v.name == version)?;
        Some(Target {
            kind: kind.clone(),
            version,
        })
    }

    /// Returns every kind that a group serves in a version.
    pub fn of(&self, group: &str, version: &str) -> Vec<Target> {
        let kinds = self.kinds.iter().filter(|k| k.group == group);
        let mut found: Vec<_> = kinds
            .filter_map(|k| self.find(group, version, &k.plural))
            .collect();
        found.sort_by(|a, b| a.kind.plural.cmp(&b.kind.plural));
        found
    }

    /// Returns every group: the core group, then built-in groups, then custom groups by name.
    pub fn groups(&self) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        let mut kinds: Vec<&Arc<Kind>> = self.kinds.iter().collect();
        // Built-in groups stay in the order of a real server, by which kubectl chooses among kinds
        // of one name.
        kinds.sort_by_key(|kind| kind.custom.then(|| kind.group.clone()));
        for kind in kinds {
            let at = groups
                .iter()
                .position(|g| g.name == kind.group)
                .unwrap_or_else(|| {
                    groups.push(Group {
                        name: kind.group.clone(),
                        versions: Vec::new(),
                    });
                    groups.len() - 1
                });
            for version in kind.versions.iter().filter(|v| v.served) {
                if !groups[at].versions.contains(&version.name) {
                    groups[at].versions.push(version.name.clone());
                }
            }
        }
        groups.retain(|g| !g.versions.is_empty());
        for group in &mut groups {
            group.versions.sort_by_key(|v| Reverse(version_rank(v)));
        }
        groups
    }

    /// Returns `/openapi/v3`.
    pub fn openapi_index(&self) -> &Value {
        self.openapi_index
            .get_or_init(|| openapi::v3_index(&self.infos()))
    }

    /// Returns `/openapi/v2`.
    pub fn openapi_v2(&self) -> &[u8] {
        self.openapi_v2
            .get_or_init(|| openapi::v2_protobuf(&self.infos()))
    }

    /// Returns the input of the OpenAPI documents.
    pub fn infos(&self) -> Vec<KindInfo> {
        let mut infos = Vec::new();
        for kind in &self.kinds {
            for version in kind.versions.iter().filter(|v| v.served) {
                let status = version.status.then(|| "status".to_owned());
                let scale = version.scale.as_ref().map(|_| "scale".to_owned());
                infos.push(KindInfo {
                    group: kind.group.clone(),
                    version: version.name.clone(),
                    kind: kind.kind.clone(),
                    plural: kind.plural.clone(),
                    namespaced: kind.namespaced,
                    subresources: status.into_iter().chain(scale).collect(),
                    schema: version.raw_schema.clone(),
                });
            }
        }
        infos
    }
}

/// Returns the rank of a version in Kubernetes' order: stable, beta, alpha, each with higher
/// numbers first, then other names.
fn version_rank(version: &str) -> (u8, u64, u64, Reverse<String>) {
    let parse = || {
        let rest = version.strip_prefix('v')?;
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let (major, rest) = rest.split_at(digits);
        let major: u64 = major.parse().ok()?;
        for (word, rank) in [("beta", 2), ("alpha", 1)] {
            if let Some(minor) = rest.strip_prefix(word) {
                return Some((rank, major, minor.parse().ok()?));
            }
        }
        rest.is_empty().then_some((3, major, 0))
    };
    let (rank, major, minor) = parse().unwrap_or((0, 0, 0));
    (rank, major, minor, Reverse(version.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_kinds_is_read() {
        let registry = Registry::new();
        assert!(registry.kinds().count() >= 60);
        assert!(registry.find("", "v1", "configmaps").is_some());
        assert!(registry.find("events.k8s.io", "v1", "events").is_some());
        assert!(registry.find("events.k8s.io", "v2", "events").is_none());
        for kind in registry.kinds() {
            for version in &kind.versions {
                let name = version.definition();
                let known = name.and_then(vmhost_schema::definition);
                assert!(known.is_some(), "{}: {name:?}", kind.kind);
            }
        }
        assert_eq!(
            registry.groups()[0],
            Group {
                name: String::new(),
                versions: vec!["v1".to_owned()]
            }
        );
    }

    #[test]
    fn versions_are_ordered_as_kubernetes_does() {
        let mut versions = [
            "foo1", "v1alpha1", "v2", "v1beta2", "v10", "v1", "v1beta1", "foo10",
        ];
        versions.sort_by_key(|v| Reverse(version_rank(v)));
        assert_eq!(
            versions,
            [
                "v10", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "foo1", "foo10"
            ]
        );
    }
}
