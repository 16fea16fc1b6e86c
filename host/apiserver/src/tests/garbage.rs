//! Garbage collection, step by step and without a task.

use serde_json::json;

use super::*;
use crate::collect;
use crate::owners::FOREGROUND;

/// Returns a config map that names owners: (object, whether it blocks).
fn child(name: &str, owners: &[(&Value, bool)]) -> Value {
    let mut child = cm(name, "1");
    let references = owners
        .iter()
        .map(|(owner, blocks)| reference(owner, *blocks));
    child["metadata"]["ownerReferences"] = references.collect();
    child
}

fn reference(owner: &Value, blocks: bool) -> Value {
    json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "blockOwnerDeletion": blocks,
    })
}

/// Collects all garbage; returns the number of steps.
fn collect(c: &Cluster) -> usize {
    (1..100_000)
        .find(|_| !c.state.write(collect::step))
        .expect("an end")
}

async fn names(c: &Cluster) -> Vec<String> {
    let list = c.get(CMS).await.ok();
    let items = list["items"].as_array().unwrap().iter();
    items
        .map(|i| i["metadata"]["name"].as_str().unwrap().to_owned())
        .collect()
}

async fn make(c: &Cluster, name: &str, owners: &[(&Value, bool)]) -> Value {
    c.post(CMS, &child(name, owners)).await.ok()
}

async fn delete(c: &Cluster, name: &str, policy: &str) -> Value {
    let options = json!({ "propagationPolicy": policy });
    c.delete(&format!("{CMS}/{name}"), &options).await.ok()
}

#[tokio::test]
async fn without_controllers_nothing_goes_by_itself() {
    let c = Cluster::new();
    c.state.write(|inner| inner.controllers = false);
    let absent = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "absent", "uid": "u" },
    });
    make(&c, "child", &[(&absent, true)]).await;
    assert!(!c.state.read(|inner| inner.store.owners.has_work()));
    collect(&c);
    assert_eq!(names(&c).await, ["child"]);
    delete(&c, "child", "Foreground").await;
    collect(&c);
    let waits = c.get(&format!("{CMS}/child")).await.ok();
    assert_eq!(waits["metadata"]["finalizers"], json!([FOREGROUND]));

    let claims = "/api/v1/namespaces/n/persistentvolumeclaims";
    let namespace = json!({ "metadata": { "name": "n" } });
    c.post("/api/v1/namespaces", &namespace).await.ok();
    let claim = json!({ "metadata": { "name": "v" }, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } },
    } });
    c.post(claims, &claim).await.ok();
    let path = format!("{claims}/v");
    c.delete(&path, &json!({})).await.ok();
    c.delete("/api/v1/namespaces/n", &json!({})).await.ok();
    let waits = c.get(&path).await.ok();
    assert!(waits["metadata"]["deletionTimestamp"].is_string());
    let protected = json!(["kubernetes.io/pvc-protection"]);
    assert_eq!(waits["metadata"]["finalizers"], protected);
    let free = json!({ "metadata": { "finalizers": null } });
    c.merge(&path, &free).await.ok();
    c.get(&path).await.refused(404, "NotFound", "");
    let namespace = c.get("/api/v1/namespaces/n").await.ok();
    assert_eq!(namespace["status"]["phase"], "Terminating");
    let refused = c.post(claims, &claim).await;
    refused.refused(403, "Forbidden", "because it is being terminated");
    // Tests for envtest end a namespace like this.
    let ended = json!({ "metadata": { "name": "n" }, "spec": { "finalizers": [] } });
    c.put("/api/v1/namespaces/n/finalize", &ended).await.ok();
    let gone = c.get("/api/v1/namespaces/n").await;
    gone.refused(404, "NotFound", "");
}

