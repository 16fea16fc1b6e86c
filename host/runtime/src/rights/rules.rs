//! Merges single accesses into sorted RBAC rules, so that the same accesses always give the same
//! text. This module must not know what an access is needed for.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::rights::access::Access;

/// One rule of a Role or ClusterRole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Rule {
    pub(crate) api_groups: Vec<String>,
    /// Plurals, with subresources: `deployments/scale`.
    pub(crate) resources: Vec<String>,
    /// The only objects. Empty for all objects.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) resource_names: Vec<String>,
    /// In alphabetical order, as controller-gen writes them.
    pub(crate) verbs: Vec<String>,
}

/// A sorted set of texts.
type Set<'a> = BTreeSet<&'a str>;

/// Returns the accesses that `granted` does not contain.
pub(crate) fn without(accesses: &BTreeSet<Access>, granted: &BTreeSet<Access>) -> BTreeSet<Access> {
    let holds = |access: &&Access| {
        let of_all = Access {
            name: None,
            ..(*access).clone()
        };
        granted.contains(*access) || granted.contains(&of_all)
    };
    accesses
        .iter()
        .filter(|access| !holds(access))
        .cloned()
        .collect()
}

/// Returns the smallest set of such rules: one per group, set of verbs and set of names.
pub(crate) fn rules(accesses: &BTreeSet<Access>) -> Vec<Rule> {
    let mut verbs: BTreeMap<(&str, &str, Option<&str>), Set<'_>> = BTreeMap::new();
    for access in accesses {
        let of_all = Access {
            name: None,
            ..access.clone()
        };
        // An access to all objects covers each single one.
        if access.name.is_none() || !accesses.contains(&of_all) {
            verbs
                .entry((&access.group, &access.resource, access.name.as_deref()))
                .or_default()
                .insert(&access.verb);
        }
    }
    // First merge the objects of a resource with the same verbs, then the resources of a group with
    // the same verbs and objects.
    let mut names: BTreeMap<(&str, &str, Set<'_>, bool), Set<'_>> = BTreeMap::new();
    for ((group, resource, name), verbs) in verbs {
        let names = names.entry((group, resource, verbs, name.is_some()));
        names.or_default().extend(name);
    }
    let mut resources: BTreeMap<(&str, Set<'_>, Set<'_>), Set<'_>> = BTreeMap::new();
    for ((group, resource, verbs, _), names) in names {
        let resources = resources.entry((group, names, verbs));
        resources.or_default().insert(resource);
    }
    let owned = |texts: Set<'_>| texts.into_iter().map(ToOwned::to_owned).collect();
    let mut rules: Vec<Rule> = resources
        .into_iter()
        .map(|((group, names, verbs), resources)| Rule {
            api_groups: vec![group.to_owned()],
            resources: owned(resources),
            resource_names: owned(names),
            verbs: owned(verbs),
        })
        .collect();
    rules.sort_by(|a, b| {
        (&a.api_groups, &a.resources, &a.resource_names).cmp(&(
            &b.api_groups,
            &b.resources,
            &b.resource_names,
        ))
    });
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accesses(lines: &[&str]) -> BTreeSet<Access> {
        let access = |line: &&str| {
            let parts: Vec<&str> = line.split(' ').collect();
            Access {
                verb: parts[0].into(),
                group: parts[1].trim_matches('-').into(),
                resource: parts[2].into(),
                name: parts.get(3).map(|name| (*name).into()),
            }
        };
        lines.iter().map(access).collect()
    }

    #[test]
    fn rules_are_merged_and_sorted() {
        let rules = rules(&accesses(&[
            "watch - pods",
            "get - pods",
            "get - configmaps",
            "watch - configmaps",
            "patch - configmaps/x",
            "get a.io crds one",
            "get a.io crds two",
            "create a.io crds",
            "get a.io leases all",
            "get a.io leases",
        ]));
        let shown: Vec<String> = rules
            .iter()
            .map(|rule| {
                format!(
                    "{:?} {:?} {:?} {:?}",
                    rule.api_groups, rule.resources, rule.resource_names, rule.verbs
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                r#"[""] ["configmaps", "pods"] [] ["get", "watch"]"#,
                r#"[""] ["configmaps/x"] [] ["patch"]"#,
                r#"["a.io"] ["crds"] [] ["create"]"#,
                r#"["a.io"] ["crds"] ["one", "two"] ["get"]"#,
                r#"["a.io"] ["leases"] [] ["get"]"#,
            ]
        );
    }

    #[test]
    fn what_is_granted_everywhere_is_not_granted_again() {
        let everywhere = accesses(&["get - pods"]);
        let here = accesses(&["get - pods", "get - pods one", "patch - pods"]);
        assert_eq!(without(&here, &everywhere), accesses(&["patch - pods"]));
    }
}
