//! Dynamic watches: a swap starts new watches and stops unused ones; a kind may disappear and
//! return; incompatible plugins are refused with a reason.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use vmhost_tests::guests::{self, PolicyFile, Way};
use vmhost_tests::host::Host;
use vmhost_tests::obey::Obey;
use vmhost_tests::proxy::{Proxy, Request};
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::{self, PLURAL, Vms};
use vmhost_tests::wait::eventually;
use vmhost_tests::{both_servers, host, net};

fn describing(name: &str, controller: Value) -> Result<Vec<u8>> {
    let mut all = json!({ "name": "c", "primary": { "group": "cloud.waibizi.com", "version": "v1", "kind": "VirtualMachine" } });
    if let (Value::Object(all), Value::Object(more)) = (&mut all, controller) {
        all.extend(more);
    }
    let description = json!({ "apiVersion": "vmhost/v1", "name": name, "controllers": [all] });
    guests::describing(&description.to_string())
}

/// Returns the opened watches of a kind.
fn opened(proxy: &Proxy, plural: &str) -> usize {
    let of = |request: &Request| request.is_watch() && request.concerns(plural);
    proxy.requests_where(of).len()
}

/// Returns the stores of the host from `/debug/state`: the kind, and how many subscribers share it.
async fn stores(host: &Host) -> Result<Vec<(String, u64)>> {
    let (_, text) = net::get(host.admin_addr(), "/debug/state").await?;
    let state: Value = serde_json::from_str(&text)?;
    let stores = state["stores"].as_array().into_iter().flatten();
    let one = |store: &Value| {
        let kind = store["kind"].as_str().unwrap_or_default().to_owned();
        (kind, store["subscribers"].as_u64().unwrap_or_default())
    };
    let mut all: Vec<_> = stores.map(one).collect();
    all.sort();
    Ok(all)
}

async fn until_stores(host: &Host, wanted: &[(&str, u64)]) -> Result<()> {
    let wanted: Vec<(String, u64)> = wanted
        .iter()
        .map(|(kind, subscribers)| ((*kind).to_owned(), *subscribers))
        .collect();
    eventually(&format!("the stores are {wanted:?}"), async || {
        let stores = stores(host).await?;
        anyhow::ensure!(stores == wanted, "they are {stores:?}");
        Ok(Some(()))
    })
    .await
}

both_servers!(a_swap_adds_and_drops_watches);
async fn a_swap_adds_and_drops_watches(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let reads = |kinds: &[&str]| {
        let kinds: Vec<Value> = kinds
            .iter()
            .map(|kind| json!({ "version": "v1", "kind": kind }))
            .collect();
        describing("p", json!({ "reads": kinds }))
    };
    let policy = PolicyFile::new("p", &reads(&["ConfigMap"])?)?;
    let proxy = server.proxy().await?;
    let host = vms
        .host(proxy.kubeconfig(), &policy)?
        .arg("--allow-wider")
        .ready()
        .await?;
    let vm = "VirtualMachine.v1.cloud.waibizi.com";
    until_stores(&host, &[("ConfigMap.v1", 1), (vm, 1)]).await?;
    policy.swap(&reads(&["ConfigMap", "Secret"])?, Way::Rename)?;
    host.wait_for_line("swapped p: generation 2").await?;
    until_stores(&host, &[("ConfigMap.v1", 1), ("Secret.v1", 1), (vm, 1)]).await?;
    policy.swap(&reads(&["Secret"])?, Way::Rename)?;
    host.wait_for_line("swapped p: generation 3").await?;
    until_stores(&host, &[("Secret.v1", 1), (vm, 1)]).await?;
    for plural in ["configmaps", "secrets", PLURAL] {
        // A watch may begin after its store is filled.
        proxy
            .wait_for(1, |request| request.is_watch() && request.concerns(plural))
            .await?;
        let opened = opened(&proxy, plural);
        ensure!(
            opened == 1,
            "{plural}: what goes on is not watched anew: {opened}"
        );
    }
    Ok(())
}

