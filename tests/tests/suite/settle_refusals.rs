//! Settle: what happens to a key whose turn failed.

use std::time::Instant;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::expect::{GENERATION, RECONCILE_ERRORS};
use vmhost_tests::guests::{self, Way, with_comment};
use vmhost_tests::obey::{Obey, complete};
use vmhost_tests::proxy::{Proxy, Refusal, Request};
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::PLURAL;
use vmhost_tests::wait::eventually;

/// The first delay of a failing key in milliseconds; each failure doubles it.
const FIRST_DELAY: f64 = 5.0;

/// Refuses the next `times` writes of the host to this VM with this answer.
fn refuse(proxy: &Proxy, name: &'static str, times: usize, refusal: Refusal) {
    proxy.refuse(times, refusal, move |request| {
        request.writes(PLURAL) && request.path.ends_with(name)
    });
}

both_servers!(what_may_pass_is_tried_again);
async fn what_may_pass_is_tried_again(server: &TestServer) -> Result<()> {
    let proxy = server.proxy().await?;
    let obey = Obey::start(server, proxy.kubeconfig()).await?;
    let cases = [
        ("too-many", Refusal::too_many_requests(0)),
        ("internal", Refusal::internal()),
        (
            "unavailable",
            Refusal::new(503, "ServiceUnavailable", "refused by the fault proxy"),
        ),
        (
            "timeout",
            Refusal::new(504, "Timeout", "refused by the fault proxy"),
        ),
        ("conflict", Refusal::conflict()),
    ];
    for (name, refusal) in cases {
        refuse(&proxy, name, 3, refusal);
        obey.order(name, json!({ "effects": [complete()] })).await?;
        obey.vms
            .until_one(name, "it is complete", |vm| vm.complete())
            .await?;
        let of = |request: &Request| request.writes(PLURAL) && request.path.ends_with(name);
        // The VM's watch may be faster than the answer.
        proxy
            .wait_for(1, |request| of(request) && request.answered == Some(200))
            .await?;
        let answers: Vec<_> = proxy
            .requests_where(of)
            .iter()
            .map(|sent| sent.answered)
            .collect();
        ensure!(
            answers.len() >= 4 && answers[3] == Some(200),
            "{name}: {answers:?}"
        );
    }
    // The failure persists, and the guest is told the attempt's number.
    obey.until_turns("internal", 4).await?;
    let attempts: Vec<Value> = obey
        .turns("internal")
        .iter()
        .map(|turn| turn["attempt"].clone())
        .collect();
    ensure!(
        attempts.starts_with(&[json!(0), json!(1), json!(2), json!(3)]),
        "{attempts:?}"
    );
    Ok(())
}

both_servers!(a_server_that_does_not_find_what_the_store_shows_is_asked_again);
async fn a_server_that_does_not_find_what_the_store_shows_is_asked_again(
    server: &TestServer,
) -> Result<()> {
    let proxy = server.proxy().await?;
    let obey = Obey::start(server, proxy.kubeconfig()).await?;
    // As while the server does not serve the kind. No event follows, since nothing was deleted.
    refuse(&proxy, "there", 2, Refusal::not_found());
    obey.order("there", json!({ "effects": [complete()] }))
        .await?;
    obey.vms
        .until_one("there", "it is complete", |vm| vm.complete())
        .await?;
    let turns = obey.until_turns("there", 3).await?;
    ensure!(
        turns.iter().all(|turn| turn["attempt"] == 0),
        "nobody's failure: {turns:?}"
    );
    Ok(())
}

both_servers!(what_cannot_pass_waits_for_a_change);
async fn what_cannot_pass_waits_for_a_change(server: &TestServer) -> Result<()> {
    let proxy = server.proxy().await?;
    let obey = Obey::start(server, proxy.kubeconfig()).await?;
    refuse(&proxy, "invalid", 1, Refusal::invalid());
    obey.order("invalid", json!({ "effects": [complete()] }))
        .await?;
    obey.host
        .wait_for_lines(1, |line| {
            line.contains("invalid") && line.contains("spec.memory")
        })
        .await?;
    obey.settle().await?;
    let turns = obey.turns("invalid");
    ensure!(turns.len() == 1, "{turns:?}");
    let changed = json!({ "metadata": { "labels": { "changed": "yes" } } });
    obey.vms.merge("invalid", changed).await?;
    obey.vms
        .until_one("invalid", "it is complete", |vm| vm.complete())
        .await?;
    Ok(())
}

