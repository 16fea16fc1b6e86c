//! Reads the documents in the way that clients do.

use prost::Message;
use serde_json::{Value, json};

use super::proto::{Document, Operation};
use super::*;

fn kinds() -> Vec<KindInfo> {
    let widget = json!({
        "type": "object", "description": "A widget.", "required": ["spec"],
        "properties": {"spec": {"type": "object", "properties": {
            "size": {"type": "integer", "minimum": 1, "default": 3},
            "name": {"type": "string", "nullable": true, "enum": ["a", "b"]},
            "count": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {"type": "string"}}},
            "ports": {"type": "array", "items": {"type": "object", "properties": {"port": {"type": "integer"}}}},
            "env": {"type": "object", "additionalProperties": {"type": "string"}},
        }}},
    });
    let kind =
        |group: &str, kind: &str, plural: &str, namespaced, subresources: &[&str], schema| {
            KindInfo {
                group: group.to_owned(),
                version: "v1".to_owned(),
                kind: kind.to_owned(),
                plural: plural.to_owned(),
                namespaced,
                subresources: subresources.iter().map(|name| (*name).to_owned()).collect(),
                schema,
            }
        };
    let config_map = json!({ "$ref": "io.k8s.api.core.v1.ConfigMap" });
    vec![
        kind("", "ConfigMap", "configmaps", true, &[], config_map),
        kind("", "Namespace", "namespaces", false, &["status"], json!({})),
        kind(
            "cases.vmhost.dev",
            "Widget",
            "widgets",
            true,
            &["status", "scale"],
            widget,
        ),
    ]
}

#[test]
fn the_index_names_every_group_version_and_its_content() {
    let index = v3_index(&kinds());
    let urls = index["paths"].as_object().unwrap();
    assert_eq!(
        urls.keys().collect::<Vec<_>>(),
        ["api/v1", "apis/cases.vmhost.dev/v1"]
    );
    let url = |index: &Value| {
        index["paths"]["apis/cases.vmhost.dev/v1"]["serverRelativeURL"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert!(url(&index).starts_with("/openapi/v3/apis/cases.vmhost.dev/v1?hash="));
    let mut changed = kinds();
    changed[2].schema["description"] = json!("Another.");
    assert_ne!(url(&index), url(&v3_index(&changed)));
    assert_eq!(
        index["paths"]["api/v1"],
        v3_index(&changed)["paths"]["api/v1"]
    );
}

#[test]
fn v3_says_what_a_patch_takes() {
    assert!(v3_group_version("x", "v1", &kinds()).is_none());
    let document = v3_group_version("cases.vmhost.dev", "v1", &kinds()).unwrap();
    let paths = document["paths"].as_object().unwrap();
    assert_eq!(
        paths.keys().collect::<Vec<_>>(),
        [
            "/apis/cases.vmhost.dev/v1/namespaces/{namespace}/widgets",
            "/apis/cases.vmhost.dev/v1/namespaces/{namespace}/widgets/{name}",
            "/apis/cases.vmhost.dev/v1/namespaces/{namespace}/widgets/{name}/scale",
            "/apis/cases.vmhost.dev/v1/namespaces/{namespace}/widgets/{name}/status",
            "/apis/cases.vmhost.dev/v1/widgets",
        ]
    );
    let patch = &paths["/apis/cases.vmhost.dev/v1/namespaces/{namespace}/widgets/{name}"]["patch"];
    assert_eq!(
        patch["x-kubernetes-group-version-kind"],
        json!({"group": "cases.vmhost.dev", "version": "v1", "kind": "Widget"})
    );
    assert_eq!(patch["x-kubernetes-action"], "patch");
    assert_eq!(
        patch["operationId"],
        "patchCasesVmhostDevV1NamespacedWidget"
    );
    let names: Vec<&str> = patch["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|parameter| parameter["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["dryRun", "fieldManager", "fieldValidation", "force"]
    );
}

fn references<'a>(value: &'a Value, out: &mut Vec<&'a str>) {
    match value {
        Value::Object(map) => {
            out.extend(map.get("$ref").and_then(Value::as_str));
            map.values().for_each(|value| references(value, out));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, out)),
        _ => {}
    }
}

#[test]
fn every_reference_leads_somewhere() {
    let v3 = v3_group_version("cases.vmhost.dev", "v1", &kinds()).unwrap();
    let v2 = v2(&kinds());
    for (document, prefix, definitions) in [
        (&v3, "#/components/schemas/", &v3["components"]["schemas"]),
        (&v2, "#/definitions/", &v2["definitions"]),
    ] {
        let mut found = Vec::new();
        references(document, &mut found);
        assert!(!found.is_empty());
        for reference in found {
            let name = reference.strip_prefix(prefix).unwrap();
            assert!(definitions.get(name).is_some(), "{reference}");
        }
    }
    assert_eq!(
        v3["components"]["schemas"]["dev.vmhost.cases.v1.Widget"]["properties"]["spec"],
        kinds()[2].schema["properties"]["spec"]
    );
}

/// Returns the query parameters, as `kubectl`'s query parameter verifier finds them.
fn parameters(operation: &Operation) -> Vec<&str> {
    let parameter = |item: &'_ super::proto::ParametersItem| {
        let query = item.parameter.as_ref()?.non_body.as_ref()?.query.as_ref()?;
        Some(query.name.clone())
    };
    let names: Vec<String> = operation.parameters.iter().filter_map(parameter).collect();
    ["dryRun", "fieldValidation"]
        .into_iter()
        .filter(|name| names.iter().any(|one| one == name))
        .collect()
}

