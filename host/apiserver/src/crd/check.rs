//! Validates a CustomResourceDefinition.
//!
//! Owns the rules besides those of the schema. Must not know what happens to a definition
//! afterwards.

use serde_json::{Value, json};
use vmhost_schema::Schema;

use crate::jsonpath::JsonPath;
use crate::meta::check::{is_label, is_subdomain};
use crate::status::{Cause, FORBIDDEN, INVALID, NOT_SUPPORTED, REQUIRED, cause};

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
    let mut required = |field: &str, value: &str| {
        if value.is_empty() {
            causes.push(cause(REQUIRED, field, "Required value"));
        }
    };
    required("spec.group", group);
    required("spec.names.plural", plural);
    required("spec.names.singular", text("/names/singular"));
    required("spec.names.kind", text("/names/kind"));
    required("spec.names.listKind", text("/names/listKind"));
    let wanted = format!("{plural}.{group}");
    let name = crate::meta::text(new, "name");
    if !group.is_empty() && !plural.is_empty() && name != wanted {
        let message =
            format!("Invalid value: {name:?}: must be spec.names.plural+\".\"+spec.group");
        causes.push(cause(INVALID, "metadata.name", message));
    }
    let domain = is_subdomain(group) && group.contains('.');
    if !group.is_empty() && !domain {
        let message = format!("Invalid value: {group:?}: should be a domain with at least one dot");
        causes.push(cause(INVALID, "spec.group", message));
    }
    for (field, name) in [
        ("spec.names.plural", plural.to_owned()),
        ("spec.names.singular", text("/names/singular").to_owned()),
        ("spec.names.kind", text("/names/kind").to_lowercase()),
        (
            "spec.names.listKind",
            text("/names/listKind").to_lowercase(),
        ),
    ] {
        if !name.is_empty() && !is_label(&name) {
            causes.push(cause(INVALID, field, format!("Invalid value: {name:?}: a DNS-1035 label must consist of lower case alphanumeric characters or '-'")));
        }
    }
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
    if text("/conversion/strategy") != "None" {
        let message = format!(
            "Unsupported value: {:?}: supported values: \"None\"",
            text("/conversion/strategy")
        );
        causes.push(cause(NOT_SUPPORTED, "spec.conversion.strategy", message));
    }
    if spec.get("preserveUnknownFields") == Some(&json!(true)) {
        let message = "Invalid value: true: must be false";
        causes.push(cause(INVALID, "spec.preserveUnknownFields", message));
    }
    versions(spec, &mut causes);
    if let Some(live) = live {
        immutable(live, new, &mut causes);
    }
    causes
}

