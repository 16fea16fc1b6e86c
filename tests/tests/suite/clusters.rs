//! Several clusters: no cluster hurts another, kubeconfigs that come out of a cluster are not
//! trusted, and new credentials keep stores and watches.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use vmhost_tests::example::{User, manifests};
use vmhost_tests::fleet::{
    CLUSTERS, Pair, SOURCE, instance, instances, marked, text, until_marked, until_phase,
};
use vmhost_tests::guests::{self, EXAMPLE_FLEET, PolicyFile, Way};
use vmhost_tests::real::Options;
use vmhost_tests::server::{Target, TestServer, Unavailable};
use vmhost_tests::{both_servers, host, kubeconfig, net};

const KIND: &str = "vgpuinstances";

both_servers!(clusters_that_are_ill_hurt_no_other, own);
async fn clusters_that_are_ill_hurt_no_other(home: &TestServer) -> Result<()> {
    let pair = Pair::start(home).await?;
    let there = &pair.there;
    let far = pair.east.namespace("far").await?;
    // Takes connections, and says nothing.
    let silent = TcpListener::bind(net::loopback(0)).await?;
    let swallowing = kubeconfig::text(
        &format!("http://{}", silent.local_addr()?),
        None,
        "nobody",
        None,
    );
    let [closed] = net::free_ports()?;
    let unreachable = kubeconfig::text(&format!("http://127.0.0.1:{closed}"), None, "nobody", None);
    let mut rejected: Value = serde_yaml_ng::from_str(&text(&pair.east.kubeconfig())?)?;
    rejected["users"][0]["user"] = json!({ "token": "long-over" });
    pair.add_text("swallowing", &swallowing).await?;
    pair.add_text("unreachable", &unreachable).await?;
    pair.add_text("rejected", &rejected.to_string()).await?;
    pair.add_text("nonsense", "clusters: 1").await?;
    pair.add_text("empty", "").await?;
    pair.add("east", &pair.east.kubeconfig()).await?;
    let file = PolicyFile::new("fleet", &guests::read(EXAMPLE_FLEET)?)?;
    let host = pair.host(file.path())?.ready().await?;

    marked(there, &far, "one", "east").await?;
    for (name, phase, about) in [
        ("east", "up", ""),
        ("unreachable", "ill", "cannot reach"),
        ("rejected", "ill", "401"),
        ("nonsense", "refused", "not a kubeconfig"),
        ("empty", "refused", "spec.connection.kubeConfig"),
        ("swallowing", "ill", "did not answer"),
    ] {
        until_phase(&host, name, phase, about).await?;
    }
    let about = |reason: &str, name: &str| (reason.to_owned(), name.to_owned());
    for (reason, name) in [
        about("ClusterIll", "swallowing"),
        about("ClusterRefused", "nonsense"),
    ] {
        pair.user.until_event("default", &name, &reason).await?;
    }
    let metrics = host.metrics().await?;
    for (name, up) in [("east", 1.0), ("swallowing", 0.0), ("nonsense", 0.0)] {
        let labels = [("cluster", name)];
        ensure!(metrics.sum("vmhost_cluster_up", &labels) == up, "{name}");
    }
    let (code, body) = host.probe("/readyz").await?;
    ensure!(code == 200, "an ill cluster is no reason: {body}");

    // A swap does not wait for them.
    let other = guests::with_comment(&guests::read(EXAMPLE_FLEET)?, "other bytes");
    file.swap(&other, Way::Rename)?;
    host.wait_for_line("swapped fleet: generation 2").await?;
    marked(there, &far, "two", "east").await?;

    // What is mended works again.
    pair.change("unreachable", &pair.home.kubeconfig()).await?;
    until_phase(&host, "unreachable", "up", "").await?;
    let near = home.namespace("near").await?;
    marked(&pair.user, &near, "three", "unreachable").await?;

    // Nor does a shutdown.
    host.sigterm()?;
    let exit = host.wait_exit().await?;
    ensure!(exit.status.success(), "{exit:?}");
    Ok(())
}

both_servers!(fifty_clusters_at_once, own);
async fn fifty_clusters_at_once(home: &TestServer) -> Result<()> {
    let user = User::of(home).await?;
    user.install_definitions_of("fleet").await?;
    let mut members = Vec::new();
    for number in 0..50 {
        let server = TestServer::own(Target::Embedded, Options::default()).await?;
        let server = server.map_err(|Unavailable(reason)| anyhow::anyhow!(reason))?;
        let there = User::of(&server).await?;
        for definition in manifests("examples/fleet/manifests/vgpuinstance.yaml")? {
            there.install(&definition).await?;
        }
        let namespace = server.namespace("far").await?;
        there
            .create(&instances(&namespace), &instance("old"))
            .await?;
        let name = format!("member-{number:02}");
        let cluster = json!({
            "apiVersion": "openapi.example.com/v1",
            "kind": "Cluster",
            "metadata": { "name": name },
            "spec": { "connection": { "kubeConfig": text(&server.kubeconfig())? } },
        });
        user.create(CLUSTERS, &cluster).await?;
        members.push((name, server, there, namespace));
    }
    let host = host::on(&home.kubeconfig())?.plugin(EXAMPLE_FLEET);
    let host = host.args(["--clusters", SOURCE]).ready().await?;
    for (name, _, there, namespace) in &members {
        until_marked(there, namespace, "old", (name, 1)).await?;
        until_phase(&host, name, "up", "").await?;
    }
    let relists = host.state().await?;
    let relists = relists.stores.iter().map(|store| store.relists);
    ensure!(relists.sum::<u64>() == 0, "each store is listed once");
    // They go as they came.
    for (name, ..) in &members {
        user.delete(&format!("{CLUSTERS}/{name}")).await?;
    }
    let gone = host.until_state("all are gone", |state| state.clusters.is_empty());
    gone.await.map(drop)
}

