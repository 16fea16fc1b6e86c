//! Measures webhooks: `cargo bench --profile dist -p vmhost-tests --bench webhooks`.
//!
//! First one host with the example `image-policy` beside a webhook of controller-runtime with the
//! same rule, in turn, on an embedded API server: reviews of Pods of 2 KiB go straight to their
//! addresses, 300 a second, with the same certificate. A review may take 10 ms (p99) and 200 us of
//! CPU, and 100 ms (p99) on a host whose other plugin spins on all cores.
//!
//! Then three hosts behind one address on each API server: 300 writes a second, each of which the
//! webhook must allow, while new versions go live every 2 s and one host after the other ends, by
//! SIGTERM and by SIGKILL, and while the certificate authority is rotated. No write may fail. The
//! API server, the hosts and this client share the machine.
//!
//! `VMHOST_BENCH_SECONDS` is how long each load lasts, but for the rotation's; default 60.

#![allow(clippy::print_stdout, reason = "a benchmark's result")]

use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use http::Method;
use kube::Client;
use serde_json::{Value, json};
use tempfile::TempDir;
use vmhost_tests::asker::Asker;
use vmhost_tests::authority::Authority;
use vmhost_tests::guests::{self, PolicyFile};
use vmhost_tests::host::{self, Host, HostCommand};
use vmhost_tests::image_policy::{self, FOREIGN, NAME, WEBHOOK};
use vmhost_tests::load::{Figures, Load};
use vmhost_tests::replicas::{End, Replicas};
use vmhost_tests::reviewer::Door;
use vmhost_tests::server::{Target, TestServer, Unavailable};
use vmhost_tests::vm::Vms;
use vmhost_tests::wait::eventually;
use vmhost_tests::webhook_cost::{Measured, RATE};
use vmhost_tests::webhook_peer::{self, Peer};
use vmhost_tests::{net, process, real, run};

/// How often the two webhooks take turns.
const ROUNDS: u32 = 3;
/// Pods that are written to.
const PODS: usize = 200;

const JSON: &str = "application/json";
const JSON_PATCH: &str = "application/json-patch+json";

/// What serves the same rule with the same certificate.
struct Stage {
    server: TestServer,
    policy: PolicyFile,
    /// With `tls.crt` and `tls.key`.
    certificates: TempDir,
    /// Signed the certificate. PEM.
    authority: String,
}

fn main() -> Result<()> {
    run::runtime()?.block_on(async {
        let time = seconds()?;
        let stage = Stage::new().await?;
        println!(
            "{:<44}{:>9}{:>9}{:>9}",
            "reviews of 2 KiB", "p50 ms", "p99 ms", "CPU us"
        );
        stage.side_by_side(time).await?;
        stage.beside_spinning_guests(time).await?;
        drop(stage);
        for target in [Target::Embedded, Target::Real] {
            match TestServer::own(target, real::Options::default()).await? {
                Ok(server) => disturbed(&server, time).await?,
                Err(Unavailable(reason)) => println!("{target:?} is skipped: {reason}"),
            }
        }
        Ok(())
    })
}

fn seconds() -> Result<Duration> {
    let name = "VMHOST_BENCH_SECONDS";
    let seconds = match std::env::var(name) {
        Ok(text) => text.parse().with_context(|| format!("{name}={text}"))?,
        Err(_) => 60,
    };
    ensure!(seconds > 0, "{name} must not be 0");
    Ok(Duration::from_secs(seconds))
}

impl Stage {
    async fn new() -> Result<Stage> {
        let server = TestServer::own(Target::Embedded, real::Options::default()).await?;
        let server = server.map_err(|Unavailable(reason)| anyhow!(reason))?;
        let component = guests::read(guests::EXAMPLE_IMAGE_POLICY)?;
        let certificates = tempfile::tempdir()?;
        let authority = Authority::new("webhooks of a benchmark")?;
        authority.write_loopback(certificates.path())?;
        Ok(Stage {
            server,
            policy: PolicyFile::new(NAME, &component)?,
            certificates,
            authority: authority.pem(),
        })
    }

