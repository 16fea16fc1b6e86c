//! Traces of reviews: a webhook's call is a span below the one that the API server names, with its
//! reads, and no span shows what was reviewed.

use anyhow::{Context, Result, ensure};
use http::{Method, Request, header};
use kube::client::Body;
use kube::{Client, Config};
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::collector::{Collector, Span};
use vmhost_tests::reviewer::{Door, Reviewer, checks};
use vmhost_tests::server::TestServer;

/// A span of the API server, in two traces.
const PARENT: &str = "00f067aa0ba902b7";
const SAMPLED: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const UNSAMPLED: &str = "5bf92f3577b34da6a3ce929d0e0e4736";
/// What it notes about them.
const STATE: &str = "vendor=note,other@x=1";

fn describe(plugin: &str) -> Value {
    let mut description = checks(plugin);
    let webhook = &mut description["webhooks"][0];
    webhook["timeoutSeconds"] = json!(5);
    webhook["reads"] = json!([{ "version": "v1", "kind": "ConfigMap" }]);
    description
}

/// A client that sends reviews as the API server does, with a trace.
struct Asks {
    client: Client,
    path: String,
    namespace: String,
}

impl Asks {
    fn new(door: Door, reviewer: &Reviewer) -> Result<Asks> {
        let mut config = Config::new(door.url().parse()?);
        config.accept_invalid_certs = true;
        // As of all servers on loopback.
        config.proxy_url = None;
        Ok(Asks {
            client: Client::try_from(config)?,
            path: format!("/admit/{}/checks?timeout=5s", reviewer.name),
            namespace: reviewer.namespace.clone(),
        })
    }

    /// Sends a review of this uid with an order, and checks that it is answered.
    async fn review(&self, uid: &str, order: Value, traceparent: &str) -> Result<()> {
        let review = json!({
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": uid,
                "namespace": self.namespace,
                "operation": "CREATE",
                "object": { "metadata": {
                    "name": "s3cret",
                    "annotations": { "vmhost.test/checks": order.to_string() },
                } },
            },
        });
        let request = Request::builder()
            .method(Method::POST)
            .uri(&self.path)
            .header(header::CONTENT_TYPE, "application/json")
            .header("traceparent", traceparent)
            .header("tracestate", STATE)
            .body(Body::from(serde_json::to_vec(&review)?))?;
        let response = self.client.send(request).await?;
        ensure!(response.status() == 200, "{uid}: {}", response.status());
        Ok(())
    }
}

/// The first span that this process adds to a trace.
fn first(spans: &[Span]) -> Option<&Span> {
    spans.iter().find(|span| span.kind == 2)
}

fn is_of(spans: &[Span], uid: &str) -> bool {
    first(spans).is_some_and(|span| span.attribute("vmhost.review.uid") == uid)
}

both_servers!(a_review_is_a_trace_of_its_request);
async fn a_review_is_a_trace_of_its_request(server: &TestServer) -> Result<()> {
    let collector = Collector::start().await?;
    let reviewer = Reviewer::new(server, describe).await?;
    let door = Door::new()?;
    let host = collector.watch(reviewer.host(door)?).ready().await?;
    reviewer.until_registered(&host).await?;
    reviewer.until_asked().await?;
    let name = format!("admit {}/checks", reviewer.name);

    // Of the API server itself.
    let spans = collector
        .until_trace("the API server's review", |spans| {
            first(spans).is_some_and(|span| span.attribute("vmhost.result") == "denied")
        })
        .await?;
    let root = first(&spans).context("there is a first span")?;
    ensure!(root.name == name && root.error.is_none(), "{root:?}");
    ensure!(
        root.attribute("k8s.namespace.name") == reviewer.namespace,
        "{root:?}"
    );

    let asks = Asks::new(door, &reviewer)?;
    let unsampled = format!("00-{UNSAMPLED}-{PARENT}-00");
    asks.review("unsampled", json!({}), &unsampled).await?;
    let sampled = format!("00-{SAMPLED}-{PARENT}-01");
    let order = json!({ "read": "none", "tell": true });
    asks.review("sampled", order, &sampled).await?;
    let spans = collector
        .until_trace("a review below a span", |spans| is_of(spans, "sampled"))
        .await?;
    let root = first(&spans).context("there is a first span")?;
    ensure!(root.trace == SAMPLED && root.parent == PARENT, "{root:?}");
    ensure!(root.name == name, "{root:?}");
    ensure!(root.attribute("vmhost.result") == "allowed", "{root:?}");
    let of = |name: &str| spans.iter().find(|span| span.name == name);
    let call = of("call").context("the call is a span")?;
    let read = of("get").context("the read is a span")?;
    ensure!(
        call.parent == root.id && read.parent == call.id,
        "{spans:?}"
    );
    ensure!(
        root.start <= call.start && call.start <= read.start && call.end <= root.end,
        "{spans:?}"
    );
    ensure!(read.attribute("vmhost.read.found") == "false", "{read:?}");
    ensure!(spans.iter().all(|span| span.state == STATE), "{spans:?}");
    // The API server exports nothing of that trace, and neither does the host.
    let all = collector.spans();
    ensure!(!all.iter().any(|span| span.trace == UNSAMPLED), "{all:?}");
    ensure!(!format!("{all:?}").contains("s3cret"), "{all:?}");
    ensure!(collector.wrong().is_empty(), "{:?}", collector.wrong());
    Ok(())
}

both_servers!(a_review_without_an_answer_is_an_error);
async fn a_review_without_an_answer_is_an_error(server: &TestServer) -> Result<()> {
    let collector = Collector::start().await?;
    let reviewer = Reviewer::new(server, describe).await?;
    let host = collector.watch(reviewer.host(Door::new()?)?);
    let host = host.ready().await?;
    reviewer.until_registered(&host).await?;
    reviewer.until_asked().await?;
    let refused = reviewer.try_out("s3cret", json!("trap")).await?;
    refused.expect_refused(500, &["trapped"])?;
    let spans = collector
        .until_trace("a review that trapped", |spans| {
            first(spans).is_some_and(|span| span.error.is_some())
        })
        .await?;
    let root = first(&spans).context("there is a first span")?;
    ensure!(root.error.as_deref() == Some("failed"), "{root:?}");
    let call = spans.iter().find(|span| span.name == "call");
    let call = call.context("the call is a span")?;
    ensure!(call.error.as_deref() == Some("failed"), "{call:?}");
    ensure!(!format!("{spans:?}").contains("s3cret"), "{spans:?}");
    Ok(())
}
