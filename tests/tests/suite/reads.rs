//! Reads of a policy: from the shared cache by label, index, owner and namespace, page by page; and
//! past it, from the API server.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::guests::{self, PolicyFile};
use vmhost_tests::obey::{Obey, said};
use vmhost_tests::proxy::Request;
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::{PLURAL, Vms};

const VMS: (&str, &str) = ("cloud.waibizi.com", "VirtualMachine");

/// Lets the guest `watcher` query the cluster, without waiting for the answer. Returns the name of
/// the query.
async fn put(server: &TestServer, obey: &Obey, query: &Value) -> Result<String> {
    let name = format!("ask-{:08x}", fastrand::u32(..));
    let api: Api<ConfigMap> = Api::namespaced(server.client().await?, obey.vms.namespace());
    let object = serde_json::from_value(json!({
        "metadata": { "name": name, "labels": { "vmhost.test/read": "yes" } },
        "data": { "query": query.to_string() },
    }))?;
    api.create(&PostParams::default(), &object).await?;
    Ok(name)
}

/// Lets the guest `watcher` query the cluster, and returns the answer.
async fn ask(server: &TestServer, obey: &Obey, query: Value) -> Result<Value> {
    let name = put(server, obey, &query).await?;
    let of = |line: &str| said(line, "READ").filter(|read| read["name"] == name.as_str());
    let lines = obey
        .host
        .wait_for_lines(1, |line| of(line).is_some())
        .await
        .with_context(|| format!("asking {query}"))?;
    let read = lines.first().and_then(|line| of(line));
    Ok(read.context("there is one")?["answer"].clone())
}

fn list((group, kind): (&str, &str), more: Value) -> Value {
    let mut query = json!({ "group": group, "kind": kind });
    if let (Value::Object(query), Value::Object(more)) = (&mut query, more) {
        query.extend(more);
    }
    query
}

both_servers!(the_cache_answers_by_label_index_and_owner);
async fn the_cache_answers_by_label_index_and_owner(server: &TestServer) -> Result<()> {
    let obey = Obey::watching(server, &server.kubeconfig()).await?;
    for number in 0..7 {
        let image = if number < 3 { "debian" } else { "alpine" };
        let labels = json!({ "odd": (number % 2 == 1).to_string() });
        obey.vms
            .create_labelled(&format!("vm-{number}"), labels, json!({}), image)
            .await?;
    }
    let owner = obey.vms.get("vm-0").await?.context("it is there")?.uid;
    let reference = json!({ "apiVersion": "cloud.waibizi.com/v1", "kind": "VirtualMachine", "name": "vm-0", "uid": owner });
    obey.vms
        .merge(
            "vm-6",
            json!({ "metadata": { "ownerReferences": [reference] } }),
        )
        .await?;
    // The cache may lag behind this test's writes, so the test queries until it sees the last
    // write.
    let owned = vmhost_tests::wait::eventually("the cache shows the last write", async || {
        let owned = ask(server, &obey, list(VMS, json!({ "owner": owner }))).await?;
        Ok((owned["names"] == json!(["vm-6"])).then_some(owned))
    })
    .await?;
    ensure!(owned["pages"] == 1, "{owned}");
    for (query, names) in [
        (
            json!({ "index": ["image", "debian"] }),
            json!(["vm-0", "vm-1", "vm-2"]),
        ),
        (
            json!({ "index": ["image", "debian"], "labels": "odd=true" }),
            json!(["vm-1"]),
        ),
        (json!({ "index": ["image", "none"] }), json!([])),
        (json!({ "index": ["missing", ""] }), json!([])),
        (
            json!({ "labels": "odd in (true)" }),
            json!(["vm-1", "vm-3", "vm-5"]),
        ),
        (
            json!({ "namespace": obey.vms.namespace(), "labels": "odd!=true" }),
            json!(["vm-0", "vm-2", "vm-4", "vm-6"]),
        ),
    ] {
        let answer = ask(server, &obey, list(VMS, query.clone())).await?;
        ensure!(answer["names"] == names, "{query}: {answer}");
    }
    let paged = ask(server, &obey, list(VMS, json!({ "limit": 3 }))).await?;
    ensure!(
        paged["pages"] == 3 && paged["names"].as_array().map(Vec::len) == Some(7),
        "{paged}"
    );
    Ok(())
}

