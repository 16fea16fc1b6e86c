//! The example `cloud-vm`: one machine for each object, whatever is killed; and what a policy may
//! not reach, or see.

use anyhow::{Context, Result, ensure};
use serde_json::json;
use vmhost_tests::both_servers;
use vmhost_tests::cloud::Cloud;
use vmhost_tests::collector::{Collector, Span};
use vmhost_tests::example::{User, host};
use vmhost_tests::guests::EXAMPLE_CLOUD_VM;
use vmhost_tests::host::HostCommand;
use vmhost_tests::server::TestServer;
use vmhost_tests::wait::eventually;

const TOKEN: &str = "token-that-nobody-sees";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// How many objects there are, and how often the host is killed at a random point.
const MACHINES: usize = 10;
const KILLS: usize = 5;

/// A user with a namespace of their own, and a cloud.
struct Sample {
    user: User,
    namespace: String,
    cloud: Cloud,
}

impl Sample {
    async fn start(server: &TestServer) -> Result<Sample> {
        let user = User::of(server).await?;
        user.install_definitions_of("cloud-vm").await?;
        let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "cloud-vm" }, "stringData": { "token": TOKEN } });
        // The tests of this file share it.
        if let Err(error) = user.create(SECRETS, &secret).await {
            let there = user.get(&format!("{SECRETS}/cloud-vm")).await?;
            ensure!(there.is_some(), "{error}");
        }
        Ok(Sample {
            user,
            namespace: server.namespace("cloud").await?,
            cloud: Cloud::start(TOKEN).await?,
        })
    }

    fn path(&self, name: &str) -> String {
        let namespace = &self.namespace;
        format!("/apis/cloud.example.com/v1/namespaces/{namespace}/machines{name}")
    }

    async fn create(&self, name: &str) -> Result<()> {
        let machine = json!({ "apiVersion": "cloud.example.com/v1", "kind": "Machine", "metadata": { "name": name }, "spec": { "size": "small" } });
        self.user.create(&self.path(""), &machine).await.map(drop)
    }

    fn host(&self, server: &TestServer) -> Result<HostCommand> {
        let url = format!("cloud-vm.url={}", self.cloud.url());
        Ok(host(server)?
            .namespace(&self.namespace)
            .plugin(EXAMPLE_CLOUD_VM)
            .args(["--setting", &url]))
    }

    fn allowed(&self, server: &TestServer) -> Result<HostCommand> {
        Ok(self.host(server)?.args(["--allow-http", "127.0.0.1"]))
    }
}

both_servers!(one_machine_for_each_object_whatever_is_killed);
async fn one_machine_for_each_object_whatever_is_killed(server: &TestServer) -> Result<()> {
    let sample = Sample::start(server).await?;
    let Sample { user, cloud, .. } = &sample;
    let names: Vec<String> = (0..MACHINES)
        .map(|number| format!("/vm-{number}"))
        .collect();
    for name in &names {
        sample.create(name.trim_start_matches('/')).await?;
    }
    // The machine is made, and whoever asked for it dies before the answer.
    cloud.hold_next_post();
    let first = sample.allowed(server)?.ready().await?;
    eventually("an answer is kept back", async || {
        Ok((cloud.held() == 1).then_some(()))
    })
    .await?;
    first.kill9();
    for _ in 0..KILLS {
        let until = cloud.requests() + fastrand::u64(1..20);
        let host = sample.allowed(server)?.spawn()?;
        eventually("it has asked the cloud", async || {
            let is_over = cloud.requests() >= until || cloud.ready() == MACHINES;
            Ok(is_over.then_some(()))
        })
        .await?;
        host.kill9();
    }
    let last = sample.allowed(server)?.ready().await?;
    for name in &names {
        let path = sample.path(name);
        let is_complete = |machine: &serde_json::Value| machine["status"]["phase"] == "complete";
        let machine = user.until(&path, "complete", is_complete).await?;
        let address = machine["status"]["address"].as_str().unwrap_or_default();
        ensure!(address.starts_with("192.0.2."), "{machine}");
    }
    let made = cloud.made();
    ensure!(
        made.len() == MACHINES && made.values().all(|count| *count == 1),
        "not one machine for each object: {made:?}"
    );
    for name in &names {
        user.delete(&sample.path(name)).await?;
    }
    for name in &names {
        user.until_gone(&sample.path(name)).await?;
    }
    ensure!(cloud.left() == 0, "{} machines are left", cloud.left());
    ensure!(
        cloud.made() == made && cloud.wrong().is_empty(),
        "{:?}",
        cloud.wrong()
    );
    let told = serde_json::to_string(&last.turns().await?)?;
    for text in last.output().iter().chain([&told]) {
        ensure!(!text.contains(TOKEN), "the token is told: {text}");
    }
    ensure!(
        told.contains("/v1/machines") && !told.contains("owner="),
        "{told}"
    );
    Ok(())
}

