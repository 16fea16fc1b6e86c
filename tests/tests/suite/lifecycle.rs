//! The life of a key: finalizers before the policy and after its clean-up, the previous object,
//! retries that end, keys that keep enqueueing themselves.

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::guests::{self, Way};
use vmhost_tests::obey::Obey;
use vmhost_tests::proxy::Request;
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::PLURAL;
use vmhost_tests::wait::eventually;

const FINALIZER: &str = "test.vmhost.dev/cleanup";

/// How often a test begins anew because the host gave up a held write: on a busy machine a swap may
/// take longer than a write may.
const ATTEMPTS: usize = 5;

async fn finalizers(obey: &Obey, name: &str) -> Result<Option<Vec<String>>> {
    let vm = obey.vms.get(name).await?;
    Ok(vm.map(|vm| {
        let list = vm.object["metadata"]["finalizers"].as_array().cloned();
        list.into_iter()
            .flatten()
            .filter_map(|one| one.as_str().map(str::to_owned))
            .collect()
    }))
}

both_servers!(the_policy_cleans_up_before_an_object_goes);
async fn the_policy_cleans_up_before_an_object_goes(server: &TestServer) -> Result<()> {
    let obey = Obey::watching(server, &server.kubeconfig()).await?;
    let annotations = json!({
        "vmhost.test/deleting": json!({ "next": { "retry": "not clean yet" } }).to_string(),
    });
    obey.vms
        .create_labelled("tidy", json!({ "case": "cleanup" }), annotations, "")
        .await?;
    let first = obey.until_turn("tidy", "the first", |_| true).await?;
    let vm = obey.vms.get("tidy").await?.context("it is there")?;
    ensure!(
        first["resourceVersion"] == vm.version.as_str(),
        "the policy saw it without its finalizer: {first}"
    );
    ensure!(finalizers(&obey, "tidy").await? == Some(vec![FINALIZER.to_owned()]));
    // Another controller's finalizer comes first, and stays.
    let both = json!({ "metadata": { "finalizers": ["other.example.com/x", FINALIZER] } });
    obey.vms.merge("tidy", both).await?;
    obey.vms.delete("tidy").await?;
    obey.until_turn("tidy", "it fails to clean up", |turn| {
        turn["deleting"] == true && turn["attempt"] == 2
    })
    .await?;
    ensure!(
        finalizers(&obey, "tidy").await?.is_some(),
        "it waits for the policy"
    );
    let clean = json!({ "next": "finalized" }).to_string();
    let annotations = json!({ "vmhost.test/deleting": clean });
    let clean = json!({ "metadata": { "annotations": annotations } });
    let clean = obey.vms.merge("tidy", clean).await?;
    // The log line of this turn may come after its write.
    obey.until_turn("tidy", "it cleans up", |turn| {
        turn["resourceVersion"] == clean.version.as_str()
    })
    .await?;
    eventually("ours is off", async || {
        let left = finalizers(&obey, "tidy").await?;
        Ok((left == Some(vec!["other.example.com/x".to_owned()])).then_some(()))
    })
    .await?;
    let turns = obey.turns("tidy").len();
    let touched = json!({ "metadata": { "labels": { "touched": "yes" } } });
    obey.vms.merge("tidy", touched).await?;
    let gone = json!({ "metadata": { "finalizers": null } });
    obey.vms.merge("tidy", gone).await?;
    obey.until_turn("tidy", "it is gone", |turn| turn["gone"] == true)
        .await?;
    ensure!(
        obey.turns("tidy").len() == turns + 1,
        "the policy has cleaned up and saw it again: {:?}",
        obey.turns("tidy")
    );
    Ok(())
}

