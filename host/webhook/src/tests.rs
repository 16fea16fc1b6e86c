//! The whole server, asked by a real TLS client.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::{BoxFuture, FutureExt};
use http::{StatusCode, Version};
use prometheus::{Registry, TextEncoder};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;

use crate::{Arrival, Converted, Policy, Server, Unanswered, Verdict};

mod client;

use client::{Client, Host};

/// A policy that answers by the name of the webhook.
#[derive(Default)]
struct Plugin {
    /// Wakes `slow`, once it was asked.
    go_on: Arc<Notify>,
    asked: Arc<Notify>,
}

impl Policy for Plugin {
    fn admit(
        &self,
        plugin: &str,
        webhook: &str,
        uid: &str,
        namespace: Option<&str>,
        request: Box<RawValue>,
        arrival: Arrival,
    ) -> BoxFuture<'_, Result<Verdict, Unanswered>> {
        let request: Value = serde_json::from_str(request.get()).unwrap();
        let said = json!({"plugin": plugin, "uid": uid, "namespace": namespace,
            "dryRun": request["dryRun"], "traceparent": arrival.traceparent});
        let webhook = webhook.to_owned();
        Box::pin(async move {
            match webhook.as_str() {
                "allow" => Ok(Verdict {
                    allowed: true,
                    warnings: vec![said.to_string()],
                    ..Verdict::default()
                }),
                "deny" => Ok(Verdict {
                    status: Some(json!({"message": "no", "code": 403})),
                    ..Verdict::default()
                }),
                "mutate" => Ok(Verdict {
                    allowed: true,
                    patch: Some(vec![json!({"op": "remove", "path": "/spec"})]),
                    ..Verdict::default()
                }),
                "slow" => {
                    self.asked.notify_one();
                    self.go_on.notified().await;
                    Ok(Verdict {
                        allowed: true,
                        ..Verdict::default()
                    })
                }
                "hang" => std::future::pending().await,
                "unready" => Err(Unanswered::NotReady),
                "late" => Err(Unanswered::TimedOut),
                "broken" => Err(Unanswered::Failed("it\ntrapped".to_owned())),
                _ => Err(Unanswered::NoSuchWebhook),
            }
        })
    }

    fn convert(
        &self,
        _plugin: &str,
        conversion: &str,
        _uid: &str,
        desired: &str,
        objects: Vec<Box<RawValue>>,
        _arrival: Arrival,
    ) -> BoxFuture<'_, Result<Converted, Unanswered>> {
        let (conversion, desired) = (conversion.to_owned(), desired.to_owned());
        Box::pin(async move {
            let converted = objects.iter().map(|object| {
                let mut object: Value = serde_json::from_str(object.get()).unwrap();
                object["apiVersion"] = json!(desired);
                serde_json::value::to_raw_value(&object).unwrap()
            });
            let mut converted: Vec<_> = converted.collect();
            match conversion.as_str() {
                "vm" => {}
                "short" => drop(converted.pop()),
                "turned" => converted.reverse(),
                "unready" => return Err(Unanswered::NotReady),
                _ => return Err(Unanswered::Failed("no way".to_owned())),
            }
            Converted::check(&objects, &converted, &desired).map_err(Unanswered::Failed)
        })
    }
}

fn review(api_version: &str) -> String {
    json!({"apiVersion": api_version, "kind": "AdmissionReview", "request":
        {"uid": "u-1", "namespace": "n", "dryRun": true, "operation": "CREATE"}})
    .to_string()
}

fn admission() -> String {
    review("admission.k8s.io/v1")
}

fn conversion(count: usize, padding: usize) -> String {
    let padding = "x".repeat(padding);
    let objects: Vec<Value> = (0..count)
        .map(|at| {
            json!({"apiVersion": "g/v1", "kind": "Vm", "padding": padding,
                "metadata": {"name": format!("vm-{at}"), "uid": format!("u-{at}")}})
        })
        .collect();
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request":
        {"uid": "u-2", "desiredAPIVersion": "g/v2", "objects": objects}})
    .to_string()
}

