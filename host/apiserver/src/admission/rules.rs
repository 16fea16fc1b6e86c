//! Which requests a webhook or a policy is for.
//!
//! Owns rules, the selectors of namespaces and objects, and the search for an equivalent resource
//! that a rule names. Follows k8s.io/apiserver `pkg/admission/plugin/webhook/predicates`. Must not
//! know what happens to a request that matches.

use serde_json::Value;

use super::review::{Named, Operation, Review};
use crate::kinds::Target;
use crate::registry::Registry;
use crate::selector;

/// One rule.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rule {
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
    operations: Vec<String>,
    scope: String,
    /// If there are any, only objects of these names match.
    names: Vec<String>,
}

/// What decides whether a request is for a webhook or a policy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Criteria {
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
    /// Whether a request matches that names the same objects by another resource.
    equivalent: bool,
    namespaces: Value,
    objects: Value,
    /// Whether no rules mean that every resource matches.
    open: bool,
}

/// The resource and the kind by which a request matches.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub resource: Named,
    pub kind: Named,
    /// The kind's version to which objects are converted; `None`: that of the request.
    pub target: Option<Target>,
}

impl Rule {
    fn read(rule: &Value) -> Rule {
        let texts = |field: &str| -> Vec<String> {
            let list = rule[field].as_array().into_iter().flatten();
            list.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Rule {
            groups: texts("apiGroups"),
            versions: texts("apiVersions"),
            resources: texts("resources"),
            operations: texts("operations"),
            scope: rule["scope"].as_str().unwrap_or("*").to_owned(),
            names: texts("resourceNames"),
        }
    }

    /// Returns whether the rule names a request for this resource.
    fn names(&self, review: &Review, resource: &Named) -> bool {
        let has = |list: &[String], wanted: &str| list.iter().any(|x| x == "*" || x == wanted);
        let is_namespace = resource.group.is_empty() && resource.name == "namespaces";
        let in_scope = match self.scope.as_str() {
            "Namespaced" => !is_namespace && !review.namespace.is_empty(),
            "Cluster" => is_namespace || review.namespace.is_empty(),
            scope => scope == "*",
        };
        let is_for = |rule: &String| {
            let (name, sub) = rule.split_once('/').unwrap_or((rule.as_str(), ""));
            (name == "*" || name == resource.name) && (sub == "*" || sub == review.subresource)
        };
        in_scope
            && has(&self.operations, review.operation.name())
            && has(&self.groups, &resource.group)
            && has(&self.versions, &resource.version)
            && self.resources.iter().any(is_for)
            && (self.names.is_empty() || self.names.contains(&review.name))
    }
}

impl Criteria {
    /// Reads those of a webhook.
    pub fn of_webhook(webhook: &Value) -> Criteria {
        Criteria {
            rules: rules(&webhook["rules"]),
            equivalent: webhook["matchPolicy"] != "Exact",
            namespaces: webhook["namespaceSelector"].clone(),
            objects: webhook["objectSelector"].clone(),
            ..Criteria::default()
        }
    }

    /// Reads the `matchConstraints` of a policy, or the `matchResources` of a binding.
    pub fn of_policy(constraints: &Value) -> Criteria {
        Criteria {
            rules: rules(&constraints["resourceRules"]),
            excluded: rules(&constraints["excludeResourceRules"]),
            equivalent: constraints["matchPolicy"] != "Exact",
            namespaces: constraints["namespaceSelector"].clone(),
            objects: constraints["objectSelector"].clone(),
            open: true,
        }
    }

    /// Returns how a request matches; `None` if it does not. `namespace` is the object of its
    /// namespace.
    pub fn find(
        &self,
        review: &Review,
        target: &Target,
        registry: &Registry,
        namespace: Option<&Value>,
    ) -> Option<Found> {
        if !self.in_namespace(review, namespace) || !self.has_object(review) {
            return None;
        }
        self.by_rules(review, target, registry)
    }

    /// Returns whether a request may match, before its objects are looked at.
    pub fn concern(
        &self,
        review: &Review,
        target: &Target,
        registry: &Registry,
        namespace: Option<&Value>,
    ) -> bool {
        let in_namespace = is_of_namespaces(review) || self.in_namespace(review, namespace);
        in_namespace && self.by_rules(review, target, registry).is_some()
    }

