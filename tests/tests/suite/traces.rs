//! Traces: a turn is one, from the wait of its key to its writes. The collector, the API server and
//! the log know it by the same numbers, and no span shows a text that may be secret.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::collector::{Collector, Span};
use vmhost_tests::host::HostCommand;
use vmhost_tests::obey::{OBEY, Obey, WATCHER, complete};
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::Vms;

const WRITE: &str = "patch VirtualMachine";
const AWAIT: &str = "await own writes";
const SPANS: &str = "vmhost_spans_total";

/// Starts a host with a guest, for VMs of its own.
async fn start(
    server: &TestServer,
    kubeconfig: &Path,
    guest: (&str, &str),
    set: impl FnOnce(HostCommand) -> HostCommand,
) -> Result<Obey> {
    let vms = Vms::install(server).await?;
    Obey::start_guest(vms, kubeconfig, guest, set).await
}

fn find<'a>(spans: &'a [Span], name: &str) -> Option<&'a Span> {
    spans.iter().find(|span| span.name == name)
}

/// Returns whether these spans are a whole turn of an object.
fn is_of(spans: &[Span], object: &str) -> bool {
    let first = spans.first();
    first.is_some_and(|span| {
        span.parent.is_empty() && span.attribute("vmhost.object.name") == object
    })
}

both_servers!(a_turn_is_a_trace);
async fn a_turn_is_a_trace(server: &TestServer) -> Result<()> {
    let collector = Collector::start().await?;
    let proxy = server.proxy().await?;
    let obey = start(server, proxy.kubeconfig(), OBEY, |host| {
        collector
            .watch(host)
            .env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b")
            .env("OTEL_RESOURCE_ATTRIBUTES", "k8s.pod.name=pod-1")
    })
    .await?;
    obey.order("one", json!({ "effects": [complete()] }))
        .await?;
    let spans = collector
        .until_trace("a turn that writes", |spans| {
            // A later turn writes what is there, and waits for nothing.
            is_of(spans, "one") && find(spans, AWAIT).is_some()
        })
        .await?;
    let root = spans.first().context("there is a first span")?;
    ensure!(root.name == "reconcile obey/vms", "{root:?}");
    ensure!(root.error.is_none(), "{root:?}");
    for (attribute, value) in [
        ("vmhost.controller", "obey/vms"),
        ("vmhost.generation", "1"),
        ("vmhost.result", "success"),
        ("vmhost.attempt", "0"),
        ("vmhost.effects", "1"),
        ("k8s.namespace.name", obey.vms.namespace()),
    ] {
        ensure!(root.attribute(attribute) == value, "{attribute}: {root:?}");
    }
    let mut last = root.start;
    for name in ["wait", "call", WRITE, AWAIT] {
        let span = find(&spans, name).with_context(|| format!("no {name}: {spans:?}"))?;
        ensure!(span.parent == root.id, "{span:?}");
        ensure!(
            last <= span.start && span.start <= span.end && span.end <= root.end,
            "{name} is not in its place: {spans:?}"
        );
        last = span.end;
    }

    // The API server knows the write by its span, as it does the discovery of the kind before it.
    let write = find(&spans, WRITE).context("there is a write")?;
    ensure!(write.kind == 3, "{write:?}");
    let expected = format!("00-{}-{}-01", write.trace, write.id);
    let told = proxy.requests_where(|request| request.traceparent == expected);
    let writes = told.iter().filter(|request| request.method != "GET");
    let writes: Vec<&str> = writes.map(|request| request.method.as_str()).collect();
    ensure!(writes == ["PATCH"], "{expected}: {told:?}");
    let watches = proxy.requests_where(|request| request.is_watch());
    ensure!(!watches.is_empty() && watches.iter().all(|watch| watch.traceparent.is_empty()));

    // So does the log, which comes through a pipe.
    let of_turn = |line: &str| -> Option<Value> {
        let line: Value = serde_json::from_str(line).ok()?;
        let is_it = line["trace_id"] == root.trace.as_str();
        (is_it && line["message"].as_str()?.starts_with("TURN")).then_some(line)
    };
    let lines = obey.host.wait_for_lines(1, |line| of_turn(line).is_some());
    let lines = lines.await.context("a line of the turn has its trace")?;
    let line = lines.first().and_then(|line| of_turn(line));
    let line = line.context("there is one")?;
    ensure!(
        line["span_id"] == root.id.as_str() && line["name"] == "one",
        "{line}"
    );

    let resource = collector.resource();
    let of_process = |name: &str| resource.get(name).map(String::as_str);
    ensure!(of_process("service.name") == Some("vmhost"), "{resource:?}");
    ensure!(of_process("k8s.pod.name") == Some("pod-1"), "{resource:?}");
    ensure!(collector.header("x-key") == "a b");
    ensure!(collector.wrong().is_empty(), "{:?}", collector.wrong());
    let exported = [("result", "exported")];
    obey.host.until_metric(SPANS, &exported, 5.0).await?;
    Ok(())
}

