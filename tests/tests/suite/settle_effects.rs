//! Settle: what each effect does to the cluster, and what it must not do to an object that changed
//! in the meantime.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::obey::{Obey, complete, said};
use vmhost_tests::proxy::{Refusal, Request};
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::PLURAL;
use vmhost_tests::wait::eventually;

async fn config_maps(server: &TestServer, obey: &Obey) -> Result<Api<ConfigMap>> {
    Ok(Api::namespaced(
        server.client().await?,
        obey.vms.namespace(),
    ))
}

fn config_map(obey: &Obey, name: &str, data: Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": obey.vms.namespace() },
        "data": data,
    })
}

async fn data(api: &Api<ConfigMap>, name: &str) -> Result<Option<Value>> {
    let object = api.get_opt(name).await?;
    Ok(object.map(|object| json!(object.data.unwrap_or_default())))
}

async fn until_data(api: &Api<ConfigMap>, name: &str, wanted: Value) -> Result<()> {
    eventually(&format!("{name} holds {wanted}"), async || {
        Ok((data(api, name).await? == Some(wanted.clone())).then_some(()))
    })
    .await
}

both_servers!(a_field_left_out_of_the_next_apply_disappears);
async fn a_field_left_out_of_the_next_apply_disappears(server: &TestServer) -> Result<()> {
    let obey = Obey::start(server, &server.kubeconfig()).await?;
    let api = config_maps(server, &obey).await?;
    let orders = |data: Value| {
        let object = config_map(&obey, "made", data);
        json!({ "effects": [{ "apply": object, "force": true, "createIfAbsent": true }] })
    };
    obey.order("maker", orders(json!({ "a": "1", "b": "2" })))
        .await?;
    until_data(&api, "made", json!({ "a": "1", "b": "2" })).await?;
    obey.reorder("maker", orders(json!({ "a": "1" }))).await?;
    until_data(&api, "made", json!({ "a": "1" })).await
}

both_servers!(an_apply_that_changes_nothing_is_not_sent_twice);
async fn an_apply_that_changes_nothing_is_not_sent_twice(server: &TestServer) -> Result<()> {
    let proxy = server.proxy().await?;
    let obey = Obey::start(server, proxy.kubeconfig()).await?;
    let object = config_map(&obey, "made", json!({ "a": "1" }));
    let orders = json!({ "effects": [{ "apply": object, "force": true, "createIfAbsent": true }, complete()] });
    obey.order("maker", orders).await?;
    obey.vms
        .until_one("maker", "it is complete", |vm| vm.complete())
        .await?;
    obey.vms.reopen("maker").await?;
    obey.vms
        .until_one("maker", "it is complete again", |vm| vm.complete())
        .await?;
    let sent = proxy.requests_where(|request| request.writes("configmaps"));
    ensure!(sent.len() == 1, "{sent:#?}");
    Ok(())
}

both_servers!(an_apply_creates_only_when_it_may);
async fn an_apply_creates_only_when_it_may(server: &TestServer) -> Result<()> {
    let obey = Obey::start(server, &server.kubeconfig()).await?;
    let api = config_maps(server, &obey).await?;
    let object = config_map(&obey, "absent", json!({ "a": "1" }));
    obey.order(
        "maker",
        json!({ "effects": [{ "apply": object, "force": true }] }),
    )
    .await?;
    obey.until_turn("maker", "refused", |turn| {
        turn.pointer("/last/code") == Some(&json!(404))
    })
    .await?;
    ensure!(data(&api, "absent").await?.is_none());
    Ok(())
}

both_servers!(fields_of_another_manager_are_left_to_it);
async fn fields_of_another_manager_are_left_to_it(server: &TestServer) -> Result<()> {
    let obey = Obey::start(server, &server.kubeconfig()).await?;
    let api = config_maps(server, &obey).await?;
    let theirs = Patch::Apply(config_map(&obey, "theirs", json!({ "a": "theirs" })));
    api.patch("theirs", &PatchParams::apply("another-manager"), &theirs)
        .await?;
    let orders = |force: bool| {
        let object = config_map(&obey, "theirs", json!({ "a": "ours" }));
        json!({ "effects": [{ "apply": object, "force": force }] })
    };
    obey.order("taker", orders(false)).await?;
    obey.host
        .wait_for_lines(1, |line| {
            line.contains("another-manager") && line.contains(".data.a")
        })
        .await?;
    ensure!(data(&api, "theirs").await? == Some(json!({ "a": "theirs" })));
    obey.reorder("taker", orders(true)).await?;
    until_data(&api, "theirs", json!({ "a": "ours" })).await
}