    fn by_rules(&self, review: &Review, target: &Target, registry: &Registry) -> Option<Found> {
        let own = || {
            Some(Found {
                resource: review.resource.clone(),
                kind: review.kind.clone(),
                target: None,
            })
        };
        let find = |rules: &[Rule]| match rules.iter().any(|r| r.names(review, &review.resource)) {
            true => own(),
            false if self.equivalent => equivalent(rules, review, target, registry),
            false => None,
        };
        if find(&self.excluded).is_some() {
            return None;
        }
        match self.open && self.rules.is_empty() {
            true => own(),
            false => find(&self.rules),
        }
    }

    fn in_namespace(&self, review: &Review, namespace: Option<&Value>) -> bool {
        let of_namespaces = is_of_namespaces(review);
        if review.namespace.is_empty() && !of_namespaces {
            return true;
        }
        let writes = matches!(review.operation, Operation::Create | Operation::Update);
        // What is stored of a namespace is older than what is written.
        let object = match of_namespaces && review.subresource.is_empty() && writes {
            true => review.object.as_deref(),
            false => namespace,
        };
        selects(&self.namespaces, object)
    }

    fn has_object(&self, review: &Review) -> bool {
        let (new, old) = (review.object.as_deref(), review.old.as_deref());
        is_empty(&self.objects)
            || new.is_some_and(|object| selects(&self.objects, Some(object)))
            || old.is_some_and(|object| selects(&self.objects, Some(object)))
    }
}

fn is_of_namespaces(review: &Review) -> bool {
    review.resource.name == "namespaces"
}

fn rules(list: &Value) -> Vec<Rule> {
    let list = list.as_array().into_iter().flatten();
    list.map(Rule::read).collect()
}

fn is_empty(selector: &Value) -> bool {
    let list = |field: &str| selector.get(field).filter(|list| !list.is_null());
    list("matchLabels").is_none() && list("matchExpressions").is_none()
}

fn selects(selector: &Value, object: Option<&Value>) -> bool {
    let labels = object.and_then(|object| object.pointer("/metadata/labels"));
    is_empty(selector) || selector::covers(selector, labels)
}

/// Returns the first match of a rule with another resource of the same objects.
fn equivalent(
    rules: &[Rule],
    review: &Review,
    target: &Target,
    registry: &Registry,
) -> Option<Found> {
    if rules.is_empty() {
        return None;
    }
    let others = same_objects(target, registry, &review.subresource);
    rules.iter().find_map(|rule| {
        let mut others = others.iter();
        let found = others
            .find(|other| other.resource != review.resource && rule.names(review, &other.resource));
        found.cloned()
    })
}

/// Returns all resources through which the objects of a kind are served.
fn same_objects(target: &Target, registry: &Registry, subresource: &str) -> Vec<Found> {
    let mut found = Vec::new();
    let storage = &target.kind.storage;
    for kind in registry.kinds().filter(|kind| kind.storage == *storage) {
        for (version, row) in kind.versions.iter().enumerate() {
            let target = Target {
                kind: kind.clone(),
                version,
            };
            let Some(of) = kind_of(&target, subresource).filter(|_| row.served) else {
                continue;
            };
            found.push(Found {
                resource: resource_of(&target),
                kind: of,
                target: Some(target),
            });
        }
    }
    found
}

/// Returns the resource that a path to objects of a kind names.
pub(crate) fn resource_of(target: &Target) -> Named {
    Named {
        group: target.kind.group.clone(),
        version: target.version().name.clone(),
        name: target.kind.plural.clone(),
    }
}

/// Returns the kind of the objects of a subresource; `None` if there is no such subresource.
pub(crate) fn kind_of(target: &Target, subresource: &str) -> Option<Named> {
    if subresource.is_empty() {
        return Some(Named {
            group: target.kind.group.clone(),
            version: target.version().name.clone(),
            name: target.kind.kind.clone(),
        });
    }
    let mut known = target.subresources().into_iter();
    let known = known.find(|known| known.name == subresource)?;
    Some(Named {
        group: known.group,
        version: known.version,
        name: known.kind,
    })
}
