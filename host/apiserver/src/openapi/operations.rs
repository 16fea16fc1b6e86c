//! The operations on a kind, path by path.
//!
//! Follows what k8s.io/apiserver `endpoints/installer.go` and apiextensions'
//! `controller/openapi/builder` publish. Must not know schemas.

use serde_json::{Map, Value, json};

use super::definitions::{DELETE_OPTIONS, PATCH, STATUS, list_name, name};
use super::info::{Dialect, KindInfo, group_version_path};

/// A query parameter: name, type, description.
type Parameter = (&'static str, &'static str, &'static str);

const DRY_RUN: Parameter = (
    "dryRun",
    "string",
    "All: process the request, but persist nothing.",
);
const FIELD_MANAGER: Parameter = (
    "fieldManager",
    "string",
    "Who makes the change; required for apply.",
);
const FIELD_VALIDATION: Parameter = (
    "fieldValidation",
    "string",
    "Ignore, Warn or Strict: what to do about unknown and duplicate fields.",
);
const FORCE: Parameter = (
    "force",
    "boolean",
    "Take fields from other managers; for apply only.",
);
const PRETTY: Parameter = (
    "pretty",
    "string",
    "Whether to print the answer with indentation.",
);
const GRACE_PERIOD: Parameter = (
    "gracePeriodSeconds",
    "integer",
    "Seconds until the object is deleted.",
);
const PROPAGATION: Parameter = (
    "propagationPolicy",
    "string",
    "Orphan, Background or Foreground.",
);
const LIST: [Parameter; 10] = [
    (
        "allowWatchBookmarks",
        "boolean",
        "Send events of type BOOKMARK.",
    ),
    ("continue", "string", "Where the last page ended."),
    (
        "fieldSelector",
        "string",
        "Restricts the objects by their fields.",
    ),
    (
        "labelSelector",
        "string",
        "Restricts the objects by their labels.",
    ),
    ("limit", "integer", "The most objects in one answer."),
    ("resourceVersion", "string", "Which versions may be served."),
    (
        "resourceVersionMatch",
        "string",
        "How resourceVersion is meant.",
    ),
    (
        "sendInitialEvents",
        "boolean",
        "Begin a watch with the objects that are there.",
    ),
    (
        "timeoutSeconds",
        "integer",
        "The longest time the call may take.",
    ),
    (
        "watch",
        "boolean",
        "Send changes as they come instead of a list.",
    ),
];

/// The HTTP method, `x-kubernetes-action`, the prefix of the operation's id, and its query
/// parameters.
struct Verb {
    method: &'static str,
    action: &'static str,
    id: &'static str,
    parameters: &'static [Parameter],
}

const GET: Verb = Verb {
    method: "get",
    action: "get",
    id: "read",
    parameters: &[],
};
const PUT: Verb = Verb {
    method: "put",
    action: "put",
    id: "replace",
    parameters: &[DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION],
};
const PATCH_VERB: Verb = Verb {
    method: "patch",
    action: "patch",
    id: "patch",
    parameters: &[DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION, FORCE],
};
const DELETE: Verb = Verb {
    method: "delete",
    action: "delete",
    id: "delete",
    parameters: &[DRY_RUN, GRACE_PERIOD, PROPAGATION],
};
const LIST_VERB: Verb = Verb {
    method: "get",
    action: "list",
    id: "list",
    parameters: &LIST,
};
const POST: Verb = Verb {
    method: "post",
    action: "post",
    id: "create",
    parameters: &[DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION],
};
const DELETE_MANY: Verb = Verb {
    method: "delete",
    action: "deletecollection",
    id: "deleteCollection",
    parameters: &LIST,
};

/// Returns all paths of the kinds.
pub(super) fn paths(kinds: &[&KindInfo], dialect: Dialect) -> Map<String, Value> {
    let mut out = Map::new();
    for kind in kinds {
        let base = format!("/{}", group_version_path(&kind.group, &kind.version));
        let collection = if kind.namespaced {
            format!("{base}/namespaces/{{namespace}}/{}", kind.plural)
        } else {
            format!("{base}/{}", kind.plural)
        };
        let writer = Writer { kind, dialect };
        out.insert(
            collection.clone(),
            writer.path(&[&LIST_VERB, &POST, &DELETE_MANY], Scope::Collection),
        );
        out.insert(
            format!("{collection}/{{name}}"),
            writer.path(&[&GET, &PUT, &PATCH_VERB, &DELETE], Scope::Object),
        );
        for subresource in &kind.subresources {
            let path = format!("{collection}/{{name}}/{subresource}");
            out.insert(
                path,
                writer.path(&[&GET, &PUT, &PATCH_VERB], Scope::Subresource(subresource)),
            );
        }
        if kind.namespaced {
            out.insert(
                format!("{base}/{}", kind.plural),
                writer.path(&[&LIST_VERB], Scope::Everywhere),
            );
        }
    }
    out
}

#[derive(Clone, Copy)]
enum Scope<'a> {
    Collection,
    Everywhere,
    Object,
    Subresource(&'a str),
}

struct Writer<'a> {
    kind: &'a KindInfo,
    dialect: Dialect,
}