both_servers!(an_object_that_is_being_deleted_gets_no_finalizer);
async fn an_object_that_is_being_deleted_gets_no_finalizer(server: &TestServer) -> Result<()> {
    let proxy = server.proxy().await?;
    let obey = Obey::watching(server, proxy.kubeconfig()).await?;
    // Without the label, the controller does not see the object.
    obey.vms.create_one("late", 0).await?;
    let held = json!({ "metadata": { "finalizers": ["other.example.com/x"] } });
    obey.vms.merge("late", held).await?;
    obey.vms.delete("late").await?;
    obey.vms
        .merge(
            "late",
            json!({ "metadata": { "labels": { "case": "cleanup" } } }),
        )
        .await?;
    obey.case("cleanup", "marker", Value::Null).await?;
    obey.until_turn("marker", "made later", |_| true).await?;
    ensure!(obey.turns("late").is_empty());
    let writes =
        proxy.requests_where(|request| request.writes(PLURAL) && request.path.contains("late"));
    ensure!(writes.is_empty(), "{writes:?}");
    obey.vms
        .merge("late", json!({ "metadata": { "finalizers": null } }))
        .await
        .map(drop)
}

both_servers!(finalized_means_something_only_while_deleting);
async fn finalized_means_something_only_while_deleting(server: &TestServer) -> Result<()> {
    let obey = Obey::watching(server, &server.kubeconfig()).await?;
    obey.case("cleanup", "eager", json!({ "next": "finalized" }))
        .await?;
    obey.host
        .wait_for_line("`finalized`, but the request did not say `deleting`")
        .await?;
    ensure!(finalizers(&obey, "eager").await? == Some(vec![FINALIZER.to_owned()]));
    // Allows the namespace to be deleted.
    obey.vms.merge("eager", json!({ "metadata": { "annotations": { "vmhost.test/deleting": "{\"next\":\"finalized\"}" } } })).await?;
    obey.vms.delete("eager").await
}

both_servers!(previous_tells_added_changed_and_deleted_apart);
async fn previous_tells_added_changed_and_deleted_apart(server: &TestServer) -> Result<()> {
    let obey = Obey::watching(server, &server.kubeconfig()).await?;
    obey.case("history", "told", Value::Null).await?;
    let added = obey.until_turn("told", "added", |_| true).await?;
    ensure!(added["previous"].is_null(), "{added}");
    // A failed turn does not count as seen: the next one still compares with the last success.
    let orders = json!({ "next": { "retry": "no" } }).to_string();
    let failing = json!({ "metadata": { "annotations": { "vmhost.test/turn": orders } } });
    obey.vms.merge("told", failing).await?;
    let failed = obey
        .until_turn("told", "fails again", |turn| turn["attempt"] == 2)
        .await?;
    ensure!(failed["previous"] == added["resourceVersion"], "{failed}");
    let fine = json!({ "metadata": { "annotations": { "vmhost.test/turn": null } } });
    let version = obey.vms.merge("told", fine).await?.version;
    let changed = obey
        .until_turn("told", "changed", |turn| {
            turn["resourceVersion"] == version.as_str()
        })
        .await?;
    ensure!(changed["previous"] == added["resourceVersion"], "{changed}");
    // The memory survives a swap.
    let swapped = guests::with_comment(&guests::read(guests::WATCHER)?, "again");
    let before = obey.turns("told").len();
    obey.policy.swap(&swapped, Way::Rename)?;
    let after = obey.until_turns("told", before + 1).await?;
    ensure!(after[before]["previous"] == version.as_str(), "{after:?}");
    obey.vms.delete("told").await?;
    let gone = obey
        .until_turn("told", "gone", |turn| turn["gone"] == true)
        .await?;
    ensure!(
        gone["previous"] == version.as_str(),
        "the last known state: {gone}"
    );
    // And again after a restart.
    let before = obey.turns("told").len();
    obey.case("history", "told", Value::Null).await?;
    let again = obey.until_turns("told", before + 1).await?;
    ensure!(
        again[before]["previous"].is_null() && again[before]["gone"] == false,
        "{again:?}"
    );
    Ok(())
}