    /// Returns a host that serves the webhook, with optimised code.
    async fn vmhost(&self, command: HostCommand) -> Result<(Host, Measured)> {
        let door = Door::new()?;
        let host = command
            .plugin(self.policy.path())
            .args(image_policy::flags(door.addr()))
            .arg("--webhook-cert-dir")
            .arg(self.certificates.path())
            .ready()
            .await?;
        host.until_state("its code is optimised", |state| {
            let mut plugins = state.plugins.iter();
            plugins.all(|plugin| plugin.code == "optimised")
        })
        .await?;
        let asker = Asker::new(door.addr(), image_policy::PATH, &self.authority)?;
        let webhook = Measured::new("vmhost", host.id(), asker);
        webhook.prepare().await?;
        Ok((host, webhook))
    }

    async fn controller_runtime(&self) -> Result<(Peer, Measured)> {
        let door = Door::new()?;
        let certificates = self.certificates.path();
        let peer = Peer::start(&self.server.kubeconfig(), door.addr(), certificates)?;
        let asker = Asker::new(door.addr(), webhook_peer::PATH, &self.authority)?;
        let webhook = Measured::new("controller-runtime", peer.id(), asker);
        webhook.prepare().await.with_context(|| peer.output())?;
        Ok((peer, webhook))
    }

    /// Measures vmhost and controller-runtime in turn, so that both have the same machine.
    async fn side_by_side(&self, time: Duration) -> Result<()> {
        // First, since the first build takes minutes.
        let peer = self.controller_runtime().await;
        let command = host::on(&self.server.kubeconfig())?;
        let (_host, vmhost) = self.vmhost(command).await?;
        let mut all = vec![vmhost];
        let _peer = match peer {
            Ok((peer, webhook)) => {
                all.push(webhook);
                Some(peer)
            }
            Err(error) => {
                println!("controller-runtime is skipped: {error:#}");
                None
            }
        };
        for _ in 0..ROUNDS {
            for webhook in &mut all {
                webhook.measure(time / ROUNDS).await?;
            }
        }
        for webhook in &all {
            row(webhook.name, webhook.figures(), Some(webhook.cpu()))?;
        }
        if let [vmhost, peer] = &all[..] {
            let within = |of_hundred| -> Result<f64> {
                let own = vmhost.figures().within(of_hundred)?;
                Ok(own.as_secs_f64() / peer.figures().within(of_hundred)?.as_secs_f64())
            };
            let (p50, p99, cpu) = (within(50)?, within(99)?, vmhost.cpu() / peer.cpu());
            let what = "vmhost / controller-runtime";
            println!("{what:<44}{p50:>9.2}{p99:>9.2}{cpu:>9.2}");
        }
        Ok(())
    }

    /// Measures vmhost while another of its plugins takes all cores.
    async fn beside_spinning_guests(&self, time: Duration) -> Result<()> {
        let vms = Vms::install(&self.server).await?;
        let cores = available_parallelism()?.get();
        let spin = PolicyFile::new("spin", &guests::spin_as("spin")?)?;
        let workers = (2 * cores).to_string();
        let command = host::on(&self.server.kubeconfig())?
            .namespace(vms.namespace())
            .plugin(spin.path())
            .args(["--workers", &workers])
            // Longer than the load: a call that is cut off would pause the plugin.
            .args(["--call-timeout", "1h"]);
        let (host, webhook) = self.vmhost(command).await?;
        vms.create(0..2 * cores, 0).await?;
        let id = host.id();
        eventually("a guest spins", async || {
            let spent = process::cpu(id)?;
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok((process::cpu(id)? - spent > 0.5).then_some(()))
        })
        .await?;
        let (before, start) = (process::cpu(id)?, Instant::now());
        let figures = webhook.load(time).await?;
        let taken = (process::cpu(id)? - before) / start.elapsed().as_secs_f64();
        let name = format!("vmhost, its guests on {taken:.1} of {cores} cores");
        row(&name, &figures, None)
    }
}

