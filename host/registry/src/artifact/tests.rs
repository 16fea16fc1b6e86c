//! The form of the documents, and which are refused.

use serde_json::{Value, json};

use super::*;

fn refused(manifest: &Value) -> String {
    let manifest = serde_json::to_vec(manifest).unwrap();
    let error = Manifest::component("r.example/vm:1", &manifest).unwrap_err();
    error.to_string()
}

#[test]
fn the_documents_are_those_of_the_format() {
    let exports = ["vmhost:plugin/controller@1.0.0".to_owned()];
    let interfaces = Interfaces {
        exports: &exports,
        imports: &[],
    };
    let config = serde_json::to_vec(&config(b"wasm", interfaces)).unwrap();
    let layer = digest::of(b"wasm");
    assert_eq!(
        serde_json::from_slice::<Value>(&config).unwrap(),
        json!({
            "created": "1970-01-01T00:00:00Z", "architecture": "wasm", "os": "wasip2",
            "layerDigests": [layer],
            "component": { "exports": exports, "imports": [] }
        })
    );
    let manifest = Manifest::of_component(&config, b"wasm", BTreeMap::new());
    let document = serde_json::to_value(&manifest).unwrap();
    assert_eq!(
        document,
        json!({
            "schemaVersion": 2, "mediaType": MANIFEST_TYPE,
            "config": { "mediaType": CONFIG_TYPE, "digest": digest::of(&config), "size": config.len() },
            "layers": [{ "mediaType": LAYER_TYPE, "digest": layer, "size": 4 }]
        })
    );
    let bytes = serde_json::to_vec(&document).unwrap();
    let found = Manifest::component("r.example/vm:1", &bytes).unwrap();
    assert_eq!((found.digest, found.size), (layer, 4));
    let titled = BTreeMap::from([(TITLE.to_owned(), "vm".to_owned())]);
    let manifest = Manifest::of_component(&config, b"wasm", titled);
    let document = serde_json::to_value(&manifest).unwrap();
    assert_eq!(
        document["layers"][0]["annotations"],
        json!({ TITLE: "vm.wasm" })
    );
}

/// As `wkg oci push` writes them, and `oras push` with `--config` and a file.
#[test]
fn a_manifest_of_wkg_and_one_of_oras_are_components() {
    let (config, layer) = (digest::of(b"{}"), digest::of(b"wasm"));
    let wkg = json!({
        "schemaVersion": 2, "mediaType": MANIFEST_TYPE,
        "config": { "mediaType": CONFIG_TYPE, "digest": config, "size": 2 },
        "layers": [{ "mediaType": LAYER_TYPE, "digest": layer, "size": 4 }],
        "annotations": { "org.opencontainers.image.version": "1.0.0" }
    });
    let oras = json!({
        "schemaVersion": 2, "mediaType": MANIFEST_TYPE,
        "artifactType": CONFIG_TYPE,
        "config": {
            "mediaType": CONFIG_TYPE, "digest": config, "size": 2,
            "annotations": { TITLE: "config.json" }
        },
        "layers": [{
            "mediaType": LAYER_TYPE, "digest": layer, "size": 4,
            "annotations": { TITLE: "vm.wasm" }
        }],
        "annotations": { "org.opencontainers.image.created": "2025-01-01T00:00:00Z" }
    });
    for manifest in [wkg, oras] {
        let json = serde_json::to_vec(&manifest).unwrap();
        let found = Manifest::component("r.example/vm:1", &json).unwrap();
        assert_eq!((found.digest, found.size), (layer.clone(), 4));
    }
}

#[test]
fn what_is_no_component_is_refused_with_what_it_is() {
    let manifest = Manifest::of_component(b"{}", b"wasm", BTreeMap::new());
    let good = serde_json::to_value(manifest).unwrap();
    let changed = |pointer: &str, to: Value| {
        let mut other = good.clone();
        *other.pointer_mut(pointer).unwrap() = to;
        refused(&other)
    };
    let layer = good.pointer("/layers/0").unwrap().clone();
    let two = changed("/layers", json!([layer, layer]));
    assert!(two.contains("has 2 layers"), "{two}");
    let none = changed("/layers", json!([]));
    assert!(none.contains("has 0 layers"), "{none}");
    let list = changed("/mediaType", json!(INDEX_TYPE));
    assert!(list.contains("a list of several artifacts"), "{list}");
    let image = "application/vnd.oci.image.config.v1+json";
    let image = changed("/config/mediaType", json!(image));
    assert!(
        image.contains("image.config") && image.contains("vmhost push"),
        "{image}"
    );
    let tar = changed("/layers/0/mediaType", json!("application/tar\n"));
    assert!(
        tar.contains("application/tar ") && !tar.contains('\n'),
        "{tar}"
    );
    let digest = changed("/layers/0/digest", json!("../../etc"));
    assert!(digest.contains("no sha256 digest"), "{digest}");
}
