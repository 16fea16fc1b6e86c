//! Answers in protobuf.

use crate::{from_protobuf, to_protobuf};

use super::*;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf,application/json";
const METADATA: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
const METADATA_LIST: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
const MEDIA: &str = "application/vnd.kubernetes.protobuf";

/// Returns the code, the media type and the bytes of an answer.
async fn ask(
    c: &Cluster,
    (method, path): (&str, &str),
    accept: &str,
    body: &Value,
) -> (u16, String, Vec<u8>) {
    let text = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let response = c.start(method, path, &[(ACCEPT, accept)], &text).await;
    let code = response.status().as_u16();
    let media = response.headers()[CONTENT_TYPE]
        .to_str()
        .unwrap()
        .to_owned();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, media, bytes.to_vec())
}

/// Returns an answer that must be in protobuf, as JSON.
async fn decoded(c: &Cluster, request: (&str, &str), accept: &str, body: &Value) -> (u16, Value) {
    let (code, media, bytes) = ask(c, request, accept, body).await;
    assert!(media.starts_with(MEDIA), "{request:?}: {media}");
    (code, from_protobuf(&bytes).unwrap())
}

#[tokio::test]
async fn objects_lists_and_statuses_are_answered_in_protobuf() {
    let c = Cluster::new();
    let none = Value::Null;
    let (code, made) = decoded(&c, ("POST", CMS), PROTOBUF, &cm("x", "1")).await;
    assert_eq!((code, &made["data"]["a"]), (201, &json!("1")));
    let path = format!("{CMS}/x");
    let json = c.get(&path).await.ok();
    let (_, media, bytes) = ask(&c, ("GET", &path), PROTOBUF, &none).await;
    assert_eq!(media, MEDIA);
    assert_eq!(bytes, to_protobuf(&json).unwrap());
    assert_eq!(from_protobuf(&bytes).unwrap(), json);
    let (_, list) = decoded(&c, ("GET", CMS), PROTOBUF, &none).await;
    assert_eq!(list["kind"], "ConfigMapList");
    assert_eq!(list["metadata"], c.get(CMS).await.ok()["metadata"]);
    assert_eq!(list["items"][0]["metadata"], json["metadata"]);
    let (_, metadata) = decoded(&c, ("GET", CMS), METADATA_LIST, &none).await;
    assert_eq!(metadata["kind"], "PartialObjectMetadataList");
    assert_eq!(
        metadata["items"][0],
        json!({ "metadata": json["metadata"] })
    );
    let (_, one) = decoded(&c, ("GET", &path), METADATA, &none).await;
    assert_eq!(
        (&one["kind"], &one["metadata"]),
        (&json!("PartialObjectMetadata"), &json["metadata"])
    );
    let (code, gone) = decoded(&c, ("DELETE", &path), PROTOBUF, &none).await;
    assert_eq!(
        (code, &gone["kind"], &gone["status"]),
        (200, &json!("Status"), &json!("Success"))
    );
    let (code, _, refused) = ask(&c, ("GET", &path), PROTOBUF, &none).await;
    assert_eq!(code, 404);
    let status = c.get(&path).await.body;
    assert_eq!(refused, to_protobuf(&status).unwrap());
    let before_yaml = "application/vnd.kubernetes.protobuf,application/yaml";
    let (_, media, again) = ask(&c, ("GET", &path), before_yaml, &none).await;
    assert_eq!((media.as_str(), again), (MEDIA, refused));
    // A client that asks for a Table first is not told in protobuf.
    let table = format!("{TABLE},application/vnd.kubernetes.protobuf");
    let (_, media, _) = ask(&c, ("GET", CMS), &table, &none).await;
    assert_eq!(media, "application/json");
}