both_servers!(a_create_that_comes_second_is_told_to_the_guest);
async fn a_create_that_comes_second_is_told_to_the_guest(server: &TestServer) -> Result<()> {
    let obey = Obey::start(server, &server.kubeconfig()).await?;
    let api = config_maps(server, &obey).await?;
    let object = config_map(&obey, "taken", json!({ "a": "first" }));
    api.create(&PostParams::default(), &serde_json::from_value(object)?)
        .await?;
    let second = config_map(&obey, "taken", json!({ "a": "second" }));
    obey.order(
        "maker",
        json!({ "effects": [complete(), { "create": second }], "once": true }),
    )
    .await?;
    let told = obey
        .until_turn("maker", "told", |turn| turn["last"].is_object())
        .await?;
    ensure!(
        told["last"]["reason"] == "AlreadyExists" && told["last"]["code"] == 409,
        "{told}"
    );
    ensure!(told["last"]["effect"] == 1, "{told}");
    ensure!(data(&api, "taken").await? == Some(json!({ "a": "first" })));
    Ok(())
}

/// Carries out a VM's orders while the watches of what they write are held. Returns whether the
/// first turn waited for them: then the second turn, for a concurrent change, begins after the wait
/// was given up.
async fn waits(obey: &Obey, controller: &str, name: &str, orders: Value) -> Result<bool> {
    obey.case(controller, name, orders).await?;
    obey.until_turns(name, 1).await?;
    // A foreign change, for a turn that sees only what the stores show.
    let changed = json!({ "metadata": { "labels": { "changed": "yes" } } });
    obey.vms.merge(name, changed).await?;
    obey.until_turns(name, 2).await?;
    let output = obey.host.output();
    let is_turn = |line: &&String| said(line, "TURN").is_some_and(|turn| turn["name"] == name);
    let lines = output.iter().skip_while(|line| !is_turn(line)).skip(1);
    let mut between = lines.take_while(|line| !is_turn(line));
    let object = format!("/{name}\"");
    Ok(between.any(|line| line.contains("did not show up") && line.contains(&object)))
}

both_servers!(a_turn_waits_for_what_a_selective_watch_will_show_and_no_other);
async fn a_turn_waits_for_what_a_selective_watch_will_show_and_no_other(
    server: &TestServer,
) -> Result<()> {
    let proxy = server.proxy().await?;
    let obey = Obey::watching(server, proxy.kubeconfig()).await?;
    let selective = |request: &Request| {
        let selected = |name| {
            request
                .param(name)
                .is_some_and(|text| text.contains("vmhost.test/"))
        };
        request.is_watch() && (selected("labelSelector") || selected("fieldSelector"))
    };
    // Held until the test ends.
    let hold = proxy.hold(selective);
    proxy.cut_watches();
    // The watches of ConfigMaps with a label, of those that are read, and of the Secrets of a type.
    hold.reached(3).await?;
    let apply = |object: Value| json!({ "effects": [{ "apply": object, "force": true, "createIfAbsent": true }] });
    let labelled = |name: &str, labels: Value| {
        let mut object = config_map(&obey, name, json!({}));
        object["metadata"]["labels"] = labels;
        apply(object)
    };
    let typed = |name: &str, kind: &str| {
        let metadata = json!({ "name": name, "namespace": obey.vms.namespace() });
        apply(json!({ "apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": metadata }))
    };
    for (controller, name, orders, shown) in [
        (
            "guest",
            "unlabelled",
            labelled("unlabelled", json!({})),
            false,
        ),
        (
            "guest",
            "labelled",
            labelled("labelled", json!({ "vmhost.test/guest": "" })),
            true,
        ),
        (
            "fielded",
            "untyped",
            typed("untyped", "vmhost.test/other"),
            false,
        ),
        (
            "fielded",
            "typed",
            typed("typed", "vmhost.test/shown"),
            true,
        ),
    ] {
        let waited = waits(&obey, controller, name, orders).await?;
        ensure!(waited == shown, "{name}: waited: {waited}");
    }
    Ok(())
}

both_servers!(a_name_is_only_made_for_what_the_watch_will_show);
async fn a_name_is_only_made_for_what_the_watch_will_show(server: &TestServer) -> Result<()> {
    let obey = Obey::watching(server, &server.kubeconfig()).await?;
    let nameless = |labels: Value| {
        let metadata =
            json!({ "generateName": "made-", "namespace": obey.vms.namespace(), "labels": labels });
        let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata });
        json!({ "effects": [{ "create": object }, complete()] })
    };
    obey.case("guest", "hidden", nameless(json!({ "hidden": "yes" })))
        .await?;
    obey.host
        .wait_for_line("generateName is only allowed for an object that the controller's watch")
        .await?;
    obey.case(
        "guest",
        "shown",
        nameless(json!({ "vmhost.test/guest": "" })),
    )
    .await?;
    obey.vms
        .until_one("shown", "it is complete", |vm| vm.complete())
        .await?;
    let api = config_maps(server, &obey).await?;
    let made = api.list(&Default::default()).await?;
    let made: Vec<_> = made
        .items
        .into_iter()
        .filter(|object| object.metadata.generate_name.is_some())
        .map(|object| object.metadata.labels.unwrap_or_default())
        .collect();
    ensure!(
        !made.is_empty()
            && made
                .iter()
                .all(|labels| labels.contains_key("vmhost.test/guest")),
        "{made:?}"
    );
    Ok(())
}