both_servers!(a_member_that_stops_answering_holds_up_no_other, own);
async fn a_member_that_stops_answering_holds_up_no_other(home: &TestServer) -> Result<()> {
    let pair = Pair::start(home).await?;
    let (near, far) = (
        home.namespace("near").await?,
        pair.east.namespace("far").await?,
    );
    let proxy = pair.east.proxy().await?;
    pair.add("east", proxy.kubeconfig()).await?;
    pair.add("own", &home.kubeconfig()).await?;
    let host = pair.host(EXAMPLE_FLEET)?.ready().await?;
    marked(&pair.there, &far, "one", "east").await?;
    marked(&pair.user, &near, "one", "own").await?;

    // The same names in both, and in one of them no request is answered any more.
    let hold = proxy.hold(|_| true);
    for name in ["a", "b", "c", "d", "e"] {
        let object = instance(name);
        pair.there.create(&instances(&far), &object).await?;
        marked(&pair.user, &near, name, "own").await?;
    }
    until_phase(&host, "east", "ill", "did not answer").await?;
    drop(hold);
    for name in ["a", "b", "c", "d", "e"] {
        until_marked(&pair.there, &far, name, ("east", 1)).await?;
    }
    until_phase(&host, "east", "up", "").await?;
    Ok(())
}

both_servers!(new_credentials_keep_stores_and_watches, own);
async fn new_credentials_keep_stores_and_watches(home: &TestServer) -> Result<()> {
    let pair = Pair::start(home).await?;
    let far = pair.east.namespace("far").await?;
    let (one, other) = (pair.east.proxy().await?, pair.east.proxy().await?);
    pair.add("east", one.kubeconfig()).await?;
    let host = pair.host(EXAMPLE_FLEET)?.ready().await?;
    marked(&pair.there, &far, "one", "east").await?;

    // Another address of the same cluster: the watch goes on there.
    pair.change("east", other.kubeconfig()).await?;
    host.wait_for_line("cluster east: new credentials").await?;
    other
        .wait_for(1, |request| request.is_watch() && request.concerns(KIND))
        .await?;
    marked(&pair.there, &far, "two", "east").await?;
    let listed = other.requests_where(|request| request.is_list(KIND));
    ensure!(listed.is_empty(), "it was listed again: {listed:?}");
    let writes = other.requests_where(|request| request.writes(KIND));
    ensure!(writes.len() == 1, "it is written to there: {writes:?}");
    let state = host.state().await?;
    let mut stores = state.stores.iter();
    let store = stores
        .find(|store| store.cluster.as_deref() == Some("east"))
        .context("its store")?;
    ensure!(store.relists == 0, "{store:?}");

    // The same cluster under a second name is refused, until the first is gone.
    pair.add("twin", &pair.east.kubeconfig()).await?;
    until_phase(&host, "twin", "refused", "the same cluster as east").await?;
    pair.remove("east").await?;
    until_phase(&host, "twin", "up", "").await?;
    marked(&pair.there, &far, "three", "twin").await?;
    Ok(())
}

both_servers!(
    a_new_server_that_is_unreachable_stops_writes_to_the_old_one,
    own
);
async fn a_new_server_that_is_unreachable_stops_writes_to_the_old_one(
    home: &TestServer,
) -> Result<()> {
    let pair = Pair::start(home).await?;
    let far = pair.east.namespace("far").await?;
    let old = pair.east.proxy().await?;
    pair.add("east", old.kubeconfig()).await?;
    let host = pair.host(EXAMPLE_FLEET)?.ready().await?;
    marked(&pair.there, &far, "one", "east").await?;

    let [closed] = net::free_ports()?;
    let server = format!("http://127.0.0.1:{closed}");
    let unreachable = kubeconfig::text(&server, None, "nobody", None);
    let spec = json!({ "connection": { "kubeConfig": unreachable } });
    let cluster = format!("{CLUSTERS}/east");
    pair.user.merge(&cluster, json!({ "spec": spec })).await?;
    until_phase(&host, "east", "ill", "cannot reach").await?;
    // Its watch goes on there, and the turn writes nothing.
    let object = instance("two");
    pair.there.create(&instances(&far), &object).await?;
    host.wait_for_line("names another server").await?;
    let writes = old.requests_where(|request| request.writes(KIND));
    ensure!(writes.len() == 1, "it is still written to: {writes:?}");

    // The old one again.
    pair.change("east", old.kubeconfig()).await?;
    until_marked(&pair.there, &far, "two", ("east", 1)).await?;
    until_phase(&host, "east", "up", "").await?;
    Ok(())
}

