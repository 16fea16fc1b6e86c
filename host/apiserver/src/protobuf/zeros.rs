//! Zeros that Go drops when it decodes an object.
//!
//! A field that is no pointer in Go and is not printed when it is not set has the same value
//! whether a body gives its zero or not: an object with `hostNetwork: false` is the one without.
//! Owns which fields those are: the table knows the pointers, the schema what is always printed.
//! Must not know what the schema does with a field that is absent.

use serde_json::Value;
use vmhost_schema::{Additional, Node};

use super::table::{self, Field, Kind, Message, Shape};

/// Drops the zeros of an object, in all its parts that both the table and the schema know.
pub(super) fn drop_from(of: &Message, node: &Node, object: &mut Value) {
    let Value::Object(fields) = object else {
        return;
    };
    fields.retain(|name, value| {
        if !(is_zero(value) || value.is_object() || value.is_array()) {
            return true;
        }
        let Some(below) = node.properties.get(name) else {
            return true;
        };
        let Some(field) = find(of, name) else {
            return true;
        };
        drop_below(field, below, value);
        node.requires(name) || !is_unset(field, value)
    });
}

fn drop_below(field: &Field, node: &Node, value: &mut Value) {
    let Some(of) = message_of(field) else {
        return;
    };
    match (field.shape, value) {
        (Shape::List, Value::Array(items)) => {
            if let Some(node) = &node.items {
                items.iter_mut().for_each(|item| drop_from(of, node, item));
            }
        }
        (Shape::Map, Value::Object(map)) => {
            if let Additional::Schema(node) = &node.additional {
                map.values_mut().for_each(|item| drop_from(of, node, item));
            }
        }
        (Shape::One, value) => drop_from(of, node, value),
        _ => {}
    }
}

/// Returns the field of a message, or of a message whose fields belong to it in JSON.
fn find<'m>(of: &'m Message, name: &str) -> Option<&'m Field> {
    let own = of.fields.iter().find(|field| field.name == name);
    own.or_else(|| {
        let mut inline = of.fields.iter().filter(|f| f.shape == Shape::Inline);
        inline.find_map(|field| find(message_of(field)?, name))
    })
}

fn message_of(field: &Field) -> Option<&'static Message> {
    match field.kind {
        Kind::Message(position) => table::at(position),
        _ => None,
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

/// Returns whether a value is the zero of the field's own type, and the field no pointer.
fn is_unset(field: &Field, value: &Value) -> bool {
    let fits = match field.kind {
        Kind::Text => value.is_string(),
        Kind::Bool => value.is_boolean(),
        Kind::Int | Kind::Double => value.is_number(),
        _ => false,
    };
    fits && field.always && field.shape == Shape::One && is_zero(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::named;
    use super::*;

    #[test]
    fn zeros_of_pointers_and_of_required_fields_stay() {
        let mut pod = json!({
            "metadata": { "name": "" },
            "spec": {
                "hostNetwork": false, "hostUsers": false, "restartPolicy": "",
                "terminationGracePeriodSeconds": 0,
                "containers": [{
                    "name": "", "workingDir": "", "stdin": false,
                    "env": [{ "name": "", "value": "" }],
                    "ports": [{ "containerPort": 0, "hostPort": 0 }],
                    "livenessProbe": { "httpGet": { "port": 0, "path": "" }, "successThreshold": 0 },
                    "securityContext": { "privileged": false },
                }],
                "volumes": [{ "name": "", "hostPath": { "path": "", "type": "" } }],
            },
        });
        let schema = vmhost_schema::builtin("io.k8s.api.core.v1.Pod").unwrap();
        drop_from(named("v1", "Pod").unwrap(), schema.root(), &mut pod);
        let expected = json!({
            "metadata": { "name": "" },
            "spec": {
                "hostUsers": false, "terminationGracePeriodSeconds": 0,
                "containers": [{
                    "name": "", "env": [{ "name": "" }], "ports": [{ "containerPort": 0 }],
                    "livenessProbe": { "httpGet": { "port": 0 } },
                    "securityContext": { "privileged": false },
                }],
                "volumes": [{ "name": "", "hostPath": { "path": "", "type": "" } }],
            },
        });
        assert_eq!(pod, expected);
    }
}