both_servers!(plugins_share_a_watch_whatever_fields_they_want);
async fn plugins_share_a_watch_whatever_fields_they_want(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let wanting = |name: &str, fields: &[&str]| {
        let primary = json!({ "group": "cloud.waibizi.com", "version": "v1", "kind": "VirtualMachine", "wantedFields": fields });
        PolicyFile::new(name, &describing(name, json!({ "primary": primary }))?)
    };
    let one = wanting("one", &["spec.status"])?;
    let two = wanting("two", &["spec.image"])?;
    let proxy = server.proxy().await?;
    let host = host::on(proxy.kubeconfig())?
        .namespace(vms.namespace())
        .plugin(one.path())
        .plugin(two.path())
        .ready()
        .await?;
    until_stores(&host, &[("VirtualMachine.v1.cloud.waibizi.com", 2)]).await?;
    let store_bytes = async || -> Result<f64> {
        let metrics = host.metrics().await?;
        Ok(metrics.sum("vmhost_store_bytes", &[]))
    };
    // The memory of a field that only one of them wanted is freed when it no longer wants the
    // field.
    vms.create_labelled("large", json!({}), json!({}), &"x".repeat(100_000))
        .await?;
    eventually("the image is kept", async || {
        Ok((store_bytes().await? > 100_000.0).then_some(()))
    })
    .await?;
    let wants = json!({ "group": "cloud.waibizi.com", "version": "v1", "kind": "VirtualMachine", "wantedFields": [] });
    two.swap(
        &describing("two", json!({ "primary": wants }))?,
        Way::Rename,
    )?;
    eventually("the image is kept no more", async || {
        Ok((store_bytes().await? < 50_000.0).then_some(()))
    })
    .await?;
    until_stores(&host, &[("VirtualMachine.v1.cloud.waibizi.com", 2)]).await
}

both_servers!(gauges_of_stores_are_sums_and_go_with_what_they_show);
async fn gauges_of_stores_are_sums_and_go_with_what_they_show(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let other = server.namespace("other").await?;
    for (namespace, count) in [(vms.namespace(), 2), (&*other, 3)] {
        let maps: Api<ConfigMap> = Api::namespaced(server.client().await?, namespace);
        for number in 0..count {
            let chosen = if number == 0 { "yes" } else { "no" };
            let map = serde_json::from_value(json!({
                "metadata": { "name": format!("map-{number}"), "labels": { "chosen": chosen } },
                "data": { "a": "b" },
            }))?;
            maps.create(&PostParams::default(), &map).await?;
        }
    }
    let reads = json!({ "name": "reader", "reads": [{ "version": "v1", "kind": "ConfigMap" }] });
    let policy = PolicyFile::new("p", &describing("p", reads)?)?;
    let chosen = json!({ "version": "v1", "kind": "ConfigMap", "labelSelector": "chosen=yes" });
    let of_chosen = describing("q", json!({ "name": "chosen", "primary": chosen }))?;
    let of_chosen = PolicyFile::new("q", &of_chosen)?;
    let host = host::on(&server.kubeconfig())?
        .namespace(vms.namespace())
        .namespace(&other)
        .plugin(policy.path())
        .plugin(of_chosen.path())
        .arg("--allow-wider")
        .ready()
        .await?;
    let metrics = host.metrics().await?;
    let config_maps = [("kind", "ConfigMap.v1")];
    let objects = metrics.sum("vmhost_store_objects", &config_maps);
    ensure!(
        objects == 7.0,
        "two and three of all, and one of each by label: {objects}"
    );
    let bytes = metrics.sum("vmhost_store_bytes", &config_maps);
    ensure!(bytes > 7.0 * 200.0, "all of these: {bytes}");
    let reader = [("controller", "p/reader")];
    ensure!(metrics.has("workqueue_depth", &reader));
    policy.swap(&describing("p", json!({ "name": "other" }))?, Way::Rename)?;
    host.wait_for_line("swapped p: generation 2").await?;
    eventually("those of a selector are still shown", async || {
        let metrics = host.metrics().await?;
        let objects = metrics.sum("vmhost_store_objects", &config_maps);
        Ok((objects == 2.0).then_some(()))
    })
    .await?;
    of_chosen.swap(&describing("q", json!({ "name": "other" }))?, Way::Rename)?;
    host.wait_for_line("swapped q: generation 2").await?;
    eventually("nothing is shown of what is gone", async || {
        let metrics = host.metrics().await?;
        for name in ["vmhost_store_objects", "vmhost_store_bytes"] {
            ensure!(!metrics.has(name, &config_maps), "{name}");
        }
        for name in [
            "workqueue_depth",
            "workqueue_unfinished_work_seconds",
            "workqueue_longest_running_processor_seconds",
            "controller_runtime_active_workers",
            "controller_runtime_max_concurrent_reconciles",
        ] {
            ensure!(!metrics.has(name, &reader), "{name}");
            ensure!(metrics.has(name, &[("controller", "p/other")]), "{name}");
        }
        Ok(Some(()))
    })
    .await
}

