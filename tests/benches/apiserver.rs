//! Measures the embedded API server beside kube-apiserver with etcd:
//! `cargo bench --profile dist -p vmhost-tests --bench apiserver`.
//!
//! Both servers do the same work in turn, on all cores, which the clients of this process share.
//! The time from exec to ready is that of envtest's servers too, which are these programs. A start
//! of the embedded one ends with its kubeconfig; the client's first request is not part of it.

#![allow(clippy::print_stdout, reason = "a benchmark's result")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use futures_util::{StreamExt, TryStreamExt, future, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::sync::Barrier;
use vmhost_tests::host::{self, Host};
use vmhost_tests::median::median;
use vmhost_tests::server::{Target, TestServer, Unavailable};
use vmhost_tests::{kubeconfig, process, real, run};

const STARTS: usize = 11;
const CLIENTS: usize = 8;
const OBJECTS: usize = 20_000;
const SIZE: usize = 2048;
const GETS: usize = 40_000;
const WATCHERS: usize = 100;
const WATCHED_WRITES: usize = 50;
/// Writes of which the mean is taken, with few objects and with all.
const SINGLE_WRITES: usize = 500;

fn main() -> Result<()> {
    run::runtime()?.block_on(async {
        let mut starts = Vec::new();
        for _ in 1..STARTS {
            let folder = tempfile::tempdir()?;
            starts.push(start(folder.path()).await?.1);
        }
        let folder = tempfile::tempdir()?;
        let (host, took) = start(folder.path()).await?;
        starts.push(took);
        println!("embedded: ready after {:?}", median(&mut starts)?);
        println!(
            "embedded: {:.1} MiB when empty",
            process::memory(host.id(), None)?.resident
        );
        let client = kubeconfig::client(&folder.path().join("kubeconfig")).await?;
        measure("embedded", &client).await?;
        let after = process::memory(host.id(), None)?.resident;
        println!("embedded: {after:.1} MiB with {OBJECTS} objects of {SIZE} bytes");
        drop(host);

        let begin = Instant::now();
        let server = TestServer::own(Target::Real, real::Options::default()).await?;
        let server = match server {
            Ok(server) => server,
            Err(Unavailable(reason)) => bail!("no server: {reason}"),
        };
        println!("kube-apiserver: ready after {:?}", begin.elapsed());
        measure("kube-apiserver", &server.client().await?).await
    })
}

/// Starts the embedded server; returns how long that took.
async fn start(folder: &Path) -> Result<(Host, Duration)> {
    let out = folder.join("kubeconfig");
    let command = host::bare()?.arg("apiserver").arg("--kubeconfig-out");
    let begin = Instant::now();
    let host = command.arg(&out).spawn()?;
    host.wait_for_line("export KUBECONFIG=").await?;
    Ok((host, begin.elapsed()))
}

async fn measure(server: &str, client: &Client) -> Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    create(&maps, 0..100).await?;
    let few = write_one(&maps).await?;
    let begin = Instant::now();
    create(&maps, 100..OBJECTS).await?;
    let rate = (OBJECTS - 100) as f64 / begin.elapsed().as_secs_f64();
    println!("{server}: {rate:.0} creates a second by {CLIENTS} clients");
    let many = write_one(&maps).await?;
    println!("{server}: a write takes {few:?} with 100 objects, {many:?} with {OBJECTS}");

    let begin = Instant::now();
    let gets = stream::iter(0..GETS).map(async |number| {
        maps.get(&name(number % OBJECTS)).await?;
        Ok::<_, kube::Error>(())
    });
    gets.buffer_unordered(CLIENTS).try_collect::<()>().await?;
    let rate = GETS as f64 / begin.elapsed().as_secs_f64();
    println!("{server}: {rate:.0} gets a second by {CLIENTS} clients");
    let (median, p99) = watch(client).await?;
    println!("{server}: an event reaches {WATCHERS} watchers after {median:?}, p99 {p99:?}");
    Ok(())
}

fn name(number: usize) -> String {
    format!("bench-{number}")
}

fn config_map(name: &str, text: &str) -> Result<ConfigMap> {
    let map = json!({ "metadata": { "name": name }, "data": { "text": text } });
    Ok(serde_json::from_value(map)?)
}

async fn create(maps: &Api<ConfigMap>, numbers: std::ops::Range<usize>) -> Result<()> {
    let text = "x".repeat(SIZE);
    let created = stream::iter(numbers).map(async |number| {
        let map = config_map(&name(number), &text)?;
        maps.create(&PostParams::default(), &map).await?;
        Ok::<_, anyhow::Error>(())
    });
    created.buffer_unordered(CLIENTS).try_collect::<()>().await
}

/// Returns how long a patch of one object takes when nothing else happens.
async fn write_one(maps: &Api<ConfigMap>) -> Result<Duration> {
    let begin = Instant::now();
    for number in 0..SINGLE_WRITES {
        let patch = json!({ "data": { "number": number.to_string() } });
        let patch = Patch::Merge(patch);
        maps.patch(&name(0), &PatchParams::default(), &patch)
            .await?;
    }
    Ok(begin.elapsed() / u32::try_from(SINGLE_WRITES)?)
}

/// Returns the median and the 99th percentile of the time from the begin of a write to its event at
/// each watcher.
async fn watch(client: &Client) -> Result<(Duration, Duration)> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-public");
    let origin = Instant::now();
    let ready = Arc::new(Barrier::new(WATCHERS + 1));
    let watchers = (0..WATCHERS).map(|_| {
        let (maps, ready) = (maps.clone(), ready.clone());
        tokio::spawn(async move {
            let events = maps.watch(&WatchParams::default(), "0").await?;
            let mut events = std::pin::pin!(events);
            ready.wait().await;
            let mut took = Vec::new();
            while took.len() < WATCHED_WRITES {
                let event = events.next().await.context("the watch ended")??;
                let WatchEvent::Added(map) = event else {
                    continue;
                };
                let sent = map.data.and_then(|data| data.get("text")?.parse().ok());
                if let Some(sent) = sent {
                    let sent = Duration::from_nanos(sent);
                    took.push(origin.elapsed().saturating_sub(sent));
                }
            }
            Ok::<_, anyhow::Error>(took)
        })
    });
    let watchers: Vec<_> = watchers.collect();
    ready.wait().await;
    for number in 0..WATCHED_WRITES {
        let sent = origin.elapsed().as_nanos().to_string();
        let map = config_map(&format!("watched-{number}"), &sent)?;
        maps.create(&PostParams::default(), &map).await?;
        // One event at a time: this is no test of throughput.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut took = Vec::new();
    for watcher in future::join_all(watchers).await {
        took.extend(watcher??);
    }
    ensure!(took.len() == WATCHERS * WATCHED_WRITES, "{}", took.len());
    let middle = median(&mut took)?;
    let p99 = took.get(took.len() * 99 / 100).context("a percentile")?;
    Ok((middle, *p99))
}
