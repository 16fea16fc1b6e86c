//! Random requests, made from real objects, patches, schemas and rules: nothing panics, every
//! refusal is a `Status`, and the server answers the next request.
//!
//! A failure names the seed of its case. `VMHOST_FUZZ_SEED=7` repeats that case alone, in every
//! test; `VMHOST_FUZZ=100` runs a hundred times as many cases as the gate.

mod bodies;
mod definitions;
mod mutate;
mod urls;
mod wire;

use std::ops::Range;

use axum::body::Body;
use bytes::Bytes;
use fastrand::Rng;
use http::Request;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;

use super::Cluster;

const KINDS: &str = include_str!("../../../../tests/cases/kinds.json");
/// More than any answer to a request of the tests has.
const LARGEST: usize = 32 << 20;

/// Returns the seeds of a test that has so many cases in the gate.
fn seeds(count: u64) -> Range<u64> {
    let given = |name: &str| std::env::var(name).ok().map(|text| text.parse().unwrap());
    match given("VMHOST_FUZZ_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..count * given("VMHOST_FUZZ").unwrap_or(1),
    }
}

/// A case. It is told if it panics.
struct Case {
    test: &'static str,
    seed: u64,
    rng: Rng,
}

impl Case {
    fn new(test: &'static str, seed: u64) -> Case {
        let rng = Rng::with_seed(seed);
        Case { test, seed, rng }
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}: VMHOST_FUZZ_SEED={}", self.test, self.seed);
        }
    }
}

/// A real object and the path of its collection.
struct Sample {
    collection: String,
    object: Value,
}

impl Sample {
    fn path(&self) -> String {
        let name = self.object["metadata"]["name"].as_str().unwrap();
        format!("{}/{name}", self.collection)
    }

    /// Returns whether an object of the kind decides about writes of others.
    fn decides(&self) -> bool {
        self.collection.contains("admissionregistration") || self.collection.ends_with("namespaces")
    }
}

fn samples() -> Vec<Sample> {
    let table: Value = serde_json::from_str(KINDS).unwrap();
    let cases = table["cases"].as_array().unwrap().iter();
    cases
        .map(|case| Sample {
            collection: case["path"].as_str().unwrap().to_owned(),
            object: case["object"].clone(),
        })
        .collect()
}

/// Returns a cluster with the objects, except for those that decide about others.
async fn cluster(samples: &[Sample]) -> Cluster {
    let cluster = Cluster::new();
    for sample in samples.iter().filter(|sample| !sample.decides()) {
        cluster.post(&sample.collection, &sample.object).await.ok();
    }
    cluster
}

/// A request. Its parts may be anything.
struct Ask<'a> {
    method: &'a str,
    path: &'a str,
    media: &'a str,
    accept: &'a str,
    body: Vec<u8>,
}

/// Sends a request and checks the answer; then the server must answer another. Returns the code and
/// the body; `None` if HTTP itself does not allow the request.
async fn ask(cluster: &Cluster, ask: Ask<'_>) -> Option<(u16, Bytes)> {
    let Ask {
        method,
        path,
        media,
        accept,
        body,
    } = ask;
    let shown = format!("{method} {path:?} {media}: {}", shown(&body));
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(AUTHORIZATION, "Bearer secret");
    for (name, value) in [(CONTENT_TYPE, media), (ACCEPT, accept)] {
        if !value.is_empty() {
            request = request.header(name, value);
        }
    }
    let request = request.body(Body::from(body)).ok()?;
    let answer = cluster.router.clone().oneshot(request).await.unwrap();
    let code = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(body.len() < LARGEST, "{} bytes: {shown}", body.len());
    if code >= 400 && method != "HEAD" {
        let status: Value = serde_json::from_slice(&body).unwrap_or_default();
        assert_eq!(status["kind"], "Status", "{code}: {shown}");
        assert_eq!(status["code"], code, "{shown}");
        // What a client sends is its own fault. (Some of Kubernetes' refusals have the code 500,
        // and no reason.)
        assert_ne!(status["reason"], "InternalError", "{status}: {shown}");
    }
    let next = cluster.get("/api/v1/namespaces/default").await;
    assert_eq!(next.code, 200, "after {shown}");
    Some((code, body))
}

/// Sends a body to a path that HTTP allows, and checks the answer.
async fn send(cluster: &Cluster, (method, path): (&str, &str), media: &str, body: Vec<u8>) {
    let request = Ask {
        method,
        path,
        media,
        accept: "",
        body,
    };
    ask(cluster, request).await.unwrap();
}

/// Returns the beginning of a body, as a message shows it.
fn shown(body: &[u8]) -> String {
    let start = body.get(..2000).unwrap_or(body);
    format!("{:?}", String::from_utf8_lossy(start))
}
