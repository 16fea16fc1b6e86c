//! Lists: pages, versions, selectors, forms.

use serde_json::json;

use super::*;

async fn filled() -> Cluster {
    let c = Cluster::with_vms().await;
    for n in 0..7 {
        let mut new = vm(&format!("vm-{n}"));
        new["metadata"]["labels"] = json!({ "n": n.to_string(), "even": (n % 2 == 0).to_string() });
        c.post(VMS, &new).await.ok();
    }
    c
}

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap().iter();
    items
        .map(|i| i["metadata"]["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn pages_show_what_the_first_page_began_with() {
    let c = filled().await;
    let first = c.get(&format!("{VMS}?limit=3")).await.ok();
    assert_eq!(first["metadata"]["remainingItemCount"], 4);
    c.delete(&format!("{VMS}/vm-4"), &json!({})).await.ok();
    c.merge(&format!("{VMS}/vm-5"), &json!({ "spec": { "memory": 1 } }))
        .await
        .ok();
    c.post(VMS, &vm("vm-55")).await.ok();
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = c.get(&format!("{VMS}?limit=3&continue={token}")).await.ok();
    assert_eq!(names(&second), ["vm-3", "vm-4", "vm-5"]);
    assert_eq!(second["items"][2]["spec"]["memory"], 4096);
    assert_eq!(
        second["metadata"]["resourceVersion"],
        first["metadata"]["resourceVersion"]
    );
    let token = second["metadata"]["continue"].as_str().unwrap();
    let path = format!("{VMS}?limit=3&continue={token}");
    let third = c.get(&path).await.ok();
    assert_eq!(names(&third), ["vm-6"]);
    assert_eq!(third["metadata"]["continue"], "");
    c.state.compact();
    c.post(VMS, &vm("later")).await.ok();
    c.get(&path)
        .await
        .refused(410, "Expired", "too old to display a consistent list");
    c.get(&format!("{VMS}?continue=x")).await.refused(
        400,
        "BadRequest",
        "continue key is not valid",
    );
}

#[tokio::test]
async fn the_first_of_two_values_counts() {
    let c = filled().await;
    let two = "fieldSelector=metadata.name%3Dvm-1&fieldSelector=metadata.name%3Dvm-2";
    let list = c.get(&format!("{VMS}?{two}&watch=FALSE&watch=true")).await;
    assert_eq!(names(&list.ok()), ["vm-1"]);
}

#[tokio::test]
async fn versions_are_respected() {
    let c = filled().await;
    let list = c.get(VMS).await.ok();
    let version = version_of(&list);
    c.post(VMS, &vm("later")).await.ok();
    let at = |query: &str| format!("{VMS}?{query}");
    assert_eq!(names(&c.get(&at("resourceVersion=0")).await.ok()).len(), 8);
    assert_eq!(
        names(&c.get(&at(&format!("resourceVersion={version}"))).await.ok()).len(),
        8
    );
    let exact = at(&format!(
        "resourceVersion={version}&resourceVersionMatch=Exact"
    ));
    let seen = c.get(&exact).await.ok();
    assert_eq!((names(&seen).len(), version_of(&seen)), (7, version));
    c.get(&at("resourceVersionMatch=Exact")).await.refused(
        422,
        "Invalid",
        "resourceVersionMatch is forbidden unless",
    );
    c.get(&at("resourceVersion=0&resourceVersionMatch=Exact"))
        .await
        .refused(422, "Invalid", "\"0\"");
    c.get(&at("resourceVersion=1&resourceVersionMatch=Most"))
        .await
        .refused(422, "Invalid", "Unsupported value");
    c.get(&at("resourceVersion=abc"))
        .await
        .refused(400, "BadRequest", "resourceVersion");
    c.get(&at("sendInitialEvents=true"))
        .await
        .refused(422, "Invalid", "forbidden for list");
    c.state.compact();
    c.get(&exact)
        .await
        .refused(410, "Expired", "too old resource version");
}

#[tokio::test(start_paused = true)]
async fn a_version_of_the_future_is_waited_for() {
    let c = filled().await;
    let refused = c.get(&format!("{VMS}?resourceVersion=999999")).await;
    refused.refused(504, "Timeout", "Too large resource version: 999999");
    assert_eq!(
        refused.body["details"]["causes"][0]["reason"],
        "ResourceVersionTooLarge"
    );
}

#[tokio::test]
async fn selectors_select() {
    let c = filled().await;
    let select = async |query: &str| names(&c.get(&format!("{ALL_VMS}?{query}")).await.ok());
    assert_eq!(
        select("labelSelector=even%3Dtrue,n%20notin%20(0,2)").await,
        ["vm-4", "vm-6"]
    );
    assert_eq!(select("fieldSelector=metadata.name%3Dvm-3").await, ["vm-3"]);
    assert_eq!(
        select("fieldSelector=metadata.namespace%3Dother").await,
        [""; 0]
    );
    let page = c
        .get(&format!("{VMS}?limit=1&labelSelector=even"))
        .await
        .ok();
    assert!(page["metadata"].get("remainingItemCount").is_none());
    assert!(!page["metadata"]["continue"].as_str().unwrap().is_empty());
    c.get(&format!("{VMS}?labelSelector=a%20b%20c"))
        .await
        .refused(400, "BadRequest", "unable to parse requirement");
}

#[tokio::test]
async fn items_of_built_in_kinds_do_not_say_what_they_are() {
    let c = filled().await;
    c.post(CMS, &cm("one", "1")).await.ok();
    let list = c.get(CMS).await;
    assert!(list.text.starts_with(
        r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"#
    ));
    let item = &list.body["items"][0];
    assert!(item.get("kind").is_none() && item.get("apiVersion").is_none());
    let list = c.get(VMS).await;
    assert!(
        list.text
            .starts_with(r#"{"apiVersion":"cloud.waibizi.com/v1","items":[{"apiVersion":"#)
    );
    assert_eq!(list.body["items"][0]["kind"], "VirtualMachine");
    assert_eq!(list.body["kind"], "VirtualMachineList");
}

#[tokio::test]
async fn tables_and_partial_objects() {
    let c = filled().await;
    c.post(CMS, &cm("one", "1")).await.ok();
    let table = c.get_as(&format!("{VMS}?limit=2"), TABLE).await.ok();
    assert_eq!(table["kind"], "Table");
    let columns: Vec<_> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["name"].clone())
        .collect();
    assert_eq!(columns, ["Name", "Status", "Memory", "Age"]);
    let row = &table["rows"][0];
    assert_eq!(
        row["cells"].as_array().unwrap()[..3],
        [json!("vm-0"), json!("creating"), json!(4096)]
    );
    assert_eq!(row["object"]["kind"], "PartialObjectMetadata");
    assert!(!table["metadata"]["continue"].as_str().unwrap().is_empty());
    let whole = c
        .get_as(&format!("{VMS}/vm-1?includeObject=Object"), TABLE)
        .await
        .ok();
    assert_eq!(whole["rows"][0]["object"]["spec"]["memory"], 4096);
    let none = c
        .get_as(&format!("{CMS}?includeObject=None"), TABLE)
        .await
        .ok();
    assert_eq!(none["rows"][0]["cells"][1], 1);
    assert!(none["rows"][0].get("object").is_none());
    let partial =
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
    let list = c.get_as(VMS, partial).await.ok();
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert!(list["items"][0].get("spec").is_none());
    assert_eq!(list["items"][0]["metadata"]["name"], "vm-0");
}

#[tokio::test]
async fn reads_repeat_the_words_of_the_write() {
    let c = Cluster::with_vms().await;
    let mut labelled = vm("a");
    labelled["metadata"]["labels"] = json!({ "on": "1" });
    for (path, object) in [(CMS, cm("a", "\u{e9}\"\n")), (VMS, labelled)] {
        let made = c.post(path, &object).await;
        let got = c.get(&format!("{path}/a")).await;
        assert_eq!(got.text, made.text);
        let version = version_of(&made.ok());
        let list = c.get(path).await.ok();
        let names = list["items"].as_array().unwrap().iter();
        let found = names.filter(|item| item["metadata"]["name"] == "a").count();
        assert_eq!((found, version_of(&list)), (1, version));
    }
    for (selector, found) in [
        ("labelSelector=on%3D1", 1),
        ("labelSelector=on%3D2", 0),
        ("fieldSelector=metadata.name%3Da", 1),
        ("fieldSelector=metadata.name%3Da&labelSelector=!on", 0),
    ] {
        let list = c.get(&format!("{VMS}?{selector}")).await.ok();
        let items = list["items"].as_array().unwrap();
        assert_eq!(items.len(), found, "{selector}");
    }
}