#[tokio::test]
async fn dependents_go_after_their_last_owner_with_a_watch_event_each() {
    let c = Cluster::new();
    let (a, b) = (make(&c, "a", &[]).await, make(&c, "b", &[]).await);
    let both = make(&c, "both", &[(&a, false), (&b, true)]).await;
    make(&c, "grandchild", &[(&both, false)]).await;
    let mut held = child("held", &[(&b, false)]);
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    c.post(CMS, &held).await.ok();
    collect(&c);
    assert_eq!(names(&c).await, ["a", "b", "both", "grandchild", "held"]);
    let mut watch = c
        .watch(
            &format!(
                "{CMS}?watch=1&resourceVersion={}",
                c.state.read(|i| i.store.version())
            ),
            "*/*",
        )
        .await;
    assert_eq!(delete(&c, "a", "Background").await["status"], "Success");
    collect(&c);
    // Only the reference to the existing owner remains.
    let left = c.get(&format!("{CMS}/both")).await.ok();
    assert_eq!(
        left["metadata"]["ownerReferences"],
        json!([reference(&b, true)])
    );
    delete(&c, "b", "Background").await;
    collect(&c);
    for expected in [
        "DELETED a",
        "MODIFIED both",
        "DELETED b",
        "DELETED both",
        "MODIFIED held",
        "DELETED grandchild",
    ] {
        assert_eq!(watch.brief().await, expected);
    }
    let held = c.get(&format!("{CMS}/held")).await.ok();
    assert!(held["metadata"]["deletionTimestamp"].is_string());
    let free = json!({ "metadata": { "finalizers": null } });
    c.merge(&format!("{CMS}/held"), &free).await.ok();
    assert_eq!(names(&c).await, [""; 0]);
}

#[tokio::test]
async fn an_owner_that_never_was_is_as_good_as_gone() {
    let c = Cluster::new();
    let real = make(&c, "real", &[]).await;
    let mut never = real.clone();
    never["metadata"]["uid"] = json!("b9c0ffee-0000-4000-8000-000000000000");
    make(&c, "wrong-uid", &[(&never, false)]).await;
    let mut secret = real.clone();
    secret["kind"] = json!("Secret");
    make(&c, "wrong-kind", &[(&secret, false)]).await;
    // An owner of a kind that is not served counts as existing.
    let mut unknown = real.clone();
    (unknown["apiVersion"], unknown["kind"]) = (json!("example.com/v1"), json!("Thing"));
    make(&c, "unknown-kind", &[(&unknown, false)]).await;
    make(&c, "right", &[(&real, false)]).await;
    let there = "/api/v1/namespaces/kube-public/configmaps";
    c.post(there, &child("elsewhere", &[(&real, false)]))
        .await
        .ok();
    // A cluster-scoped object cannot have a namespaced owner.
    let mut namespace = json!({ "metadata": { "name": "owned" } });
    namespace["metadata"]["ownerReferences"] = json!([reference(&real, false)]);
    c.post("/api/v1/namespaces", &namespace).await.ok();
    collect(&c);
    assert_eq!(names(&c).await, ["real", "right", "unknown-kind"]);
    assert_eq!(c.get(there).await.ok()["items"], json!([]));
    c.get("/api/v1/namespaces/owned").await.ok();
    // References that are added later count too.
    make(&c, "late", &[]).await;
    let named = json!({ "metadata": { "ownerReferences": [reference(&never, false)] } });
    c.merge(&format!("{CMS}/late"), &named).await.ok();
    collect(&c);
    assert_eq!(names(&c).await, ["real", "right", "unknown-kind"]);
}

#[tokio::test]
async fn in_the_foreground_the_owner_waits_for_those_that_block_it() {
    let c = Cluster::new();
    let owner = make(&c, "owner", &[]).await;
    make(&c, "loose", &[(&owner, false)]).await;
    let mut held = child("held", &[(&owner, true)]);
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    c.post(CMS, &held).await.ok();
    let waiting = delete(&c, "owner", "Foreground").await;
    assert_eq!(
        waiting["metadata"]["finalizers"],
        json!(["foregroundDeletion"])
    );
    assert!(waiting["metadata"]["deletionTimestamp"].is_string());
    collect(&c);
    assert_eq!(names(&c).await, ["held", "owner"]);
    let free = json!({ "metadata": { "finalizers": null } });
    c.merge(&format!("{CMS}/held"), &free).await.ok();
    collect(&c);
    assert_eq!(names(&c).await, [""; 0]);
    // No dependent blocks: the owner is removed at once, and its dependents after it. The query can
    // select the policy too.
    let owner = make(&c, "owner", &[]).await;
    make(&c, "loose", &[(&owner, false)]).await;
    let path = format!("{CMS}/owner?propagationPolicy=Foreground");
    c.send("DELETE", &path, &[], "").await.ok();
    collect(&c);
    assert_eq!(names(&c).await, [""; 0]);
}

