//! What the expressions of a policy see of a request.
//!
//! Must not know which policy decides, or what follows from a result.

use serde_json::{Map, Value, json};
use vmhost_rules::Seen;

use super::asker::{Asker, Roles};
use super::policy::Policy;
use super::review::Review;
use super::rules::Found;
use crate::object::Object;
use crate::questions::Case;

/// The values of the variables. The objects are in the version that a rule matched.
pub(super) struct Sight<'c> {
    object: Object,
    old: Object,
    request: Value,
    namespace: Value,
    asker: Asker<'c>,
}

impl<'c> Sight<'c> {
    pub fn of(
        roles: Roles<'c>,
        case: &'c Case,
        (review, found): (&Review, &Found),
        (object, old): (Object, Object),
    ) -> Sight<'c> {
        let is_namespace = review.kind.group.is_empty() && review.kind.name == "Namespace";
        let namespace = case.namespace.as_deref().filter(|_| !is_namespace);
        Sight {
            object,
            old,
            request: review.request(&found.resource, &found.kind),
            namespace: namespace.map_or(Value::Null, shown_namespace),
            asker: Asker::of(roles, case.author.as_deref(), review),
        }
    }

    /// Returns the values that match conditions see: these do not see the namespace.
    pub fn of_conditions<'s>(&'s self, policy: &Policy, param: Option<&'s Value>) -> Seen<'s> {
        self.with(policy, param, &Value::Null)
    }

    /// Returns the values that all other expressions see.
    pub fn values<'s>(&'s self, policy: &Policy, param: Option<&'s Value>) -> Seen<'s> {
        self.with(policy, param, &self.namespace)
    }

    fn with<'s>(
        &'s self,
        policy: &Policy,
        param: Option<&'s Value>,
        namespace: &'s Value,
    ) -> Seen<'s> {
        let mut values: Vec<&Value> = vec![&*self.object, &*self.old, &self.request, namespace];
        if policy.parameters.is_some() {
            values.push(param.unwrap_or(&Value::Null));
        }
        Seen::of(&values).with_authorizer(&self.asker)
    }
}

/// Returns a namespace with the fields that expressions see.
fn shown_namespace(namespace: &Value) -> Value {
    let mut shown = json!({});
    for field in ["spec", "status"] {
        if let Some(value) = namespace.get(field) {
            shown[field] = value.clone();
        }
    }
    let metadata = namespace.get("metadata").and_then(Value::as_object);
    let metadata = metadata.cloned().unwrap_or_default();
    let hidden = |name: &str| matches!(name, "managedFields" | "ownerReferences");
    let seen: Map<String, Value> = metadata.into_iter().filter(|(k, _)| !hidden(k)).collect();
    shown["metadata"] = Value::Object(seen);
    shown
}
