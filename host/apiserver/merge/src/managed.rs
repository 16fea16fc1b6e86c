//! `metadata.managedFields`: read, written, sorted and kept short.
//!
//! Follows k8s.io/apimachinery `util/managedfields/internal` (managedfields.go, capmanagers.go).
//! Must not know schemas.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::set::Set;

/// How a manager came to own fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Apply,
    Update,
}

/// The identity of an entry. An apply has the same identity in every version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    pub(crate) manager: String,
    pub(crate) operation: Operation,
    /// Empty for an apply.
    pub(crate) api_version: String,
    pub(crate) subresource: String,
}

impl std::fmt::Display for Id {
    /// Writes the manager's name as in conflicts.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.manager)?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {:?}", self.subresource)?;
        }
        match self.operation {
            Operation::Apply => Ok(()),
            Operation::Update => write!(f, " using {}", self.api_version),
        }
    }
}

/// The fields that a manager owns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Owned {
    pub(crate) set: Set,
    pub(crate) api_version: String,
    pub(crate) time: Option<String>,
}

pub(crate) type Managers = BTreeMap<Id, Owned>;

/// The maximum number of entries for updates, as kube-apiserver's DefaultMaxUpdateManagers.
const MAX_UPDATE_MANAGERS: usize = 10;

/// The manager into which the oldest updates are combined.
const OLD_UPDATES: &str = "ancient-changes";

/// Returns `metadata.managedFields`, unless absent or null.
pub(crate) fn list(object: &Value) -> Option<&Value> {
    object
        .get("metadata")?
        .get("managedFields")
        .filter(|list| !list.is_null())
}

/// Removes `metadata.managedFields` from an object.
pub(crate) fn strip(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

/// Returns whether a client asks to drop all ownership, with a list of one empty entry or an empty
/// list. For a custom resource only the former works: its metadata is decoded and encoded on the
/// way in, which removes an empty list.
pub(crate) fn is_reset(list: &Value, custom: bool) -> bool {
    match list.as_array().map(Vec::as_slice) {
        Some([]) => !custom,
        Some([one]) => one.as_object().is_some_and(Map::is_empty),
        _ => false,
    }
}

/// Reads a list of entries; `None` if one of them is invalid.
pub(crate) fn decode(list: &Value) -> Option<Managers> {
    let mut out = Managers::new();
    for entry in list.as_array()? {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let operation = match text("operation") {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return None,
        };
        let api_version = text("apiVersion");
        if api_version.is_empty() || text("fieldsType") != "FieldsV1" {
            return None;
        }
        let set = match entry.get("fieldsV1") {
            None | Some(Value::Null) => Set::default(),
            Some(fields) => Set::decode(fields)?,
        };
        let id = Id {
            manager: text("manager").to_owned(),
            operation,
            api_version: if operation == Operation::Apply {
                String::new()
            } else {
                api_version.to_owned()
            },
            subresource: text("subresource").to_owned(),
        };
        let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
        out.insert(
            id,
            Owned {
                set,
                api_version: api_version.to_owned(),
                time,
            },
        );
    }
    Some(out)
}

/// Returns the managers of an object; empty if it has none or they cannot be read.
pub(crate) fn of(object: Option<&Value>) -> Managers {
    object.and_then(list).and_then(decode).unwrap_or_default()
}

fn seconds(time: Option<&str>) -> i64 {
    time.and_then(|time| time.parse::<jiff::Timestamp>().ok())
        .map_or(0, |time| time.as_second())
}

/// Writes the managers into an object without managers: applies first, then by time and name.
pub(crate) fn encode(managers: &Managers, object: &mut Value) {
    let mut entries: Vec<(&Id, &Owned)> = managers.iter().collect();
    entries.sort_by_key(|(id, owned)| {
        (
            id.operation,
            seconds(owned.time.as_deref()),
            &id.manager,
            &owned.api_version,
            &id.subresource,
        )
    });
    let list: Vec<Value> = entries
        .into_iter()
        .map(|(id, owned)| entry(id, owned))
        .collect();
    if list.is_empty() {
        return;
    }
    let Some(object) = object.as_object_mut() else {
        return;
    };
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.insert("managedFields".to_owned(), Value::Array(list));
    }
}

fn entry(id: &Id, owned: &Owned) -> Value {
    let operation = match id.operation {
        Operation::Apply => "Apply",
        Operation::Update => "Update",
    };
    let mut entry = json!({
        "manager": id.manager,
        "operation": operation,
        "apiVersion": owned.api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": owned.set.encode(),
    });
    if let Some(time) = &owned.time {
        entry["time"] = json!(time);
    }
    if !id.subresource.is_empty() {
        entry["subresource"] = json!(id.subresource);
    }
    entry
}

/// Combines the oldest updates of each version until the number of entries is within the limit.
pub(crate) fn cap(managers: &mut Managers) {
    let mut updaters: Vec<Id> = managers
        .keys()
        .filter(|id| id.operation == Operation::Update)
        .cloned()
        .collect();
    let mut left = updaters.len();
    if left <= MAX_UPDATE_MANAGERS {
        return;
    }
    updaters.sort_by_key(|id| {
        let time = managers.get(id).and_then(|owned| owned.time.clone());
        (seconds(time.as_deref()), id.clone())
    });
    let mut first_of_version: BTreeMap<String, Id> = BTreeMap::new();
    for id in updaters {
        if left <= MAX_UPDATE_MANAGERS {
            return;
        }
        let version = id.api_version.clone();
        let Some(first) = first_of_version.get(&version) else {
            first_of_version.insert(version, id);
            continue;
        };
        let bucket = Id {
            manager: OLD_UPDATES.to_owned(),
            operation: Operation::Update,
            api_version: version,
            subresource: String::new(),
        };
        if !managers.contains_key(&bucket)
            && let Some(owned) = managers.remove(first)
        {
            managers.insert(bucket.clone(), owned);
        }
        if let Some(owned) = managers.remove(&id)
            && let Some(old) = managers.get_mut(&bucket)
        {
            old.set = old.set.union(&owned.set);
            old.time = owned.time;
            left -= 1;
        }
    }
}
