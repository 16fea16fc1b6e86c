//! Tests that objects from files are read like those of a cluster.

use vmhost_core::{Description, IndexMatch};

use super::*;

fn controller() -> ControllerDescription {
    let description = Description::parse(
        r#"{ "apiVersion": "vmhost/v1", "name": "p", "controllers": [{ "name": "c",
            "primary": { "group": "example.com", "version": "v1", "kind": "App", "wantedFields": ["spec.a"] },
            "owns": [{ "version": "v1", "kind": "Pod", "labelSelector": "app", "indexes": { "node": "spec.nodeName" } }],
            "watches": [{ "version": "v1", "kind": "Secret", "map": "guest", "metadataOnly": true }],
            "reads": [{ "version": "v1", "kind": "Node", "live": true }] }] }"#,
    );
    description.unwrap().controllers.remove(0)
}

fn given(value: Value) -> Given {
    Given::new("cache/x.json".into(), value).unwrap()
}

fn pod(name: &str, labels: Value, owner: &str) -> Given {
    given(
        json!({ "apiVersion": "v1", "kind": "Pod", "spec": { "nodeName": "m" }, "metadata": {
        "name": name, "namespace": "a", "labels": labels, "ownerReferences": [{ "uid": owner }] } }),
    )
}

fn query(kind: &str) -> ListQuery {
    ListQuery {
        kind: Gvk::new("", "v1", kind),
        namespace: None,
        label_selector: None,
        index: None,
        owner: None,
        limit: 500,
        after: None,
    }
}

fn names(page: Result<Page, ReadError>) -> Result<Vec<String>, ReadError> {
    let names = |page: Page| page.objects.iter().map(|of| of.name.to_string()).collect();
    page.map(names)
}

fn cluster() -> Cluster {
    let cluster = Cluster::new(&controller());
    cluster
        .add(&pod("two", json!({ "app": "web" }), "u-2"))
        .unwrap();
    cluster
        .add(&pod("one", json!({ "app": "db" }), "u-1"))
        .unwrap();
    cluster.add(&pod("bare", json!({}), "u-1")).unwrap();
    cluster
}

#[test]
fn lists_follow_selectors_indexes_owners_and_pages() {
    let cluster = cluster();
    let listed = |change: &dyn Fn(&mut ListQuery)| {
        let mut query = query("Pod");
        change(&mut query);
        names(cluster.list(&query))
    };
    assert_eq!(
        listed(&|_| {}).unwrap(),
        ["a/one", "a/two"],
        "what the description selects"
    );
    let web = listed(&|query| query.label_selector = Some("app in (web)".into()));
    assert_eq!(web.unwrap(), ["a/two"]);
    assert_eq!(
        listed(&|query| query.owner = Some("u-1".into())).unwrap(),
        ["a/one"]
    );
    let node = |name: &str| IndexMatch {
        name: name.into(),
        value: "m".into(),
    };
    let on_node = listed(&|query| query.index = Some(node("node")));
    assert_eq!(on_node.unwrap(), ["a/one", "a/two"]);
    assert!(matches!(
        listed(&|query| query.index = Some(node("zone"))),
        Err(ReadError::Invalid(_))
    ));
    assert_eq!(
        listed(&|query| query.namespace = Some("b".into())).unwrap(),
        [""; 0]
    );
    assert_eq!(
        listed(&|query| query.after = Some("a/one".into())).unwrap(),
        ["a/two"]
    );
    assert_eq!(
        names(cluster.list(&query("Node"))).unwrap_err(),
        ReadError::NotWatched("Node.v1 (live reads only)".into())
    );
    assert_eq!(
        names(cluster.list(&query("Job"))).unwrap_err(),
        ReadError::NotWatched("Job.v1".into())
    );
}

#[tokio::test]
async fn live_reads_see_what_the_stores_leave_out() {
    let cluster = cluster();
    let bare = ObjectName::new(Some("a"), "bare");
    let kind = Gvk::new("", "v1", "Pod");
    assert!(cluster.get(&kind, &bare).unwrap().is_none());
    assert!(
        cluster
            .get_live(kind, bare.clone())
            .await
            .unwrap()
            .is_some()
    );
    let all = names(cluster.list_live(query("Pod")).await).unwrap();
    assert_eq!(all, ["a/bare", "a/one", "a/two"]);
    assert_eq!(
        names(cluster.list_live(query("Node")).await).unwrap(),
        [""; 0]
    );
    let owned = ListQuery {
        owner: Some("u".into()),
        ..query("Pod")
    };
    assert!(matches!(
        cluster.list_live(owned).await,
        Err(ReadError::Invalid(_))
    ));
    let foreign = cluster.get_live(Gvk::new("", "v1", "Job"), bare).await;
    assert_eq!(foreign.unwrap_err(), ReadError::NotWatched("Job.v1".into()));
}

#[test]
fn objects_are_pruned_and_completed() {
    let cluster = cluster();
    let app = given(
        json!({ "apiVersion": "example.com/v1", "kind": "App", "metadata": { "name": "x" }, "spec": { "a": 1, "b": 2 } }),
    );
    cluster.add(&app).unwrap();
    let kept = cluster.primary(&app.key.name).unwrap();
    assert!(kept.text.contains(r#""spec":{"a":1}"#), "{}", &kept.text);
    assert_eq!((kept.uid().len(), kept.version), (36, 1));
    assert_eq!(
        kept.uid(),
        cluster.as_primary(&app).unwrap().uid(),
        "the same each time"
    );
    let secret = given(
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" }, "data": {} }),
    );
    assert!(
        !cluster
            .as_changed(&secret)
            .unwrap()
            .text
            .contains(r#""data""#)
    );
    let error = cluster.as_changed(&app).unwrap_err().to_string();
    assert_eq!(
        error,
        "cache/x.json: the controller does not watch App.v1.example.com with \"map\": \"guest\""
    );
    let job =
        given(json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "x" } }));
    assert_eq!(
        cluster.add(&job).unwrap_err().to_string(),
        "cache/x.json: the controller neither watches nor reads Job.v1.batch"
    );
    let odd = given(
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s", "resourceVersion": "new" } }),
    );
    let error = format!("{:#}", cluster.add(&odd).unwrap_err());
    assert!(error.contains("resource version \"new\""), "{error}");
}

#[test]
fn recorded_objects_are_as_they_were_to_the_byte() {
    let text = r#"{"kind":"App","apiVersion":"example.com/v1","metadata":{"uid":"u","name":"x","resourceVersion":"9"},"spec":{"b":1e3,"a":2.0}}"#;
    let recorded = |text: &str| Given {
        text: Some(text.to_owned()),
        ..given(serde_json::from_str(text).unwrap())
    };
    let cluster = Cluster::recorded(&controller());
    let app = recorded(text);
    cluster.add(&app).unwrap();
    let kept = cluster.primary(&app.key.name).unwrap();
    assert_eq!((&kept.text, kept.uid(), kept.version), (text, "u", 9));
    assert_eq!(&cluster.as_primary(&app).unwrap().text, text);
    // Another version of the plugin may read other kinds.
    let job = text.replace("example.com/v1", "batch/v1");
    cluster.add(&recorded(&job)).unwrap();
    // An object that lacks something is completed.
    let bare = recorded(r#"{"kind":"App","apiVersion":"example.com/v1","metadata":{"name":"y"}}"#);
    cluster.add(&bare).unwrap();
    assert_eq!(cluster.primary(&bare.key.name).unwrap().version, 1);
}