both_servers!(a_hostile_kubeconfig_is_refused_by_its_fields, own);
async fn a_hostile_kubeconfig_is_refused_by_its_fields(home: &TestServer) -> Result<()> {
    let pair = Pair::start(home).await?;
    let trace = home.dir().join("it-ran");
    let mut good: Value = serde_yaml_ng::from_str(&text(&pair.east.kubeconfig())?)?;
    let exec = json!({
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "/bin/sh",
        "args": ["-c", format!("touch {}", trace.display())],
        "interactiveMode": "Never",
    });
    let cluster = good["clusters"][0]["cluster"].clone();
    let cases = [
        ("exec", "user", json!({ "exec": exec })),
        (
            "token-file",
            "user",
            json!({ "tokenFile": "/etc/hostname" }),
        ),
        (
            "proxy",
            "cluster",
            json!({ "server": cluster["server"], "proxy-url": "http://169.254.169.254" }),
        ),
        (
            "insecure",
            "cluster",
            json!({ "server": cluster["server"], "insecure-skip-tls-verify": true }),
        ),
    ];
    for (name, of, value) in &cases {
        let mut text = good.clone();
        text[format!("{of}s")][0][*of] = value.clone();
        pair.add_text(name, &text.to_string()).await?;
    }
    let host = pair
        .host(EXAMPLE_FLEET)?
        .args(["--clusters-allow", "insecure-skip-tls-verify"])
        .ready()
        .await?;
    for (name, field) in [
        ("exec", "exec"),
        ("token-file", "tokenFile"),
        ("proxy", "proxy-url"),
    ] {
        let flag = format!("--clusters-allow {field}");
        until_phase(&host, name, "refused", &flag).await?;
    }
    // The operator allows this one, and the server is asked with it.
    until_phase(&host, "insecure", "up", "").await?;
    ensure!(!trace.exists(), "the program of a kubeconfig ran");

    // No secret of a kubeconfig is in the log.
    let token = good["users"][0]["user"]["token"].take();
    if let Some(token) = token.as_str() {
        let told = host.output().iter().any(|line| line.contains(token));
        ensure!(!told, "the log tells a token");
    }
    Ok(())
}

both_servers!(turns_of_one_name_in_two_clusters_are_told_apart, own);
async fn turns_of_one_name_in_two_clusters_are_told_apart(home: &TestServer) -> Result<()> {
    let pair = Pair::start(home).await?;
    let name = format!("same-{:08x}", fastrand::u32(..));
    for user in [&pair.user, &pair.there] {
        let namespace =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        user.create("/api/v1/namespaces", &namespace).await?;
        user.until(
            &format!("/api/v1/namespaces/{name}/serviceaccounts"),
            "the namespace is there",
            |_| true,
        )
        .await?;
    }
    pair.add("east", &pair.east.kubeconfig()).await?;
    pair.add("own", &home.kubeconfig()).await?;
    // One instance serves calls of both clusters.
    let host = pair
        .host(EXAMPLE_FLEET)?
        .args(["--workers", "1"])
        .ready()
        .await?;
    // The host's own cluster is a member under one name only.
    let own = until_phase(&host, "own", "up", "").await?;
    let east = until_phase(&host, "east", "up", "").await?;
    ensure!(own.home && !east.home, "{own:?} {east:?}");
    pair.add("own-too", &home.kubeconfig()).await?;
    until_phase(&host, "own-too", "refused", "the same cluster as own").await?;
    for number in 0..10 {
        let object = format!("x{number}");
        pair.user
            .create(&instances(&name), &instance(&object))
            .await?;
        pair.there
            .create(&instances(&name), &instance(&object))
            .await?;
    }
    for number in 0..10 {
        let object = format!("x{number}");
        until_marked(&pair.user, &name, &object, ("own", 1)).await?;
        until_marked(&pair.there, &name, &object, ("east", 1)).await?;
    }
    let path = format!("/turns?key={name}%2Fx0");
    let (code, body) = net::get(host.admin_addr(), &path).await?;
    ensure!(code == 200, "{body}");
    let listed: Value = serde_json::from_str(&body)?;
    let turns = listed["turns"].as_array().context("turns")?;
    let labels: BTreeSet<&str> = turns
        .iter()
        .filter_map(|turn| turn["controller"].as_str())
        .collect();
    let expected = ["fleet/vgpuinstances@east", "fleet/vgpuinstances@own"];
    ensure!(labels == BTreeSet::from(expected), "{labels:?}");
    Ok(())
}