/// Prints what a webhook's reviews cost, and why some failed.
fn row(name: &str, figures: &Figures, cpu: Option<f64>) -> Result<()> {
    let within = |of_hundred| figures.within(of_hundred);
    let [p50, p99] = [within(50)?, within(99)?].map(|time| time.as_secs_f64() * 1e3);
    let cpu = cpu.map(|cpu| format!("{cpu:.0}")).unwrap_or_default();
    println!("{name:<44}{p50:>9.2}{p99:>9.2}{cpu:>9}");
    failures(figures);
    Ok(())
}

fn failures(figures: &Figures) {
    for reason in figures.reasons() {
        println!("    failed {reason}");
    }
}

/// Writes to a server while the hosts that review each write are swapped and ended, and while their
/// certificate authority is replaced.
async fn disturbed(server: &TestServer, time: Duration) -> Result<()> {
    let target = server.target();
    let client = server.client().await?;
    let namespace = server.namespace("bench").await?;
    let pods = format!("/api/v1/namespaces/{namespace}/pods");
    for number in 0..PODS {
        let pod = image_policy::pod(&format!("bench-{number}"), "docker.io/app:v1");
        done(net::send(&client, Method::POST, &pods, JSON, &pod).await?)?;
    }
    let mut replicas = Replicas::start(server).await?;
    until_asked(&client, &pods).await?;
    let writing = || {
        let (client, pods) = (client.clone(), pods.clone());
        Load::start(RATE, move |number| {
            write(client.clone(), pods.clone(), number)
        })
    };
    for end in [End::Sigterm, End::Sigkill] {
        let load = writing();
        let ended = replicas.disturb(time, end).await?;
        let signal = format!("{end:?}").to_uppercase();
        let what = format!("a version every 2 s, {ended} hosts ended by {signal}");
        written(target, &load.stop().await?, &what)?;
    }
    let load = writing();
    replicas.rotate(server).await?;
    written(target, &load.stop().await?, "another certificate authority")?;
    // It was asked up to now.
    until_asked(&client, &pods).await?;
    let counts = replicas.counts().await?;
    println!(
        "{target:?}: {} versions; hosts: {:.0} swaps, {:.0} failed; {:.0} reviews answered, {:.0} not",
        replicas.versions(),
        counts.swapped,
        counts.refused,
        counts.answered,
        counts.unanswered
    );
    Ok(())
}

fn written(target: Target, figures: &Figures, what: &str) -> Result<()> {
    println!(
        "{target:?}: {} writes, {:.0} a second, p50 {:.1?}, p99 {:.1?}, {} failed: {what}",
        figures.sent(),
        figures.rate(),
        figures.within(50)?,
        figures.within(99)?,
        figures.failed()
    );
    failures(figures);
    Ok(())
}

/// Waits until the webhook refuses a Pod with an image that is not allowed.
async fn until_asked(client: &Client, pods: &str) -> Result<()> {
    let foreign = image_policy::pod("foreign", FOREIGN);
    let path = format!("{pods}?dryRun=All");
    eventually("the API server asks the webhook", async || {
        let (code, answer) = net::send(client, Method::POST, &path, JSON, &foreign).await?;
        let message = answer["message"].as_str().unwrap_or_default();
        let denied = message.contains(WEBHOOK) && message.contains("denied the request");
        ensure!(denied || code < 300, "{code}: {answer}");
        Ok(denied.then_some(()))
    })
    .await
}

/// Gives a Pod another image, which the webhook must allow.
async fn write(client: Client, pods: String, number: usize) -> Result<()> {
    let path = format!("{pods}/bench-{}", number % PODS);
    let image = image_policy::image(number);
    let patch = json!([{ "op": "replace", "path": "/spec/containers/0/image", "value": image }]);
    done(net::send(&client, Method::PATCH, &path, JSON_PATCH, &patch).await?)
}

fn done((code, answer): (u16, Value)) -> Result<()> {
    let message = answer["message"].as_str().unwrap_or_default();
    ensure!(code < 300, "{code}: {message}");
    Ok(())
}
