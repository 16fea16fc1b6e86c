//! Ownership after a write to the scale of an object that is not an apply.
//!
//! Follows k8s.io/apimachinery `util/managedfields/scalehandler.go`, where the owners of the
//! replicas become those of a Scale, and afterwards owners of the object again. Must not know how a
//! Scale is read from an object.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::managed::{self, Id, Managers, Operation, Owned};
use crate::manager::Manager;
use crate::set::{Set, Step};

const SCALE: &str = "autoscaling/v1";

/// Sets the ownership of `new` after a write to the scale of `live`. `replicas` are the fields that
/// lead to the replicas.
///
/// The identity of an update names its version, which is that of a Scale on the way: so a manager
/// that owns the replicas by an update of the object gets another entry for them, without a time.
/// Replicas without an owner have none afterwards.
pub fn track_scale(live: &Value, new: &mut Value, replicas: &[&str], manager: &Manager<'_>) {
    let path: Vec<Step> = replicas.iter().copied().map(Step::field).collect();
    let mut only = Set::default();
    only.insert(&path);
    let parent = managed::of(Some(live));
    let owners = parent.iter().filter(|(_, owned)| owned.set.has(&path));
    let mut owners: BTreeSet<Id> = owners.map(|(id, _)| of_scale(id)).collect();
    let (before, after) = (amount(live, replicas), amount(new, replicas));
    if !owners.is_empty() && before != after {
        owners.clear();
        // A Scale without replicas has no such field.
        if after != 0 {
            owners.insert(of_scale(&manager.id(Operation::Update)));
        }
    }
    let mut managers = Managers::new();
    for (id, owned) in parent {
        if !owned.set.has(&path) || owners.remove(&id) {
            managers.insert(id, owned);
            continue;
        }
        let set = owned.set.difference(&only);
        if !set.is_empty() {
            managers.insert(id, Owned { set, ..owned });
        }
    }
    for id in owners {
        let owned = Owned {
            set: only.clone(),
            api_version: manager.api_version.to_owned(),
            time: None,
        };
        managers.insert(id, owned);
    }
    managed::strip(new);
    managed::encode(&managers, new);
}

/// Returns an identity as an owner of a field of a Scale.
fn of_scale(id: &Id) -> Id {
    let api_version = match id.operation {
        Operation::Apply => String::new(),
        Operation::Update => SCALE.to_owned(),
    };
    Id {
        api_version,
        ..id.clone()
    }
}

fn amount(object: &Value, replicas: &[&str]) -> i64 {
    let mut fields = replicas.iter();
    let found = fields.try_fold(object, |at, field| at.get(*field));
    found.and_then(Value::as_i64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_update_gets_an_entry_of_its_own_for_the_replicas() {
        let entry = |subresource: &str, fields: Value| {
            let mut entry = json!({
                "manager": "one", "operation": "Update", "apiVersion": "apps/v1",
                "fieldsType": "FieldsV1", "fieldsV1": fields,
            });
            if !subresource.is_empty() {
                entry["subresource"] = json!(subresource);
            }
            entry
        };
        let both = json!({ "f:spec": { "f:paused": {}, "f:replicas": {} } });
        let rest = json!({ "f:spec": { "f:paused": {} } });
        let only = json!({ "f:spec": { "f:replicas": {} } });
        let live = json!({
            "metadata": { "name": "d", "uid": "u", "managedFields": [entry("", both)] },
            "spec": { "paused": true, "replicas": 1 },
        });
        let manager = Manager {
            name: "one",
            api_version: "apps/v1",
            subresource: "scale",
            ..Manager::default()
        };
        let tracked = |live: &Value, replicas: u32| {
            let mut new = live.clone();
            new["spec"]["replicas"] = json!(replicas);
            track_scale(live, &mut new, &["spec", "replicas"], &manager);
            new["metadata"]["managedFields"].clone()
        };
        let (rest, own) = (entry("", rest), |sub: &str| entry(sub, only.clone()));
        assert_eq!(tracked(&live, 1), json!([rest, own("")]));
        assert_eq!(tracked(&live, 2), json!([rest, own("scale")]));
        assert_eq!(tracked(&live, 0), json!([rest]));
    }
}