#[tokio::test]
async fn verdicts_come_back_over_both_versions_of_http() {
    let host = Host::start(Plugin::default());
    for version in [Version::HTTP_11, Version::HTTP_2] {
        let mut client = host.connect(version).await;
        let (code, body) = client
            .post("/admit/p/allow?timeout=10s", admission())
            .await
            .json();
        assert_eq!(code, StatusCode::OK);
        assert_eq!(body["response"]["uid"], "u-1");
        assert_eq!(body["response"]["allowed"], true);
        let said = body["response"]["warnings"][0].as_str().unwrap();
        let said: Value = serde_json::from_str(said).unwrap();
        assert_eq!(
            said,
            json!({"plugin": "p", "uid": "u-1", "namespace": "n", "dryRun": true,
                "traceparent": client::TRACEPARENT})
        );
        let (_, body) = client.post("/admit/p/deny", admission()).await.json();
        assert_eq!(body["response"]["allowed"], false);
        assert_eq!(body["response"]["status"]["message"], "no");
        let (_, body) = client.post("/admit/p/mutate", admission()).await.json();
        let patch = body["response"]["patch"].as_str().unwrap();
        let patch = String::from_utf8(STANDARD.decode(patch).unwrap()).unwrap();
        assert_eq!(patch, r#"[{"op":"remove","path":"/spec"}]"#);
    }
}

#[tokio::test]
async fn what_has_no_verdict_is_an_error_and_never_a_permission() {
    let host = Host::start(Plugin::default());
    let mut client = host.connect(Version::HTTP_11).await;
    let refused = [
        ("/admit/p/unready", admission(), 503, "not ready"),
        ("/admit/p/late", admission(), 500, "in time"),
        ("/admit/p/hang?timeout=500ms", admission(), 500, "in time"),
        ("/admit/p/broken", admission(), 500, "it trapped"),
        ("/admit/p/none", admission(), 404, "no plugin"),
        ("/admit/p", admission(), 404, "/admit/PLUGIN/WEBHOOK"),
        (
            "/admit/p/allow",
            "<html>".to_owned(),
            400,
            "AdmissionReview",
        ),
        ("/admit/p/allow", conversion(1, 1), 400, "ConversionReview"),
        (
            "/admit/p/allow",
            review("admission.k8s.io/v1beta1"),
            400,
            "admission.k8s.io/v1beta1 is not served",
        ),
    ];
    for (path, body, code, words) in refused {
        let answer = client.post(path, body).await;
        assert_eq!(answer.code, code, "{path}");
        let text = answer.text();
        assert!(text.contains(words) && !text.contains('\n'), "{text}");
        let again = answer.headers.get("retry-after").is_some();
        assert_eq!(again, code == 503, "{path}");
    }
    assert_eq!(client.get("/admit/p/allow").await.code, 405);
    let (code, _) = client.post("/admit/p/allow", admission()).await.json();
    assert_eq!(code, StatusCode::OK, "the connection lives on");
}

#[tokio::test]
async fn a_conversion_keeps_order_count_and_metadata() {
    let host = Host::start(Plugin::default());
    let mut client = host.connect(Version::HTTP_11).await;
    // 4 MiB: several batches.
    let (code, body) = client
        .post("/convert/p/vm", conversion(2048, 2048))
        .await
        .json();
    assert_eq!(code, StatusCode::OK);
    assert_eq!(body["response"]["result"], json!({"status": "Success"}));
    let objects = body["response"]["convertedObjects"].as_array().unwrap();
    assert_eq!(objects.len(), 2048);
    for (at, object) in objects.iter().enumerate() {
        assert_eq!(object["apiVersion"], "g/v2");
        assert_eq!(object["metadata"]["uid"], format!("u-{at}"));
    }
    let answer = client.post("/convert/p/vm", conversion(0, 0)).await;
    assert_eq!(answer.code, 400, "there is nothing to convert");

    for (name, words) in [
        ("short", "2 objects came back for 3"),
        ("turned", "metadata.name has changed"),
        ("other", "no way"),
    ] {
        let path = format!("/convert/p/{name}");
        let (code, body) = client.post(&path, conversion(3, 1)).await.json();
        assert_eq!(code, StatusCode::OK);
        let response = &body["response"];
        assert_eq!(response["uid"], "u-2");
        assert_eq!(response["result"]["status"], "Failed");
        let message = response["result"]["message"].as_str().unwrap();
        assert!(message.contains(words), "{message}");
    }
    let answer = client.post("/convert/p/unready", conversion(1, 1)).await;
    assert_eq!(answer.code, 503);
}

#[tokio::test]
async fn a_body_that_is_too_long_is_not_read() {
    let host = Host::start(Plugin::default());
    for (path, length) in [
        ("/admit/p/allow", (8 << 20) + 1),
        ("/convert/p/vm", (128 << 20) + 1),
    ] {
        let mut stream = host.tls(&[b"http/1.1"]).await.unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        let mut begin = [0; 12];
        stream.read_exact(&mut begin).await.unwrap();
        assert_eq!(&begin, b"HTTP/1.1 413");
    }
}

#[tokio::test]
async fn connections_that_say_nothing_keep_nobody_out() {
    let plugin = Plugin::default();
    let (go_on, asked) = (plugin.go_on.clone(), plugin.asked.clone());
    let host = Host::start_with_places(plugin, 2);
    let mut busy = host.connect(Version::HTTP_11).await;
    let answering = tokio::spawn(async move { busy.post("/admit/p/slow", admission()).await.code });
    asked.notified().await;
    // One after handshakes of both versions, one before its handshake.
    let mut silent = vec![
        host.tls(&[b"http/1.1"]).await.unwrap(),
        host.tls(&[b"h2"]).await.unwrap(),
    ];
    let _plain = host.plain().await;
    let serving = async {
        for version in [Version::HTTP_2, Version::HTTP_11] {
            let mut client = host.connect(version).await;
            let answer = client.post("/admit/p/allow", admission()).await;
            assert_eq!(answer.code, 200);
        }
        for ended in &mut silent {
            // What the server says first of HTTP/2 comes before the end.
            let mut said = Vec::new();
            let _ = ended.read_to_end(&mut said).await;
        }
    };
    // They would end by themselves after two minutes.
    let served = tokio::time::timeout(Duration::from_secs(60), serving);
    served.await.unwrap();
    go_on.notify_one();
    assert_eq!(answering.await.unwrap(), 200, "one that is busy stays");
}

#[tokio::test]
async fn large_reviews_that_are_not_sent_hold_up_no_small_one() {
    let host = Host::start(Plugin::default());
    let mut idle = Vec::new();
    // Half of them send enough to wait for room for the whole.
    for sent in [0, 65 << 10].repeat(20) {
        let mut stream = host.tls(&[b"http/1.1"]).await.unwrap();
        let head = "POST /admit/p/allow HTTP/1.1\r\nhost: a\r\ncontent-length: 8388608\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&vec![b' '; sent]).await.unwrap();
        stream.flush().await.unwrap();
        idle.push(stream);
    }
    for version in [Version::HTTP_11, Version::HTTP_2] {
        let mut client = host.connect(version).await;
        let answer = client.post("/admit/p/allow", admission()).await;
        assert_eq!(answer.code, 200);
    }
    drop(idle);
}

#[tokio::test]
async fn tls_1_2_and_1_3_are_served_with_the_certificate_of_the_moment() {
    let mut host = Host::start(Plugin::default());
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let stream = host.tls_of(version).await.unwrap();
        let used = stream.get_ref().1.protocol_version();
        assert_eq!(used, Some(version.version));
    }
    let mut open = host.connect(Version::HTTP_11).await;
    let before = host.trusted.clone();
    host.renew();
    let (code, _) = open.post("/admit/p/allow", admission()).await.json();
    assert_eq!(code, StatusCode::OK, "open connections stay");
    assert!(host.tls(&[b"h2"]).await.is_ok());
    host.trusted = before;
    assert!(host.tls(&[b"h2"]).await.is_err(), "another authority");
}