both_servers!(each_read_is_a_span);
async fn each_read_is_a_span(server: &TestServer) -> Result<()> {
    let collector = Collector::start().await?;
    let proxy = server.proxy().await?;
    let obey = start(server, proxy.kubeconfig(), WATCHER, |host| {
        collector.watch(host)
    })
    .await?;
    let namespace = obey.vms.namespace();
    let maps: Api<ConfigMap> = Api::namespaced(server.client().await?, namespace);
    let ask = async |name: &str, query: Value| -> Result<Span> {
        let object = serde_json::from_value(json!({
            "metadata": { "name": name, "labels": { "vmhost.test/read": "yes" } },
            "data": { "query": query.to_string() },
        }))?;
        maps.create(&PostParams::default(), &object).await?;
        let is_read = |span: &Span| !span.attribute("vmhost.read.live").is_empty();
        let spans = collector
            .until_trace("a turn that reads", |spans| {
                is_of(spans, name) && spans.iter().any(is_read)
            })
            .await?;
        let read = spans.iter().find(|span| is_read(span)).context("a read")?;
        let call = find(&spans, "call").context("a call")?;
        ensure!(
            read.parent == call.id && call.start <= read.start && read.end <= call.end,
            "{spans:?}"
        );
        Ok(read.clone())
    };
    let query = json!({
        "group": "cloud.waibizi.com", "kind": "VirtualMachine", "namespace": namespace,
        "get": "none",
    });
    let stored = ask("stored", query).await?;
    ensure!(stored.name == "get" && stored.kind == 1, "{stored:?}");
    for (attribute, value) in [
        ("vmhost.read.live", "false"),
        ("vmhost.read.found", "false"),
        ("vmhost.object.name", "none"),
        ("vmhost.object.kind", "VirtualMachine.v1.cloud.waibizi.com"),
    ] {
        ensure!(stored.attribute(attribute) == value, "{stored:?}");
    }
    let query = json!({
        "group": "", "kind": "ServiceAccount", "namespace": namespace, "live": true, "get": "none",
    });
    let live = ask("live", query).await?;
    ensure!(live.name == "get" && live.kind == 3, "{live:?}");
    let expected = format!("00-{}-{}-01", live.trace, live.id);
    let told = proxy.requests_where(|request| request.traceparent == expected);
    // Discovery of the kind may belong to the read too.
    ensure!(
        told.iter()
            .any(|request| request.concerns("serviceaccounts")),
        "{expected}: {told:?}"
    );
    Ok(())
}