both_servers!(what_was_not_declared_is_not_answered);
async fn what_was_not_declared_is_not_answered(server: &TestServer) -> Result<()> {
    let obey = Obey::watching(server, &server.kubeconfig()).await?;
    for (query, error) in [
        (
            list(VMS, json!({ "index": ["size", "1"] })),
            "invalid: the description declares no index \"size\"",
        ),
        (list(VMS, json!({ "labels": "a in (" })), "invalid: "),
        (
            list(VMS, json!({ "index": ["image", "x"], "owner": "y" })),
            "invalid: a query can use an index or an owner",
        ),
        (
            list(("", "ConfigMap"), json!({ "owner": "y" })),
            "invalid: the primary kind is not indexed by owner",
        ),
        (list(("", "Pod"), json!({})), "not watched: Pod.v1"),
        (
            list(("", "ServiceAccount"), json!({})),
            "not watched: ServiceAccount.v1 (live reads only)",
        ),
        (
            list(VMS, json!({ "namespace": "elsewhere" })),
            "not watched: VirtualMachine.v1.cloud.waibizi.com in namespace elsewhere",
        ),
        (
            list(("", "Pod"), json!({ "live": true })),
            "not watched: Pod.v1",
        ),
        (
            list(VMS, json!({ "live": true, "namespace": "elsewhere" })),
            "not watched: VirtualMachine.v1.cloud.waibizi.com outside of the namespaces",
        ),
        (
            list(
                VMS,
                json!({ "live": true, "namespace": obey.vms.namespace(), "index": ["image", "x"] }),
            ),
            "invalid: list-live supports neither indexes nor owners",
        ),
    ] {
        let answer = ask(server, &obey, query.clone()).await?;
        let said = answer["error"].as_str().unwrap_or_default();
        ensure!(said.starts_with(error), "{query}: {answer}");
    }
    Ok(())
}

both_servers!(metadata_only_is_all_that_is_fetched);
async fn metadata_only_is_all_that_is_fetched(server: &TestServer) -> Result<()> {
    let proxy = server.proxy().await?;
    let obey = Obey::watching(server, proxy.kubeconfig()).await?;
    let secrets: Api<Secret> = Api::namespaced(server.client().await?, obey.vms.namespace());
    let secret = json!({ "metadata": { "name": "quiet" }, "stringData": { "password": "hidden" } });
    secrets
        .create(&PostParams::default(), &serde_json::from_value(secret)?)
        .await?;
    let found = vmhost_tests::wait::eventually("the cache shows the secret", async || {
        let answer = ask(server, &obey, list(("", "Secret"), json!({}))).await?;
        Ok((answer["names"] == json!(["quiet"])).then_some(answer["last"].clone()))
    })
    .await?;
    ensure!(
        found["kind"] == "Secret" && found["apiVersion"] == "v1",
        "{found}"
    );
    ensure!(found.get("data").is_none(), "{found}");
    Ok(())
}

both_servers!(live_reads_ask_the_api_server);
async fn live_reads_ask_the_api_server(server: &TestServer) -> Result<()> {
    let proxy = server.proxy().await?;
    let obey = Obey::watching(server, proxy.kubeconfig()).await?;
    let namespace = obey.vms.namespace().to_owned();
    let accounts: Api<ServiceAccount> = Api::namespaced(server.client().await?, &namespace);
    for name in ["a", "b", "c"] {
        let account = json!({ "metadata": { "name": name } });
        accounts
            .create(&PostParams::default(), &serde_json::from_value(account)?)
            .await?;
    }
    let of = ("", "ServiceAccount");
    let get = |name: &str| {
        list(
            of,
            json!({ "live": true, "namespace": namespace, "get": name }),
        )
    };
    let found = ask(server, &obey, get("a")).await?;
    ensure!(
        found["kind"] == "ServiceAccount" && found["metadata"]["name"] == "a",
        "{found}"
    );
    ensure!(found["metadata"].get("managedFields").is_none(), "{found}");
    accounts.delete("a", &DeleteParams::default()).await?;
    ensure!(
        ask(server, &obey, get("a")).await?.is_null(),
        "a live read is never old"
    );
    let all = list(
        of,
        json!({ "live": true, "namespace": namespace, "limit": 1 }),
    );
    let all = ask(server, &obey, all).await?;
    ensure!(
        all["names"] == json!(["b", "c"]) && all["pages"] == 2,
        "{all}"
    );
    let watches =
        proxy.requests_where(|request| request.concerns("serviceaccounts") && request.is_watch());
    ensure!(watches.is_empty(), "{watches:?}");
    let metrics = obey.host.metrics().await?;
    ensure!(metrics.sum("vmhost_live_reads_total", &[("verb", "get")]) == 2.0);
    ensure!(metrics.sum("vmhost_live_reads_total", &[("verb", "list")]) == 2.0);
    Ok(())
}