both_servers!(a_service_is_told_the_trace);
async fn a_service_is_told_the_trace(server: &TestServer) -> Result<()> {
    let collector = Collector::start().await?;
    let sample = Sample::start(server).await?;
    sample.create("traced").await?;
    // By its name: the API server has the same address.
    let url = sample.cloud.url().replace("127.0.0.1", "localhost");
    let host = host(server)?
        .namespace(&sample.namespace)
        .plugin(EXAMPLE_CLOUD_VM)
        .args(["--setting", &format!("cloud-vm.url={url}")])
        .args(["--allow-http", "localhost"]);
    let _host = collector.watch(host).ready().await?;
    let is_made = |span: &Span| span.attribute("http.response.status_code") == "201";
    let spans = collector
        .until_trace("the cloud makes a machine", |spans| {
            spans.iter().any(is_made)
        })
        .await?;
    let made = spans.iter().find(|span| is_made(span));
    let made = made.context("the request is a span")?;
    let call = spans.iter().find(|span| span.name == "call");
    let call = call.context("the call is a span")?;
    let port = url.rsplit(':').next().unwrap_or_default();
    for (attribute, value) in [
        ("http.request.method", "POST"),
        ("server.address", "localhost"),
        ("server.port", port),
    ] {
        ensure!(made.attribute(attribute) == value, "{attribute}: {made:?}");
    }
    ensure!(
        made.name == "http" && made.kind == 3 && made.parent == call.id,
        "{spans:?}"
    );
    let told = sample.cloud.traces();
    let expected = format!("00-{}-{}-01", made.trace, made.id);
    ensure!(told.contains(&expected), "{expected}: {told:?}");
    let shown = format!("{:?}", collector.spans());
    ensure!(
        !shown.contains(TOKEN) && !shown.contains("/v1/machines"),
        "{shown}"
    );
    Ok(())
}

both_servers!(a_private_address_needs_the_operators_word);
async fn a_private_address_needs_the_operators_word(server: &TestServer) -> Result<()> {
    let sample = Sample::start(server).await?;
    sample.create("alone").await?;
    let refused = sample.host(server)?.ready().await?;
    let line = refused.wait_for_line("a loopback address").await?;
    ensure!(line.contains("--allow-http"), "{line}");
    let labels = [("plugin", "cloud-vm"), ("code", "denied")];
    refused
        .until_metric("vmhost_http_requests_total", &labels, 1.0)
        .await?;
    ensure!(sample.cloud.requests() == 0);
    refused.kill9();

    let elsewhere = sample.host(server)?.args(["--allow-http", "cloud.test"]);
    let elsewhere = elsewhere.ready().await?;
    elsewhere
        .wait_for_line("the operator does not allow")
        .await?;
    ensure!(sample.cloud.requests() == 0);
    elsewhere.kill9();

    let _allowed = sample.allowed(server)?.ready().await?;
    let is_complete = |machine: &serde_json::Value| machine["status"]["phase"] == "complete";
    let path = sample.path("/alone");
    sample.user.until(&path, "complete", is_complete).await?;
    // The namespace can be deleted only without the finalizer.
    sample.user.delete(&path).await?;
    sample.user.until_gone(&path).await
}
