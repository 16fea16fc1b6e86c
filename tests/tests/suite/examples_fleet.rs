//! The example `fleet`: VGPUInstances of all clusters that `Cluster` objects lead to are marked
//! once for each change; clusters come, change and go while the host runs.

use anyhow::{Result, ensure};
use serde_json::json;
use vmhost_tests::both_servers;
use vmhost_tests::fleet::{CLUSTERS, Pair, instance, instances, marked, until_marked, until_phase};
use vmhost_tests::guests::EXAMPLE_FLEET;
use vmhost_tests::proxy::Proxy;
use vmhost_tests::server::TestServer;

const KIND: &str = "vgpuinstances";

/// How often the proxy was asked for all VGPUInstances.
fn lists(proxy: &Proxy) -> usize {
    let lists = proxy.requests_where(|request| {
        // Without a limit of one: that asks for the newest version only.
        request.is_list(KIND) && request.param("limit") != Some("1")
    });
    lists.len()
}

both_servers!(clusters_come_change_and_go, own);
async fn clusters_come_change_and_go(home: &TestServer) -> Result<()> {
    let pair = Pair::start(home).await?;
    let Pair {
        user, east, there, ..
    } = &pair;
    let (near, far) = (home.namespace("near").await?, east.namespace("far").await?);
    let proxy = east.proxy().await?;
    there.create(&instances(&far), &instance("before")).await?;
    let host = pair.host(EXAMPLE_FLEET)?.ready().await?;

    // Added: what is there already, and what comes.
    pair.add("east", proxy.kubeconfig()).await?;
    until_marked(there, &far, "before", ("east", 1)).await?;
    marked(there, &far, "after", "east").await?;
    let writes = || proxy.requests_where(|request| request.writes(KIND)).len();
    ensure!(writes() == 2, "each is marked once: {}", writes());

    // Each change is marked once.
    let path = format!("{}/before", instances(&far));
    there
        .merge(&path, json!({ "spec": { "cards": 2 } }))
        .await?;
    until_marked(there, &far, "before", ("east", 2)).await?;
    until_phase(&host, "east", "up", "").await?;
    host.until_metric("vmhost_cluster_up", &[("cluster", "east")], 1.0)
        .await?;

    // Another change of the Cluster does nothing.
    let cluster = format!("{CLUSTERS}/east");
    let annotated = json!({ "metadata": { "annotations": { "example.com/note": "x" } } });
    user.merge(&cluster, annotated).await?;
    user.merge(&cluster, json!({ "spec": { "zone": "b" } }))
        .await?;
    marked(there, &far, "same", "east").await?;
    ensure!(lists(&proxy) == 1, "it was listed {} times", lists(&proxy));

    // Other labels: rebuilt.
    let labelled = json!({ "metadata": { "labels": { "env": "prod" } } });
    user.merge(&cluster, labelled).await?;
    proxy
        .wait_for(2, |request| {
            request.is_list(KIND) && request.param("limit") != Some("1")
        })
        .await?;
    marked(there, &far, "labelled", "east").await?;

    // Another cluster under the same name: rebuilt there. Here it is the host's own.
    user.create(&instances(&near), &instance("here")).await?;
    pair.change("east", &home.kubeconfig()).await?;
    until_marked(user, &near, "here", ("east", 1)).await?;
    proxy.forget_requests();
    there.create(&instances(&far), &instance("left")).await?;
    marked(user, &near, "here-too", "east").await?;
    let left = there.get(&format!("{}/left", instances(&far))).await?;
    ensure!(
        left.is_some_and(|left| left["status"].is_null()),
        "the cluster that was left is still worked in"
    );
    ensure!(
        proxy
            .requests_where(|request| request.is_write())
            .is_empty(),
        "it is still written to"
    );

    // Gone.
    pair.remove("east").await?;
    host.wait_for_line("cluster east: removed").await?;
    host.until_state("nothing of it is left", |state| {
        let is_home = state.stores.iter().all(|store| store.cluster.is_none());
        state.clusters.is_empty() && is_home
    })
    .await?;
    user.create(&instances(&near), &instance("nobodys")).await?;

    // And back: what nobody has looked at meanwhile is marked.
    pair.add("west", &home.kubeconfig()).await?;
    until_marked(user, &near, "nobodys", ("west", 1)).await?;
    Ok(())
}

both_servers!(without_clusters_it_has_nothing_to_do_and_says_so, own);
async fn without_clusters_it_has_nothing_to_do_and_says_so(home: &TestServer) -> Result<()> {
    let host = vmhost_tests::host::on(&home.kubeconfig())?
        .plugin(EXAMPLE_FLEET)
        .ready()
        .await?;
    host.wait_for_line("there are none without --clusters")
        .await?;
    let state = host.state().await?;
    ensure!(state.plugins[0].controllers.is_empty(), "{state:?}");
    ensure!(state.stores.is_empty(), "{state:?}");
    Ok(())
}
