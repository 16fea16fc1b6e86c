//! A cluster that a folder keeps.

use serde_json::{Value, json};

use super::{ALL_VMS, CMS, CRDS, Cluster, VMS, cm, definition, version_of, vm};
use crate::state::State;
use crate::{Options, Server, collect, crd};

/// Returns the cluster of a folder, as a front serves it.
fn open(folder: &tempfile::TempDir) -> Cluster {
    let state = State::open(folder.path()).unwrap();
    state.write(crd::register);
    Cluster::of(state, false)
}

#[tokio::test]
async fn a_cluster_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let c = open(&folder);
    c.post(CRDS, &definition()).await.ok();
    let before = version_of(&c.post(VMS, &vm("one")).await.ok());
    c.post(VMS, &vm("two")).await.ok();
    c.delete(&format!("{VMS}/one"), &json!({})).await.ok();
    let list = c.get(ALL_VMS).await.ok();
    let namespaces = c.get("/api/v1/namespaces").await.ok();
    drop(c);

    let c = open(&folder);
    assert_eq!(c.get(ALL_VMS).await.ok(), list);
    let same = c.get("/api/v1/namespaces").await.ok();
    assert_eq!(same["items"], namespaces["items"]);
    // A watch goes on too: it sees what happened before the restart, and after.
    let path = format!("{VMS}?watch=true&resourceVersion={before}");
    let mut watch = c.watch(&path, "application/json").await;
    assert_eq!(watch.brief().await, "ADDED two");
    assert_eq!(watch.brief().await, "DELETED one");
    c.post(VMS, &vm("three")).await.ok();
    assert_eq!(watch.brief().await, "ADDED three");
}

#[tokio::test]
async fn the_deepest_object_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let c = open(&folder);
    let mut open_schema = definition();
    open_schema["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
        json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    c.post(CRDS, &open_schema).await.ok();
    let nested = |levels: usize| {
        let mut new = vm("deep");
        new["spec"] = (1..levels).fold(json!({}), |inner, _| json!({ "a": inner }));
        new
    };
    let too_deep = c.post(VMS, &nested(100)).await;
    too_deep.refused(400, "BadRequest", "exceeded max depth");
    let made = c.post(VMS, &nested(99)).await.ok();
    drop(c);
    let c = open(&folder);
    assert_eq!(c.get(&format!("{VMS}/deep")).await.ok(), made);
}

#[tokio::test]
async fn a_restored_cluster_is_kept_too() {
    let folder = tempfile::tempdir().unwrap();
    let c = open(&folder);
    c.post(CMS, &cm("before", "1")).await.ok();
    // The copy of a cluster that is in memory only.
    c.state.restore(&State::new().back_up());
    c.post(CMS, &cm("after", "1")).await.ok();
    drop(c);
    let c = open(&folder);
    let list = c.get(CMS).await.ok();
    assert_eq!(list["items"].as_array().unwrap().len(), 1, "{list}");
    assert_eq!(list["items"][0]["metadata"]["name"], "after");
}

#[tokio::test]
async fn nothing_is_shown_that_may_be_lost() {
    let folder = tempfile::tempdir().unwrap();
    let c = open(&folder);
    c.post(CMS, &cm("kept", "1")).await.ok();
    let mut watch = c.watch(&format!("{CMS}?watch=true"), "*/*").await;
    assert_eq!(watch.brief().await, "ADDED kept");
    c.state.fail();
    for path in [CMS, "/api/v1/namespaces", "/readyz"] {
        let words = "cannot be kept on disk";
        c.get(path).await.refused(500, "InternalError", words);
    }
    let refused = c.post(CMS, &cm("lost", "1")).await;
    refused.refused(500, "InternalError", "cannot be kept on disk");
    // The watch is not told of the write, whatever wakes it.
    c.state.compact();
    assert_eq!(watch.brief().await, "end");
}

#[tokio::test]
async fn garbage_is_still_collected() {
    let folder = tempfile::tempdir().unwrap();
    let c = open(&folder);
    let owner = c.post(CMS, &cm("owner", "1")).await.ok();
    let mut child = cm("child", "2");
    child["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"],
    }]);
    c.post(CMS, &child).await.ok();
    c.delete(&format!("{CMS}/owner"), &json!({})).await.ok();
    drop(c);
    let c = open(&folder);
    while c.state.write(collect::step) {}
    let left = c.get(CMS).await.ok();
    assert_eq!(left["items"], json!([]), "{left}");
}

#[tokio::test]
async fn credentials_outlive_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let token = |server: &Server| {
        let text: Value = serde_yaml_ng::from_str(&server.kubeconfig()).unwrap();
        text["users"][0]["user"]["token"].clone()
    };
    let state = State::open(folder.path()).unwrap();
    let key = state.secrets().key().unwrap();
    let signed = key.sign(&json!({ "sub": "a" })).unwrap();
    let authority = state.secrets().authority().unwrap().key_pem();
    let server = Server::start(state, Options::default()).await.unwrap();
    let before = token(&server);
    server.kill().await;
    drop(key);

    let state = State::open(folder.path()).unwrap();
    assert_eq!(state.secrets().authority().unwrap().key_pem(), authority);
    assert!(state.secrets().key().unwrap().claims(&signed).is_some());
    let server = Server::start(state, Options::default()).await.unwrap();
    assert_eq!(token(&server), before);
    server.kill().await;
}