fn versions(spec: &Value, causes: &mut Vec<Cause>) {
    let versions = spec
        .get("versions")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let stored = versions
        .iter()
        .filter(|v| v["storage"] == json!(true))
        .count();
    if versions.is_empty() {
        causes.push(cause(
            REQUIRED,
            "spec.versions",
            "Required value: must have at least one version",
        ));
    } else if stored != 1 {
        let message = "Invalid value: must have exactly one version marked as storage version";
        causes.push(cause(INVALID, "spec.versions", message));
    }
    let mut names = Vec::new();
    for (at, version) in versions.iter().enumerate() {
        let field = |name: &str| format!("spec.versions[{at}]{name}");
        let name = version["name"].as_str().unwrap_or_default();
        if !is_label(name) {
            causes.push(cause(
                INVALID,
                field(".name"),
                format!("Invalid value: {name:?}: must be a DNS-1035 label"),
            ));
        }
        if names.contains(&name) {
            let message = format!("Invalid value: {name:?}: must contain unique version names");
            causes.push(cause(INVALID, "spec.versions", message));
        }
        names.push(name);
        for flag in ["served", "storage"] {
            if !version[flag].is_boolean() {
                causes.push(cause(
                    REQUIRED,
                    field(&format!(".{flag}")),
                    "Required value",
                ));
            }
        }
        match version
            .pointer("/schema/openAPIV3Schema")
            .filter(|s| s.is_object())
        {
            None => {
                let message = "Required value: schemas are required";
                causes.push(cause(REQUIRED, field(".schema.openAPIV3Schema"), message));
            }
            Some(schema) => {
                let faults = Schema::parse(schema).err().map(|wrong| wrong.0);
                causes.extend(faults.into_iter().flatten().map(|fault| {
                    let at = &fault.field;
                    let dot = if at.is_empty() || at.starts_with('[') {
                        ""
                    } else {
                        "."
                    };
                    let field = field(&format!(".schema.openAPIV3Schema{dot}{at}"));
                    Cause {
                        field,
                        ..Cause::from(fault)
                    }
                }));
            }
        }
        columns(version, &field, causes);
        if let Some(scale) = version.pointer("/subresources/scale") {
            for (name, needed) in [
                ("specReplicasPath", true),
                ("statusReplicasPath", true),
                ("labelSelectorPath", false),
            ] {
                let path = scale[name].as_str().unwrap_or_default();
                let simple =
                    JsonPath::parse(path).is_some_and(|p| p.is_simple()) && path.starts_with('.');
                let place = match name {
                    "specReplicasPath" => ".spec.",
                    "statusReplicasPath" => ".status.",
                    _ => ".",
                };
                if simple && !path.starts_with(place) {
                    let place = place.trim_end_matches('.');
                    let message =
                        format!("Invalid value: {path:?}: should be a json path under {place}");
                    causes.push(cause(
                        INVALID,
                        field(&format!(".subresources.scale.{name}")),
                        message,
                    ));
                } else if (needed || !path.is_empty()) && !simple {
                    let message = format!("Invalid value: {path:?}: must be a simple json path");
                    causes.push(cause(
                        INVALID,
                        field(&format!(".subresources.scale.{name}")),
                        message,
                    ));
                }
            }
        }
    }
}

fn columns(version: &Value, field: &impl Fn(&str) -> String, causes: &mut Vec<Cause>) {
    let columns = version
        .get("additionalPrinterColumns")
        .and_then(Value::as_array);
    for (at, column) in columns.into_iter().flatten().enumerate() {
        let field = |name: &str| field(&format!(".additionalPrinterColumns[{at}].{name}"));
        if column["name"].as_str().unwrap_or_default().is_empty() {
            causes.push(cause(REQUIRED, field("name"), "Required value"));
        }
        let kind = column["type"].as_str().unwrap_or_default();
        if !["integer", "number", "string", "boolean", "date"].contains(&kind) {
            let message = format!(
                "Invalid value: {kind:?}: must be one of boolean,date,integer,number,string"
            );
            causes.push(cause(INVALID, field("type"), message));
        }
        let path = column["jsonPath"].as_str().unwrap_or_default();
        if path.is_empty() {
            causes.push(cause(REQUIRED, field("jsonPath"), "Required value"));
        } else if !path.starts_with('.') || JsonPath::parse(path).is_none() {
            let message =
                format!("Invalid value: {path:?}: must be a simple json path starting with .");
            causes.push(cause(INVALID, field("jsonPath"), message));
        }
    }
}

fn immutable(live: &Value, new: &Value, causes: &mut Vec<Cause>) {
    for path in [
        "/spec/group",
        "/spec/scope",
        "/spec/names/plural",
        "/spec/names/kind",
    ] {
        if live.pointer(path) != new.pointer(path) {
            let value = new.pointer(path).cloned().unwrap_or_default();
            let field = path.trim_start_matches('/').replace('/', ".");
            causes.push(cause(
                INVALID,
                field,
                format!("Invalid value: {value}: field is immutable"),
            ));
        }
    }
    // A version in which objects were stored cannot be removed.
    let names: Vec<&Value> = new["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|version| &version["name"])
        .collect();
    let stored = new
        .pointer("/status/storedVersions")
        .and_then(Value::as_array);
    for (at, version) in stored.into_iter().flatten().enumerate() {
        if !names.contains(&version) {
            let message = format!(
                "Invalid value: {version}: missing from spec.versions; {version} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {version} and removes {version} from status.storedVersions"
            );
            causes.push(cause(
                FORBIDDEN,
                format!("status.storedVersions[{at}]"),
                message,
            ));
        }
    }
}