both_servers!(slow_live_reads_hold_up_no_other_plugin_and_no_other_group);
async fn slow_live_reads_hold_up_no_other_plugin_and_no_other_group(
    server: &TestServer,
) -> Result<()> {
    // More than the limit for all plugins together.
    const SLOW: usize = 40;
    let proxy = server.proxy().await?;
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new("watcher", &guests::read(guests::WATCHER)?)?;
    let other = PolicyFile::new("other", &guests::named(guests::WATCHER, "other")?)?;
    let host = vms
        .host(proxy.kubeconfig(), &policy)?
        .plugin(other.path())
        .args(["--log-format", "json", "--workers", "48"])
        .args(["--call-timeout", "10m"])
        .ready()
        .await?;
    let obey = Obey { vms, host, policy };
    let namespace = obey.vms.namespace().to_owned();
    let get = |of, plugin: &str, name: &str| {
        let more = json!({ "live": true, "namespace": namespace, "get": name, "plugin": plugin });
        list(of, more)
    };
    let accounts = ("", "ServiceAccount");
    let hold = proxy.hold(|request| request.path.ends_with("/serviceaccounts/slow"));
    let mut slow = Vec::new();
    for _ in 0..SLOW {
        slow.push(put(server, &obey, &get(accounts, "watcher", "slow")).await?);
    }
    let labels = [("kind", "ServiceAccount.v1")];
    obey.host
        .until_metric("vmhost_live_reads_total", &labels, SLOW as f64)
        .await?;
    hold.reached(4).await?;
    for (of, plugin) in [(accounts, "other"), (VMS, "watcher")] {
        let answer = ask(server, &obey, get(of, plugin, "quick")).await?;
        ensure!(answer.is_null(), "{answer}");
    }
    ensure!(hold.held() == 4, "{} at once", hold.held());
    hold.release();
    for name in slow {
        let of = |line: &str| said(line, "READ").is_some_and(|read| read["name"] == name.as_str());
        obey.host.wait_for_lines(1, of).await?;
    }
    Ok(())
}

both_servers!(all_who_watch_a_kind_share_one_watch);
async fn all_who_watch_a_kind_share_one_watch(server: &TestServer) -> Result<()> {
    let proxy = server.proxy().await?;
    let obey = Obey::watching(server, proxy.kubeconfig()).await?;
    obey.case("owner", "x", Value::Null).await?;
    obey.until_turns("x", 1).await?;
    // Five controllers watch all ConfigMaps; one watches those with a label, and one those with
    // another label. A watch may begin after the host is ready.
    let of_maps = |request: &Request| request.concerns("configmaps") && request.is_watch();
    proxy.wait_for(3, of_maps).await?;
    let watches = proxy.requests_where(of_maps);
    let mut selectors: Vec<&str> = watches
        .iter()
        .map(|request| request.param("labelSelector").unwrap_or_default())
        .collect();
    selectors.sort_unstable();
    ensure!(
        selectors == ["", "vmhost.test/guest", "vmhost.test/read"],
        "{selectors:?}"
    );
    let of_vms = |request: &Request| request.concerns(PLURAL) && request.is_watch();
    proxy.wait_for(14, of_vms).await?;
    let vms = proxy.requests_where(of_vms);
    ensure!(
        vms.len() == 14,
        "a watch for each of 13 cases, and one for all: {}",
        vms.len()
    );
    Ok(())
}
