//! Validates the versions of a definition: names, schemas, columns, subresources and selectable
//! fields.
//!
//! Owns how refusals name what all versions have alike: kube-apiserver keeps it once, for all
//! versions, and so names a path that no definition has (`spec.validation`). Must not know the rest
//! of a definition.

use serde_json::{Value, json};
use vmhost_rules::Rules;
use vmhost_schema::Schema;

use crate::crd::text::{DNS_LABEL, dns_label, invalid};
use crate::status::{Cause, FORBIDDEN, INVALID, REQUIRED, cause};

/// The most selectable fields of a version.
const SELECTABLE: usize = 8;

/// Keywords that the root of a schema may have beside a status subresource.
const AT_ROOT: [&str; 24] = [
    "description",
    "type",
    "format",
    "title",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "required",
    "items",
    "properties",
    "externalDocs",
    "example",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
    "nullable",
    "default",
];

/// Adds everything that is wrong with the versions.
pub(super) fn check(spec: &Value, causes: &mut Vec<Cause>) {
    let none = Vec::new();
    let versions = spec["versions"].as_array().unwrap_or(&none);
    names(versions, causes);
    for (place, version, at) in parts(versions, "schema") {
        let path = match at {
            Some(at) => format!("spec.versions[{at}].schema.openAPIV3Schema"),
            None => "spec.validation.openAPIV3Schema".to_owned(),
        };
        match place.get("openAPIV3Schema").filter(|s| s.is_object()) {
            Some(given) => schema(given, &path, has_status(version), causes),
            None => {
                let missing = match at {
                    Some(at) => at..at + 1,
                    None => 0..versions.len(),
                };
                causes.extend(missing.map(|at| {
                    let path = format!("spec.versions[{at}].schema.openAPIV3Schema");
                    cause(REQUIRED, path, "Required value")
                }));
            }
        }
    }
    for (part, _, at) in parts(versions, "additionalPrinterColumns") {
        columns(part, &path(at, "additionalPrinterColumns"), causes);
    }
    for (part, _, at) in parts(versions, "subresources") {
        if let Some(scale) = part.get("scale").filter(|scale| scale.is_object()) {
            scale_paths(scale, &path(at, "subresources.scale"), causes);
        }
    }
    for (part, version, at) in parts(versions, "selectableFields") {
        let schema = &version["schema"]["openAPIV3Schema"];
        selectable(part, schema, &path(at, "selectableFields"), causes);
    }
}

fn path(at: Option<usize>, name: &str) -> String {
    match at {
        Some(at) => format!("spec.versions[{at}].{name}"),
        None => format!("spec.{name}"),
    }
}

/// Returns a part of each version with the version and its position; only once, and without a
/// position, if all versions have the same.
fn parts<'v>(versions: &'v [Value], name: &str) -> Vec<(&'v Value, &'v Value, Option<usize>)> {
    let alike = |a: &'v Value| versions.iter().all(|b| b[name] == a[name]);
    match versions.first() {
        Some(first) if alike(first) => vec![(&first[name], first, None)],
        _ => versions
            .iter()
            .enumerate()
            .map(|(at, version)| (&version[name], version, Some(at)))
            .collect(),
    }
}

fn has_status(version: &Value) -> bool {
    version["subresources"]["status"].is_object()
}

/// Returns the versions as kube-apiserver shows them in a refusal.
fn shown(versions: &[Value]) -> String {
    let texts = versions.iter().map(|version| {
        let flag = |name: &str| version[name] == json!(true);
        format!(
            r#"{{"Name":{},"Served":{},"Storage":{},"Deprecated":{},"DeprecationWarning":{},"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}}"#,
            json!(version["name"].as_str().unwrap_or_default()),
            flag("served"),
            flag("storage"),
            flag("deprecated"),
            version["deprecationWarning"],
        )
    });
    format!("[{}]", texts.collect::<Vec<_>>().join(","))
}

fn names(versions: &[Value], causes: &mut Vec<Cause>) {
    let wrong = |detail: &str| {
        let message = format!("Invalid value: {}: {detail}", shown(versions));
        cause(INVALID, "spec.versions", message)
    };
    let stored = versions.iter().filter(|v| v["storage"] == json!(true));
    if stored.count() != 1 {
        causes.push(wrong(
            "must have exactly one version marked as storage version",
        ));
    }
    let mut known: Vec<&str> = Vec::new();
    for (at, version) in versions.iter().enumerate() {
        let field = |name: &str| format!("spec.versions[{at}].{name}");
        let name = version["name"].as_str().unwrap_or_default();
        if !dns_label(name) {
            causes.push(invalid(field("name"), &json!(name), DNS_LABEL));
        }
        if known.contains(&name) {
            causes.push(wrong("must contain unique version names"));
        }
        known.push(name);
        for flag in ["served", "storage"] {
            if !version[flag].is_boolean() {
                causes.push(cause(REQUIRED, field(flag), "Required value"));
            }
        }
        if let Some(warning) = version["deprecationWarning"].as_str() {
            let detail = match warning {
                _ if version["deprecated"] != json!(true) => {
                    "can only be set for deprecated versions"
                }
                "" => "must not be an empty string",
                long if long.len() > 256 => "must be <= 256 characters long",
                odd if odd.chars().any(char::is_control) => {
                    "must only contain printable UTF-8 characters"
                }
                _ => continue,
            };
            causes.push(invalid(
                field("deprecationWarning"),
                &json!(warning),
                detail,
            ));
        }
    }
}