both_servers!(a_deletion_that_old_code_is_busy_with_is_shown_to_the_new);
async fn a_deletion_that_old_code_is_busy_with_is_shown_to_the_new(
    server: &TestServer,
) -> Result<()> {
    let proxy = server.proxy().await?;
    let obey = Obey::watching(server, proxy.kubeconfig()).await?;
    let gone = |name: &str, generation: u64| -> Vec<Value> {
        let turns = obey.turns_of(generation).into_iter();
        turns
            .filter(|turn| turn["name"] == name && turn["gone"] == true)
            .collect()
    };
    for attempt in 0..ATTEMPTS {
        let old = attempt as u64 + 1;
        let (name, other) = (format!("told-{attempt}"), format!("other-{attempt}"));
        obey.vms.create_one(&other, 0).await?;
        // In the turn about its deletion, the policy writes to another object.
        let key = json!({ "group": "cloud.waibizi.com", "version": "v1", "kind": "VirtualMachine", "name": other });
        let effect =
            json!({ "merge": { "metadata": { "labels": { "seen": "gone" } } }, "key": key });
        let annotations = json!({ "vmhost.test/gone": json!({ "effects": [effect] }).to_string() });
        obey.vms
            .create_labelled(&name, json!({ "case": "history" }), annotations, "")
            .await?;
        obey.until_turns(&name, 1).await?;
        let ending = format!("/{other}");
        let of_turn =
            move |request: &Request| request.writes(PLURAL) && request.path.ends_with(&ending);
        let hold = proxy.hold(of_turn.clone());
        obey.vms.delete(&name).await?;
        hold.reached(1).await?;
        let swapped = guests::with_comment(&guests::read(guests::WATCHER)?, &name);
        obey.policy.swap(&swapped, Way::Rename)?;
        obey.host
            .wait_for_line(&format!("swapped watcher: generation {}", old + 1))
            .await?;
        let early = gone(&name, old + 1);
        hold.release();
        let shown = eventually("the new code is shown that it is gone", async || {
            Ok(gone(&name, old + 1).into_iter().next())
        })
        .await?;
        if proxy.was_given_up(of_turn) {
            // Then the old code was not busy with it at the swap.
            continue;
        }
        ensure!(early.is_empty(), "two turns of one key at once: {early:?}");
        let before = gone(&name, old);
        ensure!(before.len() == 1, "{before:?}");
        ensure!(
            !shown["previous"].is_null() && shown["previous"] == before[0]["previous"],
            "{before:?}, then {shown:?}"
        );
        return Ok(());
    }
    bail!("a held write was given up each time")
}

both_servers!(a_key_is_given_up_after_its_last_retry_and_reported);
async fn a_key_is_given_up_after_its_last_retry_and_reported(server: &TestServer) -> Result<()> {
    let obey = Obey::watching(server, &server.kubeconfig()).await?;
    obey.case(
        "bounded",
        "poor",
        json!({ "next": { "retry": "never works" } }),
    )
    .await?;
    obey.host.wait_for_line("given up after 2 retries").await?;
    let labels = [("controller", "watcher/bounded")];
    obey.host
        .until_metric("vmhost_retries_exhausted_total", &labels, 1.0)
        .await?;
    ensure!(obey.turns("poor").len() == 3, "{:?}", obey.turns("poor"));
    until_event(
        server,
        &obey,
        "poor",
        "ReconcileFailed",
        "given up after 2 retries",
    )
    .await?;
    // A change enqueues the key again.
    obey.reorder("poor", json!({})).await?;
    let turns = obey.until_turns("poor", 4).await?;
    ensure!(turns[3]["attempt"] == 0, "{turns:?}");
    Ok(())
}