#[test]
fn v2_is_what_kubectl_1_27_looks_for() {
    let document = Document::decode(v2_protobuf(&kinds()).as_slice()).unwrap();
    let paths = document.paths.unwrap().path;
    let path = |name: &str| {
        paths
            .iter()
            .find(|path| path.name == name)
            .and_then(|path| path.value.clone())
            .unwrap()
    };
    let patch = path("/api/v1/namespaces/{namespace}/configmaps/{name}")
        .patch
        .unwrap();
    assert_eq!(parameters(&patch), ["dryRun", "fieldValidation"]);
    let extension = patch
        .vendor_extension
        .iter()
        .find(|one| one.name == "x-kubernetes-group-version-kind")
        .unwrap()
        .clone();
    let kind: Value = serde_json::from_str(&extension.value.unwrap().yaml).unwrap();
    assert_eq!(
        kind,
        json!({"group": "", "version": "v1", "kind": "ConfigMap"})
    );

    let definitions = document.definitions.unwrap().additional_properties;
    let names: Vec<&str> = definitions.iter().map(|one| one.name.as_str()).collect();
    for name in [
        "dev.vmhost.cases.v1.Widget",
        "dev.vmhost.cases.v1.WidgetList",
        "io.k8s.api.core.v1.ConfigMap",
    ] {
        assert!(names.contains(&name), "{names:?}");
    }
}

#[test]
fn v2_says_no_more_than_it_can() {
    let document = v2(&kinds());
    let spec =
        &document["definitions"]["dev.vmhost.cases.v1.Widget"]["properties"]["spec"]["properties"];
    assert_eq!(
        *spec,
        json!({
            "size": {"type": "integer", "minimum": 1, "default": 3},
            "name": {"enum": ["a", "b"]},
            "count": {"x-kubernetes-int-or-string": true},
            "open": {"x-kubernetes-preserve-unknown-fields": true},
            "ports": {"type": "array", "items": {"type": "object", "properties": {"port": {"type": "integer"}}}},
            "env": {"type": "object", "additionalProperties": {"type": "string"}},
        })
    );
    let open = &document["definitions"]["io.k8s.api.core.v1.Namespace"];
    assert_eq!(
        (&open["type"], open.get("properties")),
        (&json!("object"), None)
    );
}

#[test]
fn what_is_open_or_within_an_object_is_published_as_by_a_real_server() {
    let mut kinds = kinds();
    let defined = |kinds: &[KindInfo]| {
        let v3 = v3_group_version("cases.vmhost.dev", "v1", kinds).unwrap();
        let name = "dev.vmhost.cases.v1.Widget";
        let in_v3 = v3["components"]["schemas"][name].clone();
        (v2(kinds)["definitions"][name].clone(), in_v3)
    };
    let mark = "x-kubernetes-preserve-unknown-fields";
    kinds[2].schema =
        json!({"type": "object", mark: true, "properties": {"a": {"type": "string"}}});
    let (in_v2, in_v3) = defined(&kinds);
    assert_eq!((in_v2.get(mark), in_v2.get("properties")), (None, None));
    assert_eq!(in_v3[mark], true);
    assert_eq!(in_v3["properties"]["a"], json!({"type": "string"}));

    let inner = json!({"type": "object", "x-kubernetes-embedded-resource": true});
    let mut open = inner.clone();
    open[mark] = json!(true);
    kinds[2].schema = json!({
        "type": "object",
        "required": ["inner", "maybe"],
        "properties": {
            "inner": inner,
            "open": open,
            "maybe": {"type": "string", "nullable": true},
            "list": {"type": "array", "nullable": true, "items": {"type": "string"}},
        },
    });
    let (in_v2, in_v3) = defined(&kinds);
    let described =
        |schema: &Value, field: &str| schema[field]["description"].as_str().map(str::len);
    let fields = |schema: &Value, of: &str| schema["properties"][of]["properties"].clone();
    assert!(
        described(&fields(&in_v2, "inner"), "kind") > Some(20),
        "{in_v2}"
    );
    assert_eq!(fields(&in_v2, "open"), Value::Null);
    assert!(
        described(&fields(&in_v3, "open"), "metadata") > Some(20),
        "{in_v3}"
    );
    assert_eq!(in_v2["required"], json!(["inner"]));
    let required = |schema: &Value, of: &str| schema["properties"][of]["required"].clone();
    let own = json!(["kind", "apiVersion"]);
    assert_eq!(required(&in_v2, "inner"), own);
    assert_eq!(required(&in_v2, "open"), Value::Null);
    assert_eq!(required(&in_v3, "open"), own);
    assert_eq!(in_v2["properties"]["list"], json!({}));
}

#[test]
fn field_numbers_are_gnostics() {
    let document = super::convert::document(&json!({
        "swagger": "2.0",
        "definitions": {"D": {"type": "string", "x-a": 1}},
    }));
    // Document{swagger=1, info=2, paths=8, definitions=9{1{name=1, Schema=2{type=22{1},
    // vendor_extension=31{name=1, Any=2{yaml=2}}}}}}
    let schema = [
        &b"\xb2\x01\x08\x0a\x06string"[..],
        b"\xfa\x01\x0b\x0a\x03x-a\x12\x04\x12\x021\n",
    ]
    .concat();
    let named = [&b"\x0a\x01D\x12"[..], &[schema.len() as u8], &schema].concat();
    let definitions = [&b"\x0a"[..], &[named.len() as u8], &named].concat();
    let expect = [
        &b"\x0a\x032.0\x12\x00\x42\x00\x4a"[..],
        &[definitions.len() as u8],
        &definitions,
    ]
    .concat();
    assert_eq!(document.encode_to_vec(), expect);
}