both_servers!(the_servers_wait_is_kept_whatever_changes_meanwhile);
async fn the_servers_wait_is_kept_whatever_changes_meanwhile(server: &TestServer) -> Result<()> {
    let proxy = server.proxy().await?;
    let obey = Obey::start(server, proxy.kubeconfig()).await?;
    // So long that all following steps are shorter.
    refuse(&proxy, "waits", 1, Refusal::too_many_requests(300));
    refuse(&proxy, "goes-on", 1, Refusal::internal());
    for name in ["waits", "goes-on"] {
        obey.order(name, json!({ "effects": [complete()] })).await?;
        obey.until_turns(name, 1).await?;
        proxy
            .wait_for(1, |request| {
                request.writes(PLURAL) && request.path.ends_with(name) && request.answered.is_some()
            })
            .await?;
        let changed = json!({ "metadata": { "labels": { "changed": "yes" } } });
        obey.vms.merge(name, changed).await?;
    }
    obey.vms
        .until_one("goes-on", "it is complete", |vm| vm.complete())
        .await?;
    obey.settle().await?;
    let turns = obey.turns("waits");
    ensure!(turns.len() == 1, "{turns:?}");
    // A new version of the plugin does not shorten the server's delay. Its own key is enqueued all
    // the same.
    let other = with_comment(&guests::read(guests::OBEY)?, "the same");
    obey.policy.swap(&other, Way::Rename)?;
    obey.host
        .until_metric(GENERATION, &[("plugin", "obey")], 2.0)
        .await?;
    obey.settle().await?;
    let turns = obey.turns("waits");
    ensure!(turns.len() == 1, "{turns:?}");
    Ok(())
}

both_servers!(a_question_that_fails_costs_no_look_at_the_object);
async fn a_question_that_fails_costs_no_look_at_the_object(server: &TestServer) -> Result<()> {
    let proxy = server.proxy().await?;
    let obey = Obey::start(server, proxy.kubeconfig()).await?;
    // The host looks up the resource of ConfigMaps before its first write: no request was sent that
    // could have been carried out.
    let asks = |request: &Request| request.method == "GET" && request.path == "/api/v1";
    proxy.refuse(1, Refusal::internal(), asks);
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": "made", "namespace": obey.vms.namespace() },
    });
    let orders = json!({ "effects": [{ "create": object }, complete()] });
    obey.order("maker", orders).await?;
    obey.vms
        .until_one("maker", "it is complete", |vm| vm.complete())
        .await?;
    let refused = |request: &Request| asks(request) && request.answered == Some(500);
    ensure!(proxy.requests_where(refused).len() == 1);
    let looks = proxy.requests_where(|request| {
        request.method == "GET" && request.path.ends_with("/configmaps/made")
    });
    ensure!(looks.is_empty(), "{looks:#?}");
    Ok(())
}

/// Returns the notes of the Warning Events about a VM that contain this text.
async fn warnings(obey: &Obey, client: &Client, name: &str, text: &str) -> Result<Vec<String>> {
    let events: Api<Event> = Api::namespaced(client.clone(), obey.vms.namespace());
    let about = |event: Event| {
        let is_it = event.regarding?.name? == name && event.type_? == "Warning";
        event.note.filter(|note| is_it && note.contains(text))
    };
    let all = events.list(&Default::default()).await?;
    Ok(all.items.into_iter().filter_map(about).collect())
}

both_servers!(what_always_collides_is_an_error_and_told_once);
async fn what_always_collides_is_an_error_and_told_once(server: &TestServer) -> Result<()> {
    let obey = Obey::watching(server, &server.kubeconfig()).await?;
    let client = server.client().await?;
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), obey.vms.namespace());
    let taken = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": "taken", "namespace": obey.vms.namespace() },
    });
    let params = PostParams::default();
    config_maps
        .create(&params, &serde_json::from_value(taken.clone())?)
        .await?;
    let create = json!({ "effects": [{ "create": taken }] });
    let never = json!([{ "op": "test", "path": "/spec/status", "value": "never so" }]);
    let misfit = json!({ "effects": [{ "json": never }] });
    let cases = [
        ("creator", create.clone(), "/taken for the 4th"),
        ("patcher", misfit, "test /spec/status"),
    ];
    for (name, orders, named) in &cases {
        // ConfigMaps do not wake the controller `hot`.
        obey.case("hot", name, orders.clone()).await?;
        let turns = obey.until_turns(name, 8).await?;
        ensure!(
            turns.iter().all(|turn| turn["attempt"] == 0),
            "nobody's failure: {turns:?}"
        );
        let row = "for the 4th time in a row";
        let told = eventually("an Event tells it", async || {
            let told = warnings(&obey, &client, name, row).await?;
            Ok((!told.is_empty()).then_some(told))
        });
        let told = told.await?;
        ensure!(told.len() == 1 && told[0].contains(named), "{told:?}");
        let others = warnings(&obey, &client, name, "th time in a row").await?;
        ensure!(others.len() == 1, "told once: {others:?}");
    }
    let labels = [("controller", "watcher/hot")];
    // At least four of each key's eight turns.
    obey.host
        .until_metric(RECONCILE_ERRORS, &labels, 8.0)
        .await?;

    // Three that do not count, two retries, and the one too many.
    obey.case("bounded", "given-up", create).await?;
    obey.until_turns("given-up", 6).await?;
    eventually("an Event tells it", async || {
        let told = warnings(&obey, &client, "given-up", "given up after 2 retries").await?;
        Ok((!told.is_empty()).then_some(()))
    })
    .await?;
    let turns = obey.turns("given-up");
    ensure!(turns.len() == 6, "{turns:?}");
    Ok(())
}