#[tokio::test]
async fn orphans_stay_and_no_longer_name_their_owner() {
    let c = Cluster::new();
    let (owner, other) = (make(&c, "owner", &[]).await, make(&c, "other", &[]).await);
    for number in 0..150 {
        let both = [(&owner, true), (&other, false)];
        make(&c, &format!("child-{number}"), &both).await;
    }
    let waiting = delete(&c, "owner", "Orphan").await;
    assert_eq!(waiting["metadata"]["finalizers"], json!(["orphan"]));
    // The children are released in more than one step, with the lock free in between.
    assert!(collect(&c) > 2);
    let names = names(&c).await;
    assert!(
        names.len() == 151 && !names.contains(&"owner".to_owned()),
        "{names:?}"
    );
    let child = c.get(&format!("{CMS}/child-0")).await.ok();
    assert_eq!(
        child["metadata"]["ownerReferences"],
        json!([reference(&other, false)])
    );
    let both = json!({ "propagationPolicy": "Orphan", "orphanDependents": true });
    c.delete(&format!("{CMS}/other"), &both)
        .await
        .refused(422, "Invalid", "both set");
}

#[tokio::test]
async fn circles_of_owners_end() {
    for policy in ["Background", "Foreground"] {
        let c = Cluster::new();
        let mut circle = vec![make(&c, "n0", &[]).await];
        for number in 1..4 {
            let next = make(&c, &format!("n{number}"), &[(&circle[number - 1], true)]).await;
            circle.push(next);
        }
        let closing = json!({ "metadata": { "ownerReferences": [reference(&circle[3], true)] } });
        c.merge(&format!("{CMS}/n0"), &closing).await.ok();
        let own = make(&c, "self", &[]).await;
        let closing = json!({ "metadata": { "ownerReferences": [reference(&own, true)] } });
        c.merge(&format!("{CMS}/self"), &closing).await.ok();
        collect(&c);
        assert_eq!(names(&c).await.len(), 5, "nothing is garbage yet");
        delete(&c, "n0", policy).await;
        delete(&c, "self", policy).await;
        assert!(collect(&c) < 100);
        assert_eq!(names(&c).await, [""; 0], "{policy}");
    }
}

#[tokio::test]
async fn ten_thousand_children_go_in_small_steps() {
    const CHILDREN: usize = 10_000;
    for policy in ["Background", "Foreground"] {
        let c = Cluster::new();
        let owner = make(&c, "owner", &[]).await;
        let template = child("x", &[(&owner, true)]);
        c.state.write(|inner| {
            for number in 0..CHILDREN {
                let (name, mut child) = (format!("c{number:05}"), template.clone());
                crate::meta::set(&mut child, "name", Some(json!(name)));
                crate::meta::set(&mut child, "namespace", Some(json!("default")));
                crate::meta::set(&mut child, "uid", Some(json!(crate::meta::new_uid())));
                let key = crate::object::Key::new("default", &name);
                inner.store.put(&"/configmaps".into(), key, child);
            }
        });
        collect(&c);
        let before = c.state.read(|inner| inner.store.version());
        delete(&c, "owner", policy).await;
        let steps = collect(&c);
        // Each child is processed a bounded number of times, and no step processes many objects.
        assert!(
            (CHILDREN / 64..CHILDREN / 8).contains(&steps),
            "{policy}: {steps}"
        );
        assert_eq!(names(&c).await, [""; 0]);
        let writes = c.state.read(|inner| inner.store.version()) - before;
        assert!(writes <= CHILDREN as u64 + 2, "{policy}: {writes}");
    }
}

#[tokio::test]
async fn what_belongs_to_a_custom_object_goes_with_its_definition() {
    let c = Cluster::with_vms().await;
    let owner = c.post(VMS, &vm("x")).await.ok();
    make(&c, "child", &[(&owner, true)]).await;
    let definition = format!("{CRDS}/virtualmachines.cloud.waibizi.com");
    c.delete(&definition, &json!({})).await.ok();
    c.get(VMS).await.refused(404, "NotFound", "");
    collect(&c);
    assert_eq!(names(&c).await, [""; 0]);
}
