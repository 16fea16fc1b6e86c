//! Converts a v2 document from JSON to gnostic's messages.
//!
//! Must not know Kubernetes: it converts every part that `proto` has a message for.

use serde_json::{Map, Value};

use super::proto::{
    AdditionalPropertiesItem, Any, BodyParameter, Definitions, Document, Info, ItemsItem, NamedAny,
    NamedPathItem, NamedResponseValue, NamedSchema, NonBodyParameter, Operation, Parameter,
    ParametersItem, PathItem, PathParameter, Paths, QueryParameter, Response, ResponseValue,
    Responses, Schema, SchemaItem, TypeItem,
};

fn text(value: &Value, name: &str) -> String {
    value
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

fn texts(value: &Value, name: &str) -> Vec<String> {
    let items = value
        .get(name)
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn flag(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool).unwrap_or(false)
}

fn entries<'a>(
    value: &'a Value,
    name: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
    value
        .get(name)
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::iter)
}

/// Returns the value as YAML, of which JSON is a subset.
fn any(value: &Value) -> Any {
    Any {
        yaml: format!("{value}\n"),
    }
}

fn extensions(value: &Value) -> Vec<NamedAny> {
    let fields = value.as_object().into_iter().flatten();
    fields
        .filter(|(name, _)| name.starts_with("x-"))
        .map(|(name, value)| NamedAny {
            name: name.clone(),
            value: Some(any(value)),
        })
        .collect()
}

pub(super) fn document(value: &Value) -> Document {
    let info = &value["info"];
    Document {
        swagger: text(value, "swagger"),
        info: Some(Info {
            title: text(info, "title"),
            version: text(info, "version"),
        }),
        paths: Some(Paths {
            path: entries(value, "paths")
                .map(|(name, value)| NamedPathItem {
                    name: name.clone(),
                    value: Some(path_item(value)),
                })
                .collect(),
        }),
        definitions: Some(named_schemas(value, "definitions")),
    }
}

fn named_schemas(value: &Value, name: &str) -> Definitions {
    let named = |(name, value): (&String, &Value)| NamedSchema {
        name: name.clone(),
        value: Some(schema(value)),
    };
    Definitions {
        additional_properties: entries(value, name).map(named).collect(),
    }
}

fn path_item(value: &Value) -> PathItem {
    let one = |name: &str| value.get(name).map(operation);
    PathItem {
        get: one("get"),
        put: one("put"),
        post: one("post"),
        delete: one("delete"),
        patch: one("patch"),
        parameters: parameters(value),
    }
}

fn operation(value: &Value) -> Operation {
    let response = |(code, value): (&String, &Value)| NamedResponseValue {
        name: code.clone(),
        value: Some(ResponseValue {
            response: Some(Response {
                description: text(value, "description"),
                schema: value.get("schema").map(|value| SchemaItem {
                    schema: Some(schema(value)),
                }),
            }),
        }),
    };
    Operation {
        tags: texts(value, "tags"),
        description: text(value, "description"),
        operation_id: text(value, "operationId"),
        produces: texts(value, "produces"),
        consumes: texts(value, "consumes"),
        parameters: parameters(value),
        responses: Some(Responses {
            response_code: entries(value, "responses").map(response).collect(),
        }),
        schemes: texts(value, "schemes"),
        vendor_extension: extensions(value),
    }
}

fn parameters(value: &Value) -> Vec<ParametersItem> {
    let items = value
        .get("parameters")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    items
        .map(|value| ParametersItem {
            parameter: Some(parameter(value)),
        })
        .collect()
}

fn parameter(value: &Value) -> Parameter {
    let (name, place, description) = (
        text(value, "name"),
        text(value, "in"),
        text(value, "description"),
    );
    let (required, unique_items, kind) = (
        flag(value, "required"),
        flag(value, "uniqueItems"),
        text(value, "type"),
    );
    match place.as_str() {
        "body" => {
            let schema = value.get("schema").map(schema);
            Parameter {
                body: Some(BodyParameter {
                    description,
                    name,
                    r#in: place,
                    required,
                    schema,
                }),
                non_body: None,
            }
        }
        "path" => {
            let path = Some(PathParameter {
                required,
                r#in: place,
                description,
                name,
                r#type: kind,
                unique_items,
            });
            Parameter {
                body: None,
                non_body: Some(NonBodyParameter { query: None, path }),
            }
        }
        _ => {
            let query = Some(QueryParameter {
                required,
                r#in: place,
                description,
                name,
                r#type: kind,
                unique_items,
            });
            Parameter {
                body: None,
                non_body: Some(NonBodyParameter { query, path: None }),
            }
        }
    }
}

fn schema(value: &Value) -> Schema {
    let number = |name: &str| value.get(name).and_then(Value::as_f64).unwrap_or_default();
    Schema {
        reference: text(value, "$ref"),
        format: text(value, "format"),
        description: text(value, "description"),
        maximum: number("maximum"),
        minimum: number("minimum"),
        pattern: text(value, "pattern"),
        required: texts(value, "required"),
        allowed: value
            .get("enum")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(any)
            .collect(),
        additional_properties: value.get("additionalProperties").map(|value| match value {
            Value::Bool(allowed) => AdditionalPropertiesItem {
                schema: None,
                boolean: Some(*allowed),
            },
            other => AdditionalPropertiesItem {
                schema: Some(Box::new(schema(other))),
                boolean: None,
            },
        }),
        r#type: value
            .get("type")
            .and_then(Value::as_str)
            .map(|kind| TypeItem {
                value: vec![kind.to_owned()],
            }),
        items: value.get("items").map(|value| ItemsItem {
            schema: vec![schema(value)],
        }),
        properties: value
            .get("properties")
            .map(|_| named_schemas(value, "properties")),
        vendor_extension: extensions(value),
    }
}