both_servers!(a_failing_key_backs_off_though_it_writes_before_it_fails);
async fn a_failing_key_backs_off_though_it_writes_before_it_fails(
    server: &TestServer,
) -> Result<()> {
    let proxy = server.proxy().await?;
    let obey = Obey::start(server, proxy.kubeconfig()).await?;
    proxy.refuse(usize::MAX, Refusal::internal(), |request| {
        request.writes("configmaps")
    });
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": "refused", "namespace": obey.vms.namespace() },
    });
    // The first effect changes the VM on every attempt, and the host gets the event: it must not
    // cause an immediate attempt.
    let stamp = json!({ "merge": { "metadata": { "annotations": { "attempt": "$attempt" } } } });
    let began = Instant::now();
    obey.order(
        "failing",
        json!({ "effects": [stamp, { "create": object }] }),
    )
    .await?;
    obey.until_turn("failing", "the fifth attempt", |turn| turn["attempt"] == 4)
        .await?;
    for _ in 0..10 {
        obey.settle().await?;
    }
    let turns = obey.turns("failing").len() as f64;
    // The elapsed time limits the number of doubled delays; the rest is for the first turn and
    // rounding.
    let most = (began.elapsed().as_secs_f64() * 1000.0 / FIRST_DELAY).log2() + 3.0;
    ensure!(turns <= most, "{turns} turns where {most} fit");
    Ok(())
}

both_servers!(a_failing_key_backs_off_though_it_writes_what_it_watches);
async fn a_failing_key_backs_off_though_it_writes_what_it_watches(
    server: &TestServer,
) -> Result<()> {
    let proxy = server.proxy().await?;
    let obey = Obey::watching(server, proxy.kubeconfig()).await?;
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": "named", "namespace": obey.vms.namespace() },
        "data": { "attempt": "$attempt" },
    });
    let key = json!({ "version": "v1", "kind": "ConfigMap", "name": "absent" });
    // The ConfigMap with the VM's name wakes it, and the VM's turn writes that ConfigMap on every
    // attempt.
    let orders = json!({ "effects": [
        { "apply": object, "force": true, "createIfAbsent": true },
        { "merge": { "data": { "a": "b" } }, "key": key },
    ] });
    obey.case("named", "named", orders).await?;
    obey.until_turn("named", "the tenth attempt", |turn| turn["attempt"] == 9)
        .await?;
    let turns = obey.turns("named").len();
    ensure!(
        turns <= 12,
        "{turns} turns for ten attempts: its own writes woke it"
    );
    Ok(())
}

both_servers!(the_guest_decides_what_comes_next);
async fn the_guest_decides_what_comes_next(server: &TestServer) -> Result<()> {
    let obey = Obey::start(server, &server.kubeconfig()).await?;
    let complete = complete();
    obey.order(
        "retries",
        json!({ "effects": [complete], "next": { "retry": "not yet" } }),
    )
    .await?;
    obey.until_turn("retries", "the third", |turn| turn["attempt"] == 2)
        .await?;
    ensure!(
        obey.vms
            .get("retries")
            .await?
            .is_some_and(|vm| vm.complete()),
        "effects come before `retry`"
    );

    obey.order("requeues", json!({ "next": "requeue" })).await?;
    obey.order("returns", json!({ "next": { "requeue-after-ms": 10 } }))
        .await?;
    for name in ["requeues", "returns"] {
        let of = |line: &str| line.contains("TURN") && line.contains(name);
        obey.host.wait_for_lines(3, of).await?;
        ensure!(
            obey.turns(name).iter().all(|turn| turn["attempt"] == 0),
            "no failure: {:?}",
            obey.turns(name)
        );
    }

    obey.order("fails", json!({ "next": { "fail": "out of stock" } }))
        .await?;
    obey.host
        .wait_for_lines(1, |line| {
            line.contains("fails") && line.contains("out of stock")
        })
        .await?;
    obey.settle().await?;
    ensure!(obey.turns("fails").len() == 1, "{:?}", obey.turns("fails"));

    obey.order("asks", json!({ "effects": [{ "other": "teleport" }] }))
        .await?;
    obey.host
        .wait_for_lines(1, |line| line.contains("asks") && line.contains("teleport"))
        .await?;
    Ok(())
}