both_servers!(deleting_what_is_gone_is_done);
async fn deleting_what_is_gone_is_done(server: &TestServer) -> Result<()> {
    let obey = Obey::start(server, &server.kubeconfig()).await?;
    let absent = json!({ "version": "v1", "kind": "ConfigMap", "name": "absent" });
    obey.order(
        "deleter",
        json!({ "effects": [{ "delete": absent }, complete()] }),
    )
    .await?;
    obey.vms
        .until_one("deleter", "it is complete", |vm| vm.complete())
        .await?;
    ensure!(
        obey.turns("deleter")
            .iter()
            .all(|turn| turn["attempt"] == 0 && turn["last"].is_null())
    );
    Ok(())
}

both_servers!(a_stale_turn_leaves_the_next_object_of_that_name_alone);
async fn a_stale_turn_leaves_the_next_object_of_that_name_alone(server: &TestServer) -> Result<()> {
    let proxy = server.proxy().await?;
    let obey = Obey::start(server, proxy.kubeconfig()).await?;
    let hold = proxy.hold(|request| request.writes(PLURAL) && request.path.ends_with("/reborn"));
    obey.order("reborn", json!({ "effects": [complete()] }))
        .await?;
    hold.reached(1).await?;
    obey.vms.delete("reborn").await?;
    obey.vms.create_with("reborn", json!({}), "stopped").await?;
    hold.release();
    let uid = obey.vms.get("reborn").await?.context("it is there")?.uid;
    obey.until_turn("reborn", "the new one's", |turn| {
        turn["uid"] == uid.as_str()
    })
    .await?;
    let vm = obey.vms.get("reborn").await?.context("it is there")?;
    ensure!(
        vm.status == "stopped",
        "written by a turn of its predecessor: {vm:?}"
    );
    Ok(())
}

both_servers!(a_stale_apply_does_not_bring_its_object_back);
async fn a_stale_apply_does_not_bring_its_object_back(server: &TestServer) -> Result<()> {
    let proxy = server.proxy().await?;
    let obey = Obey::start(server, proxy.kubeconfig()).await?;
    let hold = proxy.hold(|request| request.writes(PLURAL) && request.path.ends_with("/deleted"));
    let object = json!({
        "apiVersion": "cloud.waibizi.com/v1",
        "kind": "VirtualMachine",
        "metadata": { "name": "deleted", "namespace": obey.vms.namespace() },
        "spec": { "status": "complete" },
    });
    let orders = json!({ "effects": [{ "apply": object, "force": true, "createIfAbsent": true }] });
    obey.order("deleted", orders).await?;
    hold.reached(1).await?;
    obey.vms.delete("deleted").await?;
    hold.release();
    obey.until_turn("deleted", "it is gone", |turn| turn["gone"] == true)
        .await?;
    ensure!(obey.vms.get("deleted").await?.is_none(), "it came back");
    Ok(())
}

both_servers!(a_warning_of_the_server_is_logged_once_and_not_with_each_write);
async fn a_warning_of_the_server_is_logged_once_and_not_with_each_write(
    server: &TestServer,
) -> Result<()> {
    let obey = Obey::start(server, &server.kubeconfig()).await?;
    for (name, field) in [("a", "bogus"), ("b", "bogus"), ("c", "bogus"), ("d", "odd")] {
        let unknown = json!({ "merge": { "spec": { field: "x" } } });
        obey.order(name, json!({ "effects": [unknown, complete()] }))
            .await?;
        obey.vms
            .until_one(name, "it is complete", |vm| vm.complete())
            .await?;
    }
    for field in ["spec.bogus", "spec.odd"] {
        let of = |line: &str| line.contains("the API server warns") && line.contains(field);
        let lines = obey.host.wait_for_lines(1, of).await?;
        ensure!(lines.len() == 1, "{lines:#?}");
    }
    Ok(())
}

both_servers!(events_are_written_and_never_fail_a_turn);
async fn events_are_written_and_never_fail_a_turn(server: &TestServer) -> Result<()> {
    let proxy = server.proxy().await?;
    let obey = Obey::start(server, proxy.kubeconfig()).await?;
    proxy.refuse(1, Refusal::internal(), |request| request.writes("events"));
    let event =
        json!({ "event": { "reason": "Completed", "action": "Complete", "note": "it is done" } });
    for name in ["first", "second"] {
        obey.order(name, json!({ "effects": [event.clone(), complete()] }))
            .await?;
        obey.vms
            .until_one(name, "it is complete", |vm| vm.complete())
            .await?;
        ensure!(
            obey.turns(name).iter().all(|turn| turn["attempt"] == 0),
            "{:?}",
            obey.turns(name)
        );
    }
    let client = server.client().await?;
    let events: Api<k8s_openapi::api::events::v1::Event> =
        Api::namespaced(client, obey.vms.namespace());
    eventually("the event is there", async || {
        let all = events.list(&Default::default()).await?;
        let of = |event: &k8s_openapi::api::events::v1::Event| {
            let about = event
                .regarding
                .as_ref()
                .and_then(|about| about.name.as_deref());
            about == Some("second") && event.reason.as_deref() == Some("Completed")
        };
        Ok(all.items.iter().any(of).then_some(()))
    })
    .await
}