#[tokio::test]
async fn without_a_certificate_there_is_no_handshake() {
    let host = Host::start_without_certificate(Plugin::default());
    assert!(host.tls(&[b"h2"]).await.is_err());
    let shown = host.shown.clone();
    assert!(!shown.is_ready());
}

#[tokio::test]
async fn a_request_in_flight_is_answered_before_the_end() {
    let plugin = Plugin::default();
    let (go_on, asked) = (plugin.go_on.clone(), plugin.asked.clone());
    let mut host = Host::start(plugin);
    let mut client = host.connect(Version::HTTP_11).await;
    let pending = tokio::spawn(async move { client.post("/admit/p/slow", admission()).await.code });
    asked.notified().await;
    let server: Server = host.take();
    let mut ending = Box::pin(server.stop(Duration::ZERO, Duration::from_secs(60)));
    // The end waits for the answer.
    assert!((&mut ending).now_or_never().is_none());
    go_on.notify_one();
    let (code, ()) = tokio::join!(pending, ending);
    assert_eq!(code.unwrap(), 200);
    assert!(host.tls(&[b"h2"]).await.is_err(), "the port is closed");
}

#[tokio::test]
async fn a_host_that_leaves_closes_connections_after_their_answers() {
    let mut host = Host::start(Plugin::default());
    let mut client: Client = host.connect(Version::HTTP_11).await;
    let answer = client.post("/admit/p/allow", admission()).await;
    assert!(answer.headers.get("connection").is_none());
    let leaving = host.take().stop(Duration::from_secs(3600), Duration::ZERO);
    let mut leaving = Box::pin(leaving);
    assert!((&mut leaving).now_or_never().is_none());
    let answer = client.post("/admit/p/allow", admission()).await;
    assert_eq!(answer.code, 200);
    assert_eq!(answer.headers["connection"], "close");
    // It serves on: the API server may not know yet.
    let mut another = host.connect(Version::HTTP_2).await;
    let answer = another.post("/admit/p/allow", admission()).await;
    assert_eq!(answer.code, 200);
    drop(leaving);
}