impl Writer<'_> {
    fn path(&self, verbs: &[&Verb], scope: Scope<'_>) -> Value {
        let mut out = Map::new();
        for verb in verbs {
            out.insert(verb.method.to_owned(), self.operation(verb, scope));
        }
        let mut parameters = Vec::new();
        if matches!(scope, Scope::Object | Scope::Subresource(_)) {
            parameters.push(self.parameter(("name", "string", "Name of the object."), "path"));
        }
        if self.kind.namespaced && !matches!(scope, Scope::Everywhere) {
            parameters
                .push(self.parameter(("namespace", "string", "Namespace of the object."), "path"));
        }
        parameters.push(self.parameter(PRETTY, "query"));
        out.insert("parameters".to_owned(), json!(parameters));
        Value::Object(out)
    }

    fn parameter(&self, (name, kind, description): Parameter, place: &str) -> Value {
        let mut out = json!({ "name": name, "in": place, "description": description });
        if place == "path" {
            out["required"] = json!(true);
        }
        match self.dialect {
            Dialect::V2 => {
                out["type"] = json!(kind);
                out["uniqueItems"] = json!(true);
            }
            Dialect::V3 => out["schema"] = json!({ "type": kind, "uniqueItems": true }),
        }
        out
    }

    fn operation(&self, verb: &Verb, scope: Scope<'_>) -> Value {
        let kind = self.kind;
        let (group, version, kind_name) = match scope {
            Scope::Subresource("scale") => ("autoscaling", "v1", "Scale"),
            _ => (
                kind.group.as_str(),
                kind.version.as_str(),
                kind.kind.as_str(),
            ),
        };
        let object = match scope {
            // The schema of scale is open: clients find it by its kind.
            Scope::Subresource("scale") => json!({ "type": "object" }),
            _ => self.dialect.reference(&name(kind)),
        };
        let answer = match verb.action {
            "list" => self.dialect.reference(&list_name(kind)),
            "delete" | "deletecollection" => self.dialect.reference(STATUS),
            _ => object.clone(),
        };
        let body = match verb.action {
            "post" | "put" => Some(object),
            "patch" => Some(self.dialect.reference(PATCH)),
            "delete" | "deletecollection" => Some(self.dialect.reference(DELETE_OPTIONS)),
            _ => None,
        };
        let mut parameters: Vec<Value> = verb
            .parameters
            .iter()
            .map(|parameter| self.parameter(*parameter, "query"))
            .collect();
        let mut out = json!({
            "description": format!("{} {kind_name}", verb.id),
            "operationId": self.operation_id(verb, scope),
            "tags": [format!("{}_{}", camel(&group_word(&kind.group), false), kind.version)],
            "x-kubernetes-action": verb.action,
            "x-kubernetes-group-version-kind": { "group": group, "version": version, "kind": kind_name },
        });
        match self.dialect {
            Dialect::V2 => {
                out["consumes"] = json!(self.consumes(verb));
                out["produces"] = json!(["application/json"]);
                out["schemes"] = json!(["https"]);
                if let Some(schema) = body {
                    let required = !verb.action.starts_with("delete");
                    parameters.insert(0, json!({ "name": "body", "in": "body", "required": required, "schema": schema }));
                }
                out["responses"] = json!({ "200": { "description": "OK", "schema": answer } });
            }
            Dialect::V3 => {
                if let Some(schema) = body {
                    let content: Map<String, Value> = self
                        .consumes(verb)
                        .into_iter()
                        .map(|media| (media.to_owned(), json!({ "schema": schema })))
                        .collect();
                    out["requestBody"] = json!({ "content": content });
                }
                let content = json!({ "application/json": { "schema": answer } });
                out["responses"] = json!({ "200": { "description": "OK", "content": content } });
            }
        }
        if !parameters.is_empty() {
            out["parameters"] = json!(parameters);
        }
        out
    }

    fn consumes(&self, verb: &Verb) -> Vec<&'static str> {
        if verb.action == "patch" {
            vec![
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/apply-patch+yaml",
            ]
        } else {
            vec!["application/json"]
        }
    }

    fn operation_id(&self, verb: &Verb, scope: Scope<'_>) -> String {
        let kind = self.kind;
        let group = camel(&group_word(&kind.group), true);
        let version = camel(&kind.version, true);
        let namespaced = if kind.namespaced && !matches!(scope, Scope::Everywhere) {
            "Namespaced"
        } else {
            ""
        };
        let tail = match scope {
            Scope::Subresource(name) => camel(name, true),
            Scope::Everywhere => "ForAllNamespaces".to_owned(),
            Scope::Collection | Scope::Object => String::new(),
        };
        format!("{}{group}{version}{namespaced}{}{tail}", verb.id, kind.kind)
    }
}

fn group_word(group: &str) -> String {
    if group.is_empty() {
        "core".to_owned()
    } else {
        group.trim_end_matches(".k8s.io").to_owned()
    }
}

/// Returns `cases.vmhost.dev` as `CasesVmhostDev` or `casesVmhostDev`.
fn camel(text: &str, first: bool) -> String {
    let mut upper = first;
    let mut out = String::new();
    for letter in text.chars() {
        if letter.is_ascii_alphanumeric() {
            out.push(if upper {
                letter.to_ascii_uppercase()
            } else {
                letter
            });
            upper = false;
        } else {
            upper = true;
        }
    }
    out
}
