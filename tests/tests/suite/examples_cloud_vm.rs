//! The example `cloud-vm`: one machine for each object, whatever is killed; and what a policy may
//! not reach, or see.
//!
//! `VMHOST_KILLS=200` kills that many hosts in place of [`KILLS`]. A failure names the seed of its
//! random points: `VMHOST_SEED=7` repeats them.

use std::num::ParseIntError;
use std::str::FromStr;

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use serde_json::{Value, json};
use tempfile::TempDir;
use vmhost_tests::both_servers;
use vmhost_tests::cloud::{Cloud, Point};
use vmhost_tests::collector::{Collector, Span};
use vmhost_tests::example::{User, host, passes_its_cases};
use vmhost_tests::guests::EXAMPLE_CLOUD_VM;
use vmhost_tests::host::HostCommand;
use vmhost_tests::server::TestServer;

const TOKEN: &str = "token-that-nobody-sees";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// How many machines the cloud has still to make whenever a host is killed. A host that starts
/// asks for each of them at once.
const OPEN: usize = 8;

/// How many hosts are killed at random points while machines are made. A fifth as many are killed
/// while machines are deleted.
const KILLS: usize = 30;

#[tokio::test]
async fn a_cloud_that_is_a_file_answers_its_cases() -> Result<()> {
    passes_its_cases(EXAMPLE_CLOUD_VM.as_ref(), "cloud-vm").await
}

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

/// A sample whose hosts are killed.
struct Killing<'s> {
    server: &'s TestServer,
    sample: Sample,
    /// The names of all objects.
    names: Vec<String>,
    rng: Rng,
    /// Of all hosts, so that only the first one compiles.
    cache: TempDir,
}

impl Killing<'_> {
    fn host(&self) -> Result<HostCommand> {
        let host = self.sample.allowed(self.server)?;
        Ok(host.env("VMHOST_CACHE", self.cache.path()))
    }

    /// Creates objects until the cloud has [`OPEN`] machines to make.
    async fn fill(&mut self) -> Result<()> {
        while self.names.len() < self.sample.cloud.ready() + OPEN {
            let name = format!("vm-{}", self.names.len());
            self.sample.create(&name).await?;
            self.names.push(name);
        }
        Ok(())
    }

    /// Kills a host at a random point of one of its first requests. It sends at least `most`.
    async fn kill(&mut self, most: usize) -> Result<()> {
        let points = [Point::Arrived, Point::CarriedOut, Point::Answered];
        let point = self.rng.choice(points).context("there are points")?;
        let number = self.rng.usize(1..=most);
        self.sample.cloud.stop(number, point);
        self.kill_when_stopped()
            .await
            .with_context(|| format!("request {number}, {point:?}"))
    }

    async fn kill_when_stopped(&self) -> Result<()> {
        let host = self.host()?.spawn()?;
        self.sample.cloud.until_stopped().await?;
        host.kill9();
        Ok(())
    }

    /// Checks that each object has the one machine that was ever made for it.
    async fn until_made(&self) -> Result<()> {
        let user = &self.sample.user;
        for name in &self.names {
            let path = self.sample.path(&format!("/{name}"));
            let is_complete = |machine: &Value| machine["status"]["phase"] == "complete";
            let machine = user.until(&path, "complete", is_complete).await?;
            let address = machine["status"]["address"].as_str().unwrap_or_default();
            ensure!(address.starts_with("192.0.2."), "{machine}");
        }
        self.check_made()
    }

    fn check_made(&self) -> Result<()> {
        let (made, wrong) = (self.sample.cloud.made(), self.sample.cloud.wrong());
        ensure!(
            made.len() == self.names.len() && made.values().all(|count| *count == 1),
            "not one machine for each of {} objects: {made:?}",
            self.names.len()
        );
        ensure!(wrong.is_empty(), "{wrong:?}");
        Ok(())
    }

    /// Deletes all objects, and kills up to so many hosts meanwhile.
    async fn delete(&mut self, kills: usize) -> Result<()> {
        let Sample { user, .. } = &self.sample;
        for name in &self.names {
            user.delete(&self.sample.path(&format!("/{name}"))).await?;
        }
        for _ in 0..kills {
            let left = self.sample.cloud.left();
            if left == 0 {
                break;
            }
            self.kill(left.min(OPEN)).await?;
        }
        let _last = self.host()?.ready().await?;
        for name in &self.names {
            let path = self.sample.path(&format!("/{name}"));
            self.sample.user.until_gone(&path).await?;
        }
        let left = self.sample.cloud.left();
        ensure!(left == 0, "{left} machines are left");
        self.check_made()
    }
}

/// Returns a number from the environment.
fn given<N>(name: &str) -> Result<Option<N>>
where
    N: FromStr<Err = ParseIntError>,
{
    let text = std::env::var(name).ok();
    text.map(|text| {
        text.parse::<N>()
            .with_context(|| format!("${name}: {text:?}"))
    })
    .transpose()
}

both_servers!(one_machine_for_each_object_whatever_is_killed);
async fn one_machine_for_each_object_whatever_is_killed(server: &TestServer) -> Result<()> {
    let seed = given("VMHOST_SEED")?.unwrap_or_else(|| fastrand::u64(..));
    let kills = given("VMHOST_KILLS")?.unwrap_or(KILLS);
    let killed = kill_at_random_points(server, seed, kills).await;
    killed.with_context(|| format!("VMHOST_SEED={seed} VMHOST_KILLS={kills}"))
}

async fn kill_at_random_points(server: &TestServer, seed: u64, kills: usize) -> Result<()> {
    let mut killing = Killing {
        server,
        sample: Sample::start(server).await?,
        names: Vec::new(),
        rng: Rng::with_seed(seed),
        cache: tempfile::tempdir().context("making a folder")?,
    };
    killing.fill().await?;
    // The machine is made, and the host that asked for it dies before the answer.
    killing.sample.cloud.stop_at_post();
    killing.kill_when_stopped().await?;
    for _ in 0..kills {
        killing.fill().await?;
        killing.kill(OPEN).await?;
    }
    killing.fill().await?;
    let last = killing.host()?.ready().await?;
    killing.until_made().await?;
    let told = serde_json::to_string(&last.turns().await?)?;
    for text in last.output().iter().chain([&told]) {
        ensure!(!text.contains(TOKEN), "the token is told: {text}");
    }
    ensure!(
        told.contains("/v1/machines") && !told.contains("owner="),
        "{told}"
    );
    last.kill9();
    killing.delete(kills.div_ceil(5)).await
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
