//! Validates a CustomResourceDefinition.
//!
//! Owns the rules besides those of the schema; `version` has those of versions. Must not know what
//! happens to a definition afterwards.

mod conversion;
mod version;

use serde_json::{Value, json};

use super::approval;
use super::text::{DNS_LABEL, dns_label, invalid};
use crate::meta;
use crate::meta::check::is_subdomain;
use crate::status::{Cause, INVALID, NOT_SUPPORTED, REQUIRED, cause};

/// Fills in the names that are derived from others.
pub(crate) fn default(definition: &mut Value) {
    let Some(spec) = definition.get_mut("spec").filter(|s| s.is_object()) else {
        return;
    };
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let kind = names
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        if !kind.is_empty() {
            names
                .entry("singular")
                .or_insert_with(|| json!(kind.to_lowercase()));
            names
                .entry("listKind")
                .or_insert_with(|| json!(format!("{kind}List")));
        }
    }
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec["conversion"] = json!({ "strategy": "None" });
    }
    conversion::default(&mut spec["conversion"]);
}

/// Returns everything that is wrong with a definition.
pub(crate) fn check(live: Option<&Value>, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let spec = &new["spec"];
    let text = |path: &str| {
        spec.pointer(path)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (group, plural) = (text("/group"), text("/names/plural"));
    let wanted = format!("{plural}.{group}");
    let name = meta::text(new, "name");
    if name != wanted {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        causes.push(invalid("metadata.name", &json!(name), detail));
    }
    if group.is_empty() {
        causes.push(cause(REQUIRED, "spec.group", "Required value"));
    } else if !is_subdomain(group) || !group.contains('.') {
        let detail = "should be a domain with at least one dot";
        causes.push(invalid("spec.group", &json!(group), detail));
    }
    names(&spec["names"], &mut causes);
    match text("/scope") {
        "Namespaced" | "Cluster" => {}
        "" => causes.push(cause(REQUIRED, "spec.scope", "Required value")),
        other => {
            let message = format!(
                "Unsupported value: {other:?}: supported values: \"Cluster\", \"Namespaced\""
            );
            causes.push(cause(NOT_SUPPORTED, "spec.scope", message));
        }
    }
    conversion::check(&spec["conversion"], &mut causes);
    if spec.get("preserveUnknownFields") == Some(&json!(true)) {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        let field = "spec.preserveUnknownFields";
        causes.push(invalid(field, &json!(true), detail));
    }
    if live.is_none() {
        causes.extend(approval::refusal(new));
    }
    version::check(spec, &mut causes);
    if let Some(live) = live {
        immutable(live, new, &mut causes);
        stored_versions(new, &mut causes);
    }
    causes
}

fn names(names: &Value, causes: &mut Vec<Cause>) {
    let text = |name: &str| names[name].as_str().unwrap_or_default();
    for (name, mixed) in [
        ("plural", false),
        ("singular", false),
        ("kind", true),
        ("listKind", true),
    ] {
        let (field, value) = (format!("spec.names.{name}"), text(name));
        if value.is_empty() {
            causes.push(cause(REQUIRED, field, "Required value"));
        } else if mixed && !dns_label(&value.to_lowercase()) {
            let detail = format!("may have mixed case, but should otherwise match: {DNS_LABEL}");
            causes.push(invalid(field, &json!(value), &detail));
        } else if !mixed && !dns_label(value) {
            causes.push(invalid(field, &json!(value), DNS_LABEL));
        }
    }
    for list in ["shortNames", "categories"] {
        let items = names[list].as_array().into_iter().flatten();
        for (at, item) in items.enumerate() {
            if !item.as_str().is_some_and(dns_label) {
                let field = format!("spec.names.{list}[{at}]");
                causes.push(invalid(field, item, DNS_LABEL));
            }
        }
    }
    if !text("kind").is_empty() && text("kind") == text("listKind") {
        let detail = "kind and listKind may not be the same";
        causes.push(invalid("spec.names.listKind", &names["listKind"], detail));
    }
}

fn immutable(live: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let conditions = live.pointer("/status/conditions").and_then(Value::as_array);
    let established = conditions
        .into_iter()
        .flatten()
        .any(|c| c["type"] == "Established" && c["status"] == "True");
    for (path, always) in [
        ("/spec/group", true),
        ("/spec/names/plural", true),
        ("/spec/scope", false),
        ("/spec/names/kind", false),
    ] {
        if (always || established) && live.pointer(path) != new.pointer(path) {
            let value = new.pointer(path).cloned().unwrap_or_default();
            let field = path.trim_start_matches('/').replace('/', ".");
            causes.push(invalid(field, &value, "field is immutable"));
        }
    }
}

/// Checks that every version in which objects were stored is still there.
fn stored_versions(new: &Value, causes: &mut Vec<Cause>) {
    let names: Vec<&Value> = new["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|version| &version["name"])
        .collect();
    let stored = new
        .pointer("/status/storedVersions")
        .and_then(Value::as_array);
    for (at, value) in stored.into_iter().flatten().enumerate() {
        if !names.contains(&value) {
            let version = value.as_str().unwrap_or_default();
            let message = format!(
                "Invalid value: {value}: missing from spec.versions; {version} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {version} and removes {version} from status.storedVersions"
            );
            let field = format!("status.storedVersions[{at}]");
            causes.push(cause(INVALID, field, message));
        }
    }
}