both_servers!(a_failed_turn_shows_no_text);
async fn a_failed_turn_shows_no_text(server: &TestServer) -> Result<()> {
    let collector = Collector::start().await?;
    let obey = start(server, &server.kubeconfig(), OBEY, |host| {
        collector.watch(host)
    })
    .await?;
    obey.order("fails", json!({ "next": { "fail": "s3cret" } }))
        .await?;
    let memory = json!({ "merge": { "spec": { "memory": "s3cret" } } });
    obey.order("refused", json!({ "effects": [memory] }))
        .await?;
    obey.order("traps", json!({ "trap": true })).await?;
    for (name, error) in [
        ("fails", "the plugin failed"),
        ("refused", "a write was refused: 422"),
        ("traps", "trap"),
    ] {
        let spans = collector
            .until_trace(name, |spans| is_of(spans, name))
            .await?;
        let root = spans.first().context("there is a first span")?;
        ensure!(root.error.as_deref() == Some(error), "{name}: {root:?}");
    }
    let spans = collector.spans();
    let refused = spans
        .iter()
        .find(|span| span.name == WRITE && span.attribute("http.response.status_code") == "422");
    let refused = refused.context("the refused write is a span")?;
    ensure!(refused.error.as_deref() == Some("422"), "{refused:?}");
    ensure!(!format!("{spans:?}").contains("s3cret"), "{spans:?}");
    Ok(())
}

both_servers!(nothing_is_traced_unless_somebody_asks);
async fn nothing_is_traced_unless_somebody_asks(server: &TestServer) -> Result<()> {
    let proxy = server.proxy().await?;
    let obey = start(server, proxy.kubeconfig(), OBEY, |host| host).await?;
    obey.settle().await?;
    let output = obey.host.output();
    ensure!(!output.iter().any(|line| line.contains("trace_id")));
    ensure!(obey.host.metrics().await?.series(SPANS).next().is_none());
    let told = proxy.requests_where(|request| !request.traceparent.is_empty());
    ensure!(told.is_empty(), "{told:?}");
    Ok(())
}

both_servers!(a_variable_that_cannot_be_used_stops_no_controller);
async fn a_variable_that_cannot_be_used_stops_no_controller(server: &TestServer) -> Result<()> {
    let collector = Collector::start().await?;
    let obey = start(server, &server.kubeconfig(), OBEY, |host| {
        collector
            .watch(host)
            .env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    })
    .await?;
    obey.settle().await?;
    obey.host
        .wait_for_line("OTEL_EXPORTER_OTLP_PROTOCOL=grpc")
        .await?;
    ensure!(collector.spans().is_empty());
    ensure!(collector.wrong().is_empty(), "{:?}", collector.wrong());
    Ok(())
}

both_servers!(a_collector_that_refuses_delays_no_turn);
async fn a_collector_that_refuses_delays_no_turn(server: &TestServer) -> Result<()> {
    let collector = Collector::start().await?;
    collector.refuse(true);
    let obey = start(server, &server.kubeconfig(), OBEY, |host| {
        collector.watch(host)
    })
    .await?;
    obey.settle().await?;
    let failed = [("result", "failed")];
    obey.host.until_metric(SPANS, &failed, 1.0).await?;
    obey.host.wait_for_line("400 Bad Request").await?;
    collector.refuse(false);
    obey.settle().await?;
    let exported = [("result", "exported")];
    obey.host.until_metric(SPANS, &exported, 1.0).await?;
    Ok(())
}

both_servers!(the_last_spans_are_sent_before_the_end);
async fn the_last_spans_are_sent_before_the_end(server: &TestServer) -> Result<()> {
    let collector = Collector::start().await?;
    let obey = start(server, &server.kubeconfig(), OBEY, |host| {
        collector
            .watch(host)
            .env("OTEL_BSP_SCHEDULE_DELAY", "3600000")
    })
    .await?;
    obey.order("last", json!({ "effects": [complete()] }))
        .await?;
    obey.vms
        .until_one("last", "it is complete", |vm| vm.complete())
        .await?;
    obey.host.sigterm()?;
    let exit = obey.host.wait_exit().await?;
    ensure!(exit.status.success(), "{exit:?}");
    let spans = collector.spans();
    let is_last = |span: &Span| span.attribute("vmhost.object.name") == "last";
    ensure!(spans.iter().any(is_last), "{spans:?}");
    Ok(())
}