#[tokio::test]
async fn a_watch_is_a_row_of_frames() {
    let c = Cluster::new();
    c.post(CMS, &cm("x", "1")).await.ok();
    let json = c.get(&format!("{CMS}/x")).await.ok();
    let path = format!(
        "{CMS}?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    );
    let response = c.start("GET", &path, &[(ACCEPT, PROTOBUF)], "").await;
    let media = response.headers()[CONTENT_TYPE].to_str().unwrap();
    assert_eq!(media, "application/vnd.kubernetes.protobuf;stream=watch");
    let mut body = response.into_body();
    let (mut rest, mut frames): (Vec<u8>, Vec<Vec<u8>>) = (Vec::new(), Vec::new());
    while frames.len() < 2 {
        let frame = tokio::time::timeout(Duration::from_secs(10), body.frame());
        let frame = frame.await.expect("an event in time").unwrap().unwrap();
        rest.extend(frame.into_data().unwrap());
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let length = u32::from_be_bytes(*length) as usize;
            let Some((frame, after)) = after.split_at_checked(length) else {
                break;
            };
            frames.push(frame.to_vec());
            rest = after.to_vec();
        }
    }
    // The object is the last part of an event.
    let object = |frame: &[u8]| {
        let magic = frame.windows(4).position(|four| four == b"k8s\0").unwrap();
        frame[magic..].to_vec()
    };
    assert!(frames[0].starts_with(b"\x0a\x05ADDED\x12"));
    assert_eq!(object(&frames[0]), to_protobuf(&json).unwrap());
    assert!(frames[1].starts_with(b"\x0a\x08BOOKMARK\x12"));
    let bookmark = from_protobuf(&object(&frames[1])).unwrap();
    assert_eq!(bookmark["kind"], "ConfigMap");
    assert_eq!(
        bookmark["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
    c.stop.cancel();
}

#[tokio::test]
async fn custom_objects_have_only_their_metadata_and_refusals_in_protobuf() {
    let c = Cluster::with_vms().await;
    c.post(VMS, &vm("x")).await.ok();
    let none = Value::Null;
    let path = format!("{VMS}/x");
    let (code, media, _) = ask(&c, ("GET", &path), PROTOBUF, &none).await;
    assert_eq!((code, media.as_str()), (200, "application/json"));
    let (code, media, _) = ask(&c, ("GET", &path), MEDIA, &none).await;
    assert_eq!((code, media.as_str()), (406, MEDIA));
    let (_, metadata) = decoded(&c, ("GET", VMS), METADATA_LIST, &none).await;
    assert_eq!(metadata["items"][0]["metadata"]["name"], "x");
    let (code, refused) = decoded(&c, ("GET", &format!("{VMS}/y")), PROTOBUF, &none).await;
    assert_eq!((code, &refused["reason"]), (404, &json!("NotFound")));
    let (_, media, _) = ask(&c, ("DELETE", &path), PROTOBUF, &none).await;
    assert_eq!(media, "application/json");
}

#[tokio::test]
async fn definitions_and_discovery_are_answered_in_protobuf() {
    let c = Cluster::with_vms().await;
    let none = Value::Null;
    let aggregated =
        "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let in_json = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let definition = format!("{CRDS}/virtualmachines.cloud.waibizi.com");
    for (path, protobuf, json) in [
        (definition.as_str(), PROTOBUF, "application/json"),
        ("/api", PROTOBUF, "application/json"),
        ("/apis", PROTOBUF, "application/json"),
        ("/apis/apps", PROTOBUF, "application/json"),
        ("/apis/apps/v1", PROTOBUF, "application/json"),
        ("/api/v1", PROTOBUF, "application/json"),
        ("/apis", aggregated, in_json),
        ("/api", aggregated, in_json),
    ] {
        let (code, media, bytes) = ask(&c, ("GET", path), protobuf, &none).await;
        assert_eq!(code, 200, "{path}");
        assert!(media.starts_with(MEDIA), "{path}: {media}");
        let (_, _, text) = ask(&c, ("GET", path), json, &none).await;
        let value: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(bytes, to_protobuf(&value).unwrap(), "{path}");
    }
}

#[tokio::test]
async fn a_scale_is_answered_in_protobuf() {
    let c = Cluster::new();
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let template = json!({
        "metadata": { "labels": { "a": "b" } },
        "spec": { "containers": [{ "name": "c", "image": "i" }] },
    });
    let new = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "d" },
        "spec": {
            "replicas": 3, "selector": { "matchLabels": { "a": "b" } }, "template": template,
        },
    });
    c.post(path, &new).await.ok();
    let path = format!("{path}/d/scale");
    let (_, scale) = decoded(&c, ("GET", &path), PROTOBUF, &Value::Null).await;
    assert_eq!(scale["kind"], "Scale");
    assert_eq!(scale["spec"]["replicas"], 3);
    // An answer in an unknown form is refused before anything is written.
    let mut new = c.get(&path).await.ok();
    new["spec"]["replicas"] = json!(5);
    let (code, _, _) = ask(&c, ("PUT", &path), "text/html", &new).await;
    assert_eq!(code, 406);
    assert_eq!(c.get(&path).await.ok()["spec"]["replicas"], 3);
}
