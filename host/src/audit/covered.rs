//! Which kinds the rules of a webhook cover, and by which operation an object of theirs would come.
//! This module must not know objects.

use anyhow::{Context, Result};
use vmhost_cluster::{Reader, Resource};
use vmhost_core::description::webhook::{Operation, RuleScope, WebhookDescription, WebhookRule};

/// A kind that a rule covers.
pub(super) struct Covered {
    /// The kind.
    pub(super) resource: Resource,
    /// The request that is made up for each object.
    pub(super) operation: Operation,
}

/// The kinds that the rules cover, each once. Rules about subresources and about CONNECT have no
/// objects.
pub(super) async fn covered(reader: &Reader, webhook: &WebhookDescription) -> Result<Vec<Covered>> {
    let mut found: Vec<Covered> = Vec::new();
    let groups = reader
        .groups()
        .await
        .context("cannot list the API groups")?;
    for rule in &webhook.rules {
        let Some(operation) = operation(rule) else {
            continue;
        };
        let wanted = |group: &str| rule.api_groups.iter().any(|of| of == "*" || of == group);
        for (group, served) in groups.iter().filter(|(group, _)| wanted(group)) {
            for resource in resources(reader, rule, group, served).await? {
                let is_known = found.iter().any(|known| {
                    known.resource.kind.group == *group && known.resource.plural == resource.plural
                });
                if !is_known {
                    found.push(Covered {
                        resource,
                        operation,
                    });
                }
            }
        }
    }
    Ok(found)
}

/// The first of CREATE, UPDATE and DELETE that a rule covers.
fn operation(rule: &WebhookRule) -> Option<Operation> {
    let all = rule.operations.contains(&Operation::All);
    let mut tried = [Operation::Create, Operation::Update, Operation::Delete].into_iter();
    tried.find(|operation| all || rule.operations.contains(operation))
}

/// The resources of a group that a rule covers, in all of its versions that are served: one may
/// have what another lacks.
async fn resources(
    reader: &Reader,
    rule: &WebhookRule,
    group: &str,
    served: &[String],
) -> Result<Vec<Resource>> {
    let mut all = Vec::new();
    for version in versions(rule, served) {
        let found = reader.resources(group, version).await;
        let found = found.with_context(|| format!("cannot look up {group}/{version}"))?;
        let covers = |resource: &Resource| {
            let mut named = rule.resources.iter();
            named.any(|name| matches(name, &resource.plural))
                && is_in_scope(rule.scope, resource.namespaced)
        };
        all.extend(found.into_iter().flatten().filter(covers));
    }
    Ok(all)
}

/// The served versions that a rule covers, in the order of the server.
fn versions<'a>(rule: &WebhookRule, served: &'a [String]) -> Vec<&'a str> {
    let wanted = |version: &&String| {
        let mut versions = rule.api_versions.iter();
        versions.any(|of| of == "*" || of == *version)
    };
    served.iter().filter(wanted).map(String::as_str).collect()
}

/// Returns whether the name in a rule covers the objects of a resource. `pods/*` covers its
/// subresources only.
fn matches(name: &str, plural: &str) -> bool {
    name == "*" || name == "*/*" || name == plural
}

fn is_in_scope(scope: RuleScope, namespaced: bool) -> bool {
    match scope {
        RuleScope::All => true,
        RuleScope::Namespaced => namespaced,
        RuleScope::Cluster => !namespaced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(resources: &[&str], operations: Vec<Operation>) -> WebhookRule {
        WebhookRule {
            api_groups: vec![String::new()],
            api_versions: vec!["v1".to_owned()],
            resources: resources.iter().map(|name| (*name).to_owned()).collect(),
            operations,
            scope: RuleScope::All,
        }
    }

    #[test]
    fn an_object_comes_by_the_operation_that_shows_most_of_it() {
        for (operations, expected) in [
            (vec![Operation::All], Some(Operation::Create)),
            (
                vec![Operation::Delete, Operation::Update],
                Some(Operation::Update),
            ),
            (vec![Operation::Delete], Some(Operation::Delete)),
            (vec![Operation::Connect], None),
        ] {
            assert_eq!(operation(&rule(&["pods"], operations)), expected);
        }
    }

    #[test]
    fn all_versions_of_a_rule_are_looked_up() {
        let served = ["v1".to_owned(), "v1beta1".to_owned()];
        let mut rule = rule(&["pods"], vec![Operation::All]);
        assert_eq!(versions(&rule, &served), ["v1"]);
        rule.api_versions = vec!["*".to_owned()];
        assert_eq!(versions(&rule, &served), ["v1", "v1beta1"]);
        rule.api_versions = vec!["v1beta1".to_owned(), "v2".to_owned(), "v1".to_owned()];
        assert_eq!(versions(&rule, &served), ["v1", "v1beta1"]);
    }

    #[test]
    fn a_subresource_has_no_objects() {
        for (name, covers) in [
            ("pods", true),
            ("*", true),
            ("*/*", true),
            ("pods/*", false),
            ("pods/status", false),
            ("*/status", false),
        ] {
            assert_eq!(matches(name, "pods"), covers, "{name}");
        }
    }
}