both_servers!(a_kind_that_vanishes_and_comes_back, own);
async fn a_kind_that_vanishes_and_comes_back(server: &TestServer) -> Result<()> {
    let proxy = server.proxy().await?;
    let obey = Obey::start(server, proxy.kubeconfig()).await?;
    obey.vms.create_one("first", 0).await?;
    obey.until_turn("first", "it is there", |_| true).await?;
    let crds: Api<CustomResourceDefinition> = Api::all(server.client().await?);
    let name = format!("{PLURAL}.cloud.waibizi.com");
    crds.delete(&name, &DeleteParams::default()).await?;
    obey.until_turn("first", "it went with its kind", |turn| {
        turn["gone"] == true
    })
    .await?;
    obey.host
        .wait_for_line("is not served by the cluster yet")
        .await?;
    eventually("the definition is gone", async || {
        Ok(crds.get_opt(&name).await?.is_none().then_some(()))
    })
    .await?;
    let opened = opened(&proxy, PLURAL);
    ensure!(opened < 10, "a hot loop: {opened} watches");
    vm::install(&server.client().await?).await?;
    obey.vms.create_one("second", 0).await?;
    obey.until_turn("second", "watched again", |_| true).await?;
    Ok(())
}

both_servers!(plugins_that_cannot_live_together);
async fn plugins_that_cannot_live_together(server: &TestServer) -> Result<()> {
    vm::install(&server.client().await?).await?;
    let finalizer = json!({ "finalizer": "example.com/tidy" });
    let policy =
        |file: &str, name: &str| PolicyFile::new(file, &describing(name, finalizer.clone())?);
    for (one, two, words) in [
        (
            "same",
            "same",
            &["a.wasm", "b.wasm", "both named \"same\""][..],
        ),
        ("one", "two", &["example.com/tidy", "plugins", "one", "two"]),
    ] {
        let (a, b) = (policy("a", one)?, policy("b", two)?);
        let exit = host::on(&server.kubeconfig())?
            .plugin(a.path())
            .plugin(b.path())
            .run()
            .await?;
        exit.expect_error(words).context(two)?;
    }
    Ok(())
}

both_servers!(a_description_that_contradicts_itself);
async fn a_description_that_contradicts_itself(server: &TestServer) -> Result<()> {
    let vm = json!({ "group": "cloud.waibizi.com", "version": "v1", "kind": "VirtualMachine" });
    for (controller, words) in [
        (
            json!({ "owns": [vm] }),
            &["controllers[0].owns[0]", "this is the primary kind"][..],
        ),
        (
            json!({ "finalizer": "cleanup" }),
            &["controllers[0].finalizer", "domain/name"],
        ),
        (
            json!({ "watches": [{ "version": "v1", "kind": "Secret", "map": { "index": "i" } }] }),
            &["controllers[0].watches[0].map.index", "no index \"i\""],
        ),
        (
            json!({ "watches": [{ "version": "v1", "kind": "Secret", "map": "name", "predicates": { "cel": "object.x ==" } }] }),
            &["controllers[0].watches[0].predicates.cel"],
        ),
    ] {
        let policy = PolicyFile::new("p", &describing("p", controller)?)?;
        let exit = host::on(&server.kubeconfig())?
            .plugin(policy.path())
            .run()
            .await?;
        exit.expect_error(words)?;
    }
    Ok(())
}
