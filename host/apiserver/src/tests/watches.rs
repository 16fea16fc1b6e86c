//! Watches.

use serde_json::json;

use super::*;

#[tokio::test]
async fn events_come_in_order_from_a_version_on() {
    let c = Cluster::with_vms().await;
    c.post(VMS, &vm("before")).await.ok();
    let version = version_of(&c.get(VMS).await.ok());
    c.post(VMS, &vm("a")).await.ok();
    let mut watch = c
        .watch(
            &format!("{VMS}?watch=true&resourceVersion={version}"),
            "*/*",
        )
        .await;
    assert_eq!(watch.brief().await, "ADDED a");
    let changed = c
        .merge(&format!("{VMS}/a"), &json!({ "spec": { "memory": 1 } }))
        .await
        .ok();
    // The same patch again writes nothing.
    c.merge(&format!("{VMS}/a"), &json!({ "spec": { "memory": 1 } }))
        .await
        .ok();
    c.delete(&format!("{VMS}/a"), &json!({})).await.ok();
    let event = watch.next().await.unwrap();
    assert_eq!(
        (&event["type"], &event["object"]),
        (&json!("MODIFIED"), &changed)
    );
    let event = watch.next().await.unwrap();
    assert_eq!(event["type"], "DELETED");
    assert_ne!(version_of(&event["object"]), version_of(&changed));
    c.stop.cancel();
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn a_watch_without_a_version_begins_with_what_is_there() {
    let c = Cluster::with_vms().await;
    for n in 0..200 {
        c.post(VMS, &vm(&format!("vm-{n:03}"))).await.ok();
    }
    let mut watch = c
        .watch(&format!("{ALL_VMS}?watch=1&timeoutSeconds=1"), "*/*")
        .await;
    for n in 0..200 {
        assert_eq!(watch.brief().await, format!("ADDED vm-{n:03}"));
    }
    assert_eq!(watch.brief().await, "end");
}

#[tokio::test]
async fn a_streaming_list_says_where_it_ends() {
    let c = Cluster::with_vms().await;
    c.post(VMS, &vm("a")).await.ok();
    let query = "watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan";
    let mut watch = c.watch(&format!("{VMS}?{query}"), "*/*").await;
    assert_eq!(watch.brief().await, "ADDED a");
    let mark = watch.next().await.unwrap();
    assert_eq!(mark["type"], "BOOKMARK");
    assert_eq!(mark["object"]["kind"], "VirtualMachine");
    assert_eq!(
        mark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
    assert_eq!(
        version_of(&mark["object"]),
        version_of(&c.get(VMS).await.ok())
    );
    c.post(VMS, &vm("b")).await.ok();
    assert_eq!(watch.brief().await, "ADDED b");
    let refused = c
        .get(&format!("{VMS}?watch=true&sendInitialEvents=true"))
        .await;
    refused.refused(
        422,
        "Invalid",
        "sendInitialEvents requires setting resourceVersionMatch",
    );
}

#[tokio::test]
async fn a_version_that_is_gone_is_an_event() {
    let c = Cluster::with_vms().await;
    c.post(VMS, &vm("a")).await.ok();
    c.state.compact();
    let mut watch = c
        .watch(&format!("{VMS}?watch=true&resourceVersion=1"), "*/*")
        .await;
    let event = watch.next().await.unwrap();
    assert_eq!(event["type"], "ERROR");
    assert_eq!(
        (&event["object"]["code"], &event["object"]["reason"]),
        (&json!(410), &json!("Expired"))
    );
    assert!(
        event["object"]["message"]
            .as_str()
            .unwrap()
            .starts_with("too old resource version: 1 (")
    );
    assert_eq!(watch.next().await, None);
    c.get(&format!("{VMS}?watch=true&resourceVersion=abc"))
        .await
        .refused(500, "", "");
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_the_future_is_silent_until_then() {
    let c = Cluster::with_vms().await;
    c.post(VMS, &vm("a")).await.ok();
    let backup = c.state.back_up();
    let before = version_of(&c.get(VMS).await.ok());
    c.post(VMS, &vm("lost")).await.ok();
    let lost = version_of(&c.get(VMS).await.ok());
    c.state.restore(&backup);
    let list = c.get(VMS).await.ok();
    assert_eq!(version_of(&list), before, "the version went back too");
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    let query =
        format!("watch=true&resourceVersion={lost}&allowWatchBookmarks=true&timeoutSeconds=300");
    let mut watch = c.watch(&format!("{VMS}?{query}"), "*/*").await;
    c.post(VMS, &vm("missed")).await.ok();
    assert_eq!(version_of(&c.get(VMS).await.ok()), lost, "reached");
    c.post(VMS, &vm("seen")).await.ok();
    assert_eq!(watch.brief().await, "ADDED seen");
    let query = "watch=true&resourceVersion=999999&allowWatchBookmarks=true&timeoutSeconds=300";
    let mut watch = c.watch(&format!("{VMS}?{query}"), "*/*").await;
    let next = http_body_util::BodyExt::frame(&mut watch.body);
    let end = tokio::time::timeout(std::time::Duration::from_secs(1000), next);
    assert!(end.await.unwrap().is_none(), "not even a bookmark");
}

#[tokio::test(start_paused = true)]
async fn quiet_watches_get_bookmarks_and_an_end() {
    let c = Cluster::with_vms().await;
    let version = version_of(&c.get(VMS).await.ok());
    c.post(CMS, &cm("elsewhere", "1")).await.ok();
    let query =
        format!("watch=true&resourceVersion={version}&allowWatchBookmarks=true&timeoutSeconds=90");
    let mut watch = c.watch(&format!("{VMS}?{query}"), "*/*").await;
    let mut seen = Vec::new();
    let mut versions = vec![version_of(&c.get(VMS).await.ok())];
    // The clock is paused: it jumps when all tasks wait, at most 10 s in `next`.
    for _ in 0..20 {
        let next = tokio::time::timeout(std::time::Duration::from_secs(200), async {
            http_body_util::BodyExt::frame(&mut watch.body).await
        });
        match next.await.unwrap() {
            Some(frame) => {
                seen.push(String::from_utf8(frame.unwrap().into_data().unwrap().to_vec()).unwrap())
            }
            None => break,
        }
        // This does not wake the watch, but its next bookmark is of this version.
        let made = c
            .post(CMS, &cm(&format!("later-{}", seen.len()), "1"))
            .await;
        versions.push(version_of(&made.ok()));
    }
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert!(seen.iter().all(|line| line.contains("BOOKMARK")));
    for (line, version) in seen.iter().zip(versions) {
        let version = format!("\"resourceVersion\":\"{version}\"");
        assert!(line.contains(&version), "{line}");
    }
}

#[tokio::test]
async fn a_selector_turns_changes_into_coming_and_going() {
    let c = Cluster::with_vms().await;
    let version = version_of(&c.get(VMS).await.ok());
    let mut watch = c
        .watch(
            &format!("{VMS}?watch=true&resourceVersion={version}&labelSelector=on"),
            "*/*",
        )
        .await;
    c.post(VMS, &vm("a")).await.ok();
    c.merge(
        &format!("{VMS}/a"),
        &json!({ "metadata": { "labels": { "on": "1" } } }),
    )
    .await
    .ok();
    c.merge(
        &format!("{VMS}/a"),
        &json!({ "metadata": { "labels": { "on": "2" } } }),
    )
    .await
    .ok();
    let off = c
        .merge(
            &format!("{VMS}/a"),
            &json!({ "metadata": { "labels": { "on": null } } }),
        )
        .await
        .ok();
    c.delete(&format!("{VMS}/a"), &json!({})).await.ok();
    assert_eq!(watch.brief().await, "ADDED a");
    assert_eq!(watch.brief().await, "MODIFIED a");
    let gone = watch.next().await.unwrap();
    assert_eq!(gone["type"], "DELETED");
    assert_eq!(gone["object"]["metadata"]["labels"]["on"], "2");
    assert_eq!(version_of(&gone["object"]), version_of(&off));
    c.stop.cancel();
    assert_eq!(watch.brief().await, "end");
}

#[tokio::test]
async fn a_watch_that_is_behind_reads_on_without_another_write() {
    let c = Cluster::with_vms().await;
    let version = version_of(&c.get(VMS).await.ok());
    // More than a watch reads at once, none of which it shows.
    for n in 0..200 {
        c.post(VMS, &vm(&format!("vm-{n}"))).await.ok();
    }
    let mut wanted = vm("wanted");
    wanted["metadata"]["labels"] = json!({ "on": "1" });
    c.post(VMS, &wanted).await.ok();
    for selector in ["labelSelector=on", "fieldSelector=metadata.name%3Dwanted"] {
        let path = format!("{VMS}?watch=true&resourceVersion={version}&{selector}");
        let mut watch = c.watch(&path, "*/*").await;
        assert_eq!(watch.brief().await, "ADDED wanted");
    }
}

#[tokio::test]
async fn watches_of_other_forms_see_the_same_change() {
    const PARTIAL: &str =
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
    let c = Cluster::new();
    let version = version_of(&c.get(CMS).await.ok());
    let path = format!("{CMS}?watch=true&resourceVersion={version}");
    let mut watches = Vec::new();
    for accept in ["*/*", TABLE, PARTIAL, "*/*"] {
        watches.push(c.watch(&path, accept).await);
    }
    let made = c.post(CMS, &cm("a", "1")).await.ok();
    let gone = c.delete(&format!("{CMS}/a"), &json!({})).await.ok();
    assert_eq!(gone["status"], "Success");
    let mut seen = Vec::new();
    for watch in &mut watches {
        let (added, deleted) = (watch.next().await.unwrap(), watch.next().await.unwrap());
        assert_eq!(added["type"], "ADDED");
        assert_eq!(deleted["type"], "DELETED");
        let (added, deleted) = (&added["object"], &deleted["object"]);
        assert_ne!(version_of(added), version_of(deleted));
        seen.push(added.clone());
    }
    assert_eq!(seen[0], made);
    assert_eq!(seen[1]["rows"][0]["cells"][0], "a");
    assert_eq!(seen[2]["kind"], "PartialObjectMetadata");
    assert_eq!(seen[2]["metadata"], made["metadata"]);
    assert_eq!(seen[3], made);
}

#[tokio::test]
async fn tables_say_their_columns_once() {
    let c = Cluster::with_vms().await;
    c.post(VMS, &vm("a")).await.ok();
    c.post(VMS, &vm("b")).await.ok();
    let mut watch = c.watch(&format!("{VMS}?watch=true"), TABLE).await;
    let (first, second) = (watch.next().await.unwrap(), watch.next().await.unwrap());
    assert_eq!(
        first["object"]["columnDefinitions"]
            .as_array()
            .unwrap()
            .len(),
        4
    );
    assert!(second["object"]["columnDefinitions"].is_null());
    assert_eq!(second["object"]["rows"][0]["cells"][0], "b");
    let partial = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
    let mut watch = c.watch(&format!("{VMS}?watch=true"), partial).await;
    assert_eq!(
        watch.next().await.unwrap()["object"]["kind"],
        "PartialObjectMetadata"
    );
}

#[tokio::test]
async fn a_watch_ends_with_its_kind() {
    let c = Cluster::with_vms().await;
    c.post(VMS, &vm("a")).await.ok();
    let mut watch = c.watch(&format!("{VMS}?watch=true"), "*/*").await;
    assert_eq!(watch.brief().await, "ADDED a");
    c.delete(
        &format!("{CRDS}/virtualmachines.cloud.waibizi.com"),
        &json!({}),
    )
    .await
    .ok();
    assert_eq!(watch.brief().await, "DELETED a");
    assert_eq!(watch.brief().await, "end");
    c.get(VMS).await.refused(404, "NotFound", "");
    c.get(&format!("{CRDS}/virtualmachines.cloud.waibizi.com"))
        .await
        .refused(404, "NotFound", "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_watch_sees_every_write_once_and_in_order() {
    const WRITERS: usize = 4;
    const WRITES: usize = 100;
    let c = Arc::new(Cluster::with_vms().await);
    let mut version: u64 = version_of(&c.get(VMS).await.ok()).parse().unwrap();
    let mut watches = Vec::new();
    for _ in 0..3 {
        let path = format!("{VMS}?watch=true&resourceVersion={version}");
        watches.push(c.watch(&path, "*/*").await);
    }
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let c = c.clone();
            tokio::spawn(async move {
                let name = format!("vm-{writer}");
                c.post(VMS, &vm(&name)).await.ok();
                for n in 1..WRITES {
                    let patch = json!({ "spec": { "memory": n } });
                    c.merge(&format!("{VMS}/{name}"), &patch).await.ok();
                }
            })
        })
        .collect();
    let mut seen = Vec::new();
    for watch in &mut watches {
        let mut events = Vec::new();
        for _ in 0..WRITERS * WRITES {
            let event = watch.next().await.unwrap();
            events.push(version_of(&event["object"]).parse::<u64>().unwrap());
        }
        assert!(events.is_sorted_by(|a, b| a < b));
        seen.push(events);
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert!(seen.iter().all(|events| *events == seen[0]));
    version += (WRITERS * WRITES) as u64;
    assert_eq!(seen[0].last(), Some(&version));
}