both_servers!(a_key_that_keeps_itself_busy_is_held);
async fn a_key_that_keeps_itself_busy_is_held(server: &TestServer) -> Result<()> {
    let obey = Obey::watching(server, &server.kubeconfig()).await?;
    // Each turn asks for a requeue at once.
    obey.case("hot", "hot", json!({ "next": { "requeue-after-ms": 1 } }))
        .await?;
    let labels = [("controller", "watcher/hot")];
    obey.host
        .until_metric("vmhost_hot_keys_total", &labels, 1.0)
        .await?;
    until_event(server, &obey, "hot", "HotLoop", "the key is held for 30s").await?;
    // Other keys continue.
    obey.case("hot", "cool", Value::Null).await?;
    obey.until_turns("cool", 1).await?;
    ensure!(
        obey.turns("hot").len() < 125,
        "{} turns",
        obey.turns("hot").len()
    );
    Ok(())
}

both_servers!(a_write_that_changes_nothing_keeps_no_key_busy);
async fn a_write_that_changes_nothing_keeps_no_key_busy(server: &TestServer) -> Result<()> {
    let obey = Obey::watching(server, &server.kubeconfig()).await?;
    // The controller watches no ConfigMaps: only the answer tells that the write changed nothing.
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": "same", "namespace": obey.vms.namespace() },
        "data": { "a": "b" },
    });
    let apply = json!({ "apply": object, "force": true, "createIfAbsent": true });
    let orders = json!({ "effects": [apply], "next": { "requeue-after-ms": 100 } });
    obey.case("hot", "writes", orders).await?;
    // More than the limit of turns per minute for busy keys.
    obey.until_turns("writes", 125).await?;
    let metrics = obey.host.metrics().await?;
    let labels = [("controller", "watcher/hot")];
    ensure!(metrics.sum("vmhost_hot_keys_total", &labels) == 0.0);
    Ok(())
}

async fn until_event(
    server: &TestServer,
    obey: &Obey,
    name: &str,
    reason: &str,
    note: &str,
) -> Result<()> {
    let api: Api<Event> = Api::namespaced(server.client().await?, obey.vms.namespace());
    eventually(&format!("an Event {reason} of {name}"), async || {
        let list = api.list(&ListParams::default()).await?;
        let found = list.items.iter().any(|event| {
            event.regarding.as_ref().and_then(|of| of.name.as_deref()) == Some(name)
                && event.reason.as_deref() == Some(reason)
                && event
                    .note
                    .as_deref()
                    .is_some_and(|text| text.contains(note))
        });
        Ok(found.then_some(()))
    })
    .await
}

both_servers!(a_new_version_gives_up_what_it_applies_no_more);
async fn a_new_version_gives_up_what_it_applies_no_more(server: &TestServer) -> Result<()> {
    let obey = Obey::watching(server, &server.kubeconfig()).await?;
    let applies = |labels: Value| {
        let object = json!({
            "apiVersion": "cloud.waibizi.com/v1",
            "kind": "VirtualMachine",
            "metadata": { "name": "labelled", "namespace": obey.vms.namespace(), "labels": labels },
        });
        json!({ "effects": [{ "apply": object, "force": true }] })
    };
    let until = async |what: &str, gone: bool| {
        obey.vms
            .until_one("labelled", what, |vm| {
                let labels = &vm.object["metadata"]["labels"];
                labels["one"] == "1"
                    && labels.get("two").is_none() == gone
                    && labels["case"] == "owner"
            })
            .await
    };
    let both = applies(json!({ "one": "1", "two": "2" }));
    obey.case("owner", "labelled", both).await?;
    until("version 1 applies two labels", false).await?;
    let swapped = guests::with_comment(&guests::read(guests::WATCHER)?, "version 2");
    obey.policy.swap(&swapped, Way::Rename)?;
    obey.host
        .wait_for_line("swapped watcher: generation 2")
        .await?;
    obey.reorder("labelled", applies(json!({ "one": "1" })))
        .await?;
    until("version 2 applies one of them, and the other goes", true).await?;
    Ok(())
}
