//! The example `pod-counter`: counts the pods of all namespaces every ten seconds, looks up one pod
//! by name, and scales a Deployment through its scale subresource.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::example::{User, manifests, said, until_said};
use vmhost_tests::guests::EXAMPLE_POD_COUNTER;
use vmhost_tests::host::on;
use vmhost_tests::server::TestServer;

const DEPLOYMENT: &str = "examples/pod-counter/manifests/deployment.yaml";
const LIVE_READS: &str = "vmhost_live_reads_total";

fn pods(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods")
}

fn pod(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name },
        "spec": { "containers": [{ "name": "web", "image": "nginx:1.27" }] } })
}

both_servers!(it_counts_looks_and_scales, own);
async fn it_counts_looks_and_scales(server: &TestServer) -> Result<()> {
    let user = User::of(server).await?;
    let (one, two) = (
        server.namespace("pods").await?,
        server.namespace("pods").await?,
    );
    for (namespace, name) in [(&one, "a"), (&one, "b"), (&two, "a")] {
        user.create(&pods(namespace), &pod(name)).await?;
    }
    let mut deployment = manifests(DEPLOYMENT)?.pop().context("it holds an object")?;
    deployment["metadata"] = json!({ "name": "web" });
    let deployments = format!("/apis/apps/v1/namespaces/{one}/deployments");
    user.create(&deployments, &deployment).await?;
    let proxy = server.proxy().await?;
    let host = on(proxy.kubeconfig())?
        .plugin(EXAMPLE_POD_COUNTER)
        .args(["--log-format", "json"])
        .args(["--setting", &format!("pod-counter.pod={two}/a")])
        .args(["--setting", &format!("pod-counter.deployment={one}/web")])
        .args(["--setting", "pod-counter.replicas=3"])
        .ready()
        .await?;
    until_said(&host, "there are 3 pods in the cluster").await?;
    until_said(&host, &format!("pod {two}/a is Pending")).await?;
    until_said(&host, &format!("scaling {one}/web from 1 to 3")).await?;
    let web = format!("{deployments}/web");
    user.until(&web, "it is scaled", |web| web["spec"]["replicas"] == 3)
        .await?;
    let writes = proxy
        .requests_where(|request| request.method == "PATCH" && request.concerns("deployments"));
    ensure!(writes.len() == 1, "scaled once: {writes:?}");
    ensure!(
        writes[0].path.ends_with("/web/scale"),
        "not through the scale subresource: {writes:?}"
    );

    // The next tick sees the new pod; the next lookup finds the other pod gone, and a manual scale
    // is reverted.
    user.create(&pods(&two), &pod("b")).await?;
    user.delete(&format!("{}/a?gracePeriodSeconds=0", pods(&two)))
        .await?;
    user.create(&pods(&two), &pod("c")).await?;
    user.merge(&web, json!({ "spec": { "replicas": 1 } }))
        .await?;
    until_said(&host, "there are 4 pods in the cluster").await?;
    until_said(&host, &format!("pod {two}/a not found")).await?;
    user.until(&web, "it is scaled again", |web| {
        web["spec"]["replicas"] == 3
    })
    .await?;

    let metrics = host.metrics().await?;
    ensure!(
        metrics.sum(LIVE_READS, &[("kind", "Pod.v1")]) >= 2.0,
        "live reads are counted"
    );
    // Pods are watched without their specifications, and only by the counter.
    let lists = proxy.requests_where(|request| request.concerns("pods") && request.is_watch());
    ensure!(lists.len() == 1, "{lists:?}");
    Ok(())
}

both_servers!(without_settings_two_of_three_say_so_once_and_rest);
async fn without_settings_two_of_three_say_so_once_and_rest(server: &TestServer) -> Result<()> {
    let host = on(&server.kubeconfig())?
        .plugin(EXAMPLE_POD_COUNTER)
        .args(["--log-format", "json"])
        .ready()
        .await?;
    until_said(&host, "no pod to look at").await?;
    until_said(&host, "no Deployment to scale").await?;
    // At the second tick, a key that requested no other turn has had none.
    host.wait_for_lines(2, |line| line.contains("pods in the cluster"))
        .await?;
    let said = said(&host);
    for once in ["no pod to look at", "no Deployment to scale"] {
        let times = said.iter().filter(|line| line.starts_with(once)).count();
        ensure!(times == 1, "{once:?} is said {times} times: {said:?}");
    }
    Ok(())
}

both_servers!(a_setting_that_makes_no_sense_is_named);
async fn a_setting_that_makes_no_sense_is_named(server: &TestServer) -> Result<()> {
    let host = on(&server.kubeconfig())?
        .plugin(EXAMPLE_POD_COUNTER)
        .args(["--setting", "pod-counter.deployment=default/web"])
        .args(["--setting", "pod-counter.replicas=many"])
        .ready()
        .await?;
    host.wait_for_line("the setting pod-counter.replicas is not a number of pods: \"many\"")
        .await?;
    host.wait_for_line("pods in the cluster").await?;
    Ok(())
}