#[tokio::test]
async fn requests_are_counted_by_webhook_and_nobody_can_add_names() {
    let registry = Registry::new();
    let host = Host::start_counted(Plugin::default(), &registry);
    let mut client = host.connect(Version::HTTP_11).await;
    for path in ["/admit/p/allow", "/admit/p/allow", "/admit/p/broken"] {
        client.post(path, admission()).await;
    }
    client.post("/admit/p/made-up", admission()).await;
    client.post("/made/up", admission()).await;
    client.post("/convert/p/made-up", conversion(0, 0)).await;
    client.post("/admit/made-up/unready", admission()).await;
    let text = TextEncoder::new()
        .encode_to_string(&registry.gather())
        .unwrap();
    let lines: BTreeMap<&str, &str> = text
        .lines()
        .filter_map(|line| line.rsplit_once(' '))
        .collect();
    let count = |webhook: &str, code: &str| {
        let name = "controller_runtime_webhook_requests_total";
        let name = format!("{name}{{code=\"{code}\",webhook=\"{webhook}\"}}");
        lines.get(name.as_str()).copied()
    };
    assert_eq!(count("/admit/p/allow", "200"), Some("2"), "{text}");
    assert_eq!(count("/admit/p/broken", "500"), Some("1"), "{text}");
    assert_eq!(count("unknown", "404"), Some("2"), "{text}");
    assert_eq!(count("unknown", "400"), Some("1"), "{text}");
    assert_eq!(count("unknown", "503"), Some("1"), "{text}");
    assert!(!text.contains("made"), "{text}");
    let in_flight = "controller_runtime_webhook_requests_in_flight";
    assert_eq!(lines.get(in_flight).copied(), Some("0"));
    let latency = "controller_runtime_webhook_latency_seconds_count{webhook=\"/admit/p/allow\"}";
    assert_eq!(lines.get(latency).copied(), Some("2"), "{text}");
}