fn schema(schema: &Value, path: &str, status: bool, causes: &mut Vec<Cause>) {
    let before = causes.len();
    let given = schema.as_object().into_iter().flatten();
    let mut given = given.filter(|(_, value)| !value.is_null());
    if status && given.any(|(name, _)| !AT_ROOT.contains(&name.as_str())) {
        let message = "Invalid value: only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the status subresource is enabled";
        causes.push(cause(INVALID, path, message));
    }
    if schema["nullable"] == json!(true) {
        let message = "Forbidden: nullable cannot be true at the root";
        causes.push(cause(FORBIDDEN, format!("{path}.nullable"), message));
    }
    let faults = Schema::parse(schema).err().map(|wrong| wrong.0);
    causes.extend(faults.into_iter().flatten().map(|fault| {
        let dot = match fault.field.as_str() {
            "" => "",
            at if at.starts_with('[') => "",
            _ => ".",
        };
        let field = format!("{path}{dot}{}", fault.field);
        Cause {
            field,
            ..Cause::from(fault)
        }
    }));
    // Rules see the types of a schema, which must be right.
    if causes.len() == before
        && let Err(faults) = Rules::compile(schema, path)
    {
        causes.extend(faults.into_iter().map(Cause::from));
    }
}

fn columns(columns: &Value, path: &str, causes: &mut Vec<Cause>) {
    for (at, column) in columns.as_array().into_iter().flatten().enumerate() {
        let field = |name: &str| format!("{path}[{at}].{name}");
        let text = |name: &str| column[name].as_str().unwrap_or_default();
        if text("name").is_empty() {
            causes.push(cause(REQUIRED, field("name"), "Required value"));
        }
        match text("type") {
            "" => causes.push(cause(REQUIRED, field("type"), "Required value")),
            "integer" | "number" | "string" | "boolean" | "date" => {}
            kind => {
                let detail = "must be one of boolean,date,integer,number,string";
                causes.push(invalid(field("type"), &json!(kind), detail));
            }
        }
        match text("format") {
            "" | "byte" | "date" | "date-time" | "double" | "float" | "int32" | "int64"
            | "password" => {}
            format => {
                let detail = "must be one of byte,date,date-time,double,float,int32,int64,password";
                causes.push(invalid(field("format"), &json!(format), detail));
            }
        }
        match text("jsonPath") {
            "" => causes.push(cause(REQUIRED, field("JSONPath"), "Required value")),
            path if path.starts_with('.') => {}
            path => {
                let detail = "must be a simple json path starting with .";
                causes.push(invalid(field("JSONPath"), &json!(path), detail));
            }
        }
    }
}

fn scale_paths(scale: &Value, path: &str, causes: &mut Vec<Cause>) {
    for (name, needed, below) in [
        ("specReplicasPath", true, &[".spec."][..]),
        ("statusReplicasPath", true, &[".status."][..]),
        ("labelSelectorPath", false, &[".spec.", ".status."][..]),
    ] {
        let (field, given) = (format!("{path}.{name}"), scale[name].as_str());
        match given.unwrap_or_default() {
            "" if needed => causes.push(cause(REQUIRED, field, "Required value")),
            "" => {}
            given if !given.starts_with('.') => {
                let detail = "must be a simple json path starting with .";
                causes.push(invalid(field, &json!(given), detail));
            }
            given if below.iter().any(|below| given.starts_with(below)) => {}
            given => {
                let detail = match below {
                    [one] => format!("should be a json path under {}", one.trim_end_matches('.')),
                    _ => "should be a json path under either .spec or .status".to_owned(),
                };
                causes.push(invalid(field, &json!(given), &detail));
            }
        }
    }
}

fn selectable(fields: &Value, schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    let mut known: Vec<String> = Vec::new();
    for (at, field) in fields.as_array().into_iter().flatten().enumerate() {
        let place = format!("{path}[{at}].jsonPath");
        let given = field["jsonPath"].as_str().unwrap_or_default();
        if given.is_empty() {
            causes.push(cause(REQUIRED, place, "Required value"));
            continue;
        }
        let value = json!(given);
        let (shown, found) = match vmhost_rules::resolve(given, schema, false) {
            Ok(found) => found,
            Err(why) => {
                let detail = format!("is an invalid path: {why}");
                causes.push(invalid(place, &value, &detail));
                continue;
            }
        };
        if shown == "metadata" || shown.starts_with("metadata.") {
            let detail = "must not point to fields in metadata";
            causes.push(invalid(place.clone(), &value, detail));
        }
        let kind = found["type"].as_str().unwrap_or_default();
        if !["string", "boolean", "integer"].contains(&kind) {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            causes.push(invalid(place.clone(), &value, detail));
        }
        if known.contains(&shown) {
            let message = format!("Duplicate value: {value}");
            causes.push(cause("FieldValueDuplicate", place, message));
        } else {
            known.push(shown);
        }
    }
    if known.len() > SELECTABLE {
        let count = known.len();
        let message = format!("Too many: {count}: must have at most {SELECTABLE} items");
        causes.push(cause("FieldValueTooMany", path, message));
    }
}
