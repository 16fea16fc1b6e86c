//! Conversions without a host: both directions, and back.

use super::*;

fn vm(version: &str, annotations: Option<Value>, spec: Value) -> Value {
    let mut metadata = json!({ "name": "wx", "namespace": "default", "uid": "u-1" });
    if let Some(annotations) = annotations {
        metadata["annotations"] = annotations;
    }
    let api_version = format!("cloud.waibizi.com/{version}");
    json!({ "apiVersion": api_version, "kind": "VirtualMachine", "metadata": metadata, "spec": spec })
}

fn convert(object: &Value, version: &str) -> Value {
    let desired = format!("cloud.waibizi.com/{version}");
    let text = json!({ "desiredAPIVersion": desired, "objects": [object] }).to_string();
    let mut converted = VmV2::convert(Batch::of("virtualmachines", &text).unwrap()).unwrap();
    assert_eq!(converted.len(), 1);
    converted.remove(0)
}

#[test]
fn sizes_become_quantities_and_the_status_a_phase() {
    let old = json!({ "uuid": "x", "name": "n", "image": "wx", "memory": 4096, "disk": 500, "status": "creating" });
    let new = json!({ "uuid": "x", "name": "n", "image": "wx", "phase": "creating",
        "resources": { "memory": "4096Mi", "disk": "500Gi" } });
    assert_eq!(
        convert(&vm("v1", None, old.clone()), "v2"),
        vm("v2", None, new.clone())
    );
    assert_eq!(convert(&vm("v2", None, new), "v1"), vm("v1", None, old));
}

#[test]
fn what_v1_cannot_say_is_kept_in_an_annotation() {
    let new = vm(
        "v2",
        None,
        json!({ "resources": { "memory": "4.5Gi", "disk": "500Gi", "gpu": 1 }, "tags": ["a"] }),
    );
    let old = convert(&new, "v1");
    let kept = r#"{"memory":{"as":4608,"text":"4.5Gi"},"resources":{"gpu":1},"tags":["a"]}"#;
    assert_eq!(old["spec"], json!({ "memory": 4608, "disk": 500 }));
    assert_eq!(old["metadata"]["annotations"][KEPT], kept);
    assert_eq!(convert(&old, "v2"), new);
}

#[test]
fn a_size_that_was_changed_since_counts() {
    let new = vm("v2", None, json!({ "resources": { "memory": "4.5Gi" } }));
    let mut old = convert(&new, "v1");
    old["spec"]["memory"] = json!(8192);
    assert_eq!(convert(&old, "v2")["spec"]["resources"]["memory"], "8192Mi");
}

#[test]
fn nothing_gets_lost_on_the_way_and_back() {
    let own = json!({ "team": "a" });
    for spec in [
        json!({}),
        json!({ "resources": {} }),
        json!({ "resources": null }),
        json!({ "resources": { "memory": "1500M", "disk": "1.5Ti" }, "phase": "complete", "tags": [] }),
        json!({ "resources": { "memory": "none", "disk": 7 } }),
        json!({ "resources": { "memory": "0.5Gi", "disk": "04Gi" }, "phase": null }),
        json!({ "resources": { "memory": "-5Mi", "disk": "1e3" }, "image": "wx", "other": { "deep": [1] } }),
        json!({ "resources": { "memory": "9007199254740993Mi" } }),
    ] {
        for annotations in [None, Some(own.clone())] {
            let new = vm("v2", annotations, spec.clone());
            assert_eq!(convert(&convert(&new, "v1"), "v2"), new);
        }
    }
    for spec in [
        json!({}),
        json!({ "memory": 0, "disk": -1, "status": "" }),
        json!({ "memory": 9_007_199_254_740_993_i64, "status": null, "image": "wx" }),
        json!({ "memory": 1.5, "disk": null }),
    ] {
        let old = vm("v1", Some(own.clone()), spec);
        assert_eq!(convert(&convert(&old, "v2"), "v1"), old);
    }
    let bare =
        json!({ "apiVersion": "cloud.waibizi.com/v2", "kind": "VirtualMachine", "spec": "odd" });
    assert_eq!(convert(&convert(&bare, "v1"), "v2"), bare);
}

#[test]
fn an_annotation_that_is_no_json_stays() {
    let odd = json!({ "cloud.waibizi.com/v2-only": "{" });
    let old = vm("v1", Some(odd.clone()), json!({ "memory": 1 }));
    let new = convert(&old, "v2");
    assert_eq!(new["metadata"]["annotations"], odd);
    assert_eq!(convert(&new, "v1"), old);
}
