//! Batches, and what becomes of spans that nobody takes.

use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::span::Kind;

#[derive(Default)]
struct Counts(Mutex<Vec<(SpanResult, usize)>>);

impl SpanObserver for Counts {
    fn spans(&self, result: SpanResult, count: usize) {
        if count > 0 {
            self.0.lock().push((result, count));
        }
    }
}

fn settings(endpoint: &str, more: &[(&str, &str)]) -> Settings {
    let read = Settings::read(|name| {
        let found = more.iter().find(|(key, _)| *key == name);
        match (name, found) {
            ("OTEL_EXPORTER_OTLP_ENDPOINT", _) => Some(endpoint.to_owned()),
            (_, found) => found.map(|(_, value)| (*value).to_owned()),
        }
    });
    read.unwrap().unwrap()
}

fn spans(tracer: &Tracer, count: usize) -> Vec<Span> {
    let now = Instant::now();
    let one = |_| Span {
        context: tracer.trace().unwrap(),
        parent: None,
        state: None,
        name: "turn".into(),
        kind: Kind::Internal,
        began: now,
        ended: now,
        attributes: Vec::new(),
        error: None,
    };
    (0..count).map(one).collect()
}

/// Answers each request with this status, and tells the head of each.
async fn collector(status: &'static str) -> (String, mpsc::Receiver<String>) {
    answering(move |_| (status, Vec::new())).await
}

/// Answers each request by its number, with a status and further headers, and a body.
async fn answering(
    answer: impl Fn(usize) -> (&'static str, Vec<u8>) + Clone + Send + 'static,
) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (seen, heads) = mpsc::channel(64);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (seen, answer) = (seen.clone(), answer.clone());
            tokio::spawn(async move {
                let (mut text, mut number) = (Vec::new(), 0);
                loop {
                    let mut part = [0; 4096];
                    let Ok(count @ 1..) = stream.read(&mut part).await else {
                        return;
                    };
                    text.extend_from_slice(&part[..count]);
                    let lossy = String::from_utf8_lossy(&text).into_owned();
                    let Some((head, _)) = lossy.split_once("\r\n\r\n") else {
                        continue;
                    };
                    let length: Option<usize> = head.lines().find_map(|line| {
                        let value = line.to_lowercase();
                        value.strip_prefix("content-length: ")?.parse().ok()
                    });
                    if text.len() < head.len() + 4 + length.unwrap_or(0) {
                        continue;
                    }
                    let (status, body) = answer(number);
                    let length = body.len();
                    let head_of = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n");
                    let whole = [head_of.as_bytes(), &body].concat();
                    stream.write_all(&whole).await.unwrap();
                    number += 1;
                    seen.send(head.to_owned()).await.unwrap();
                    text.clear();
                }
            });
        }
    });
    (format!("http://{address}"), heads)
}

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_flush_sends_all_in_batches() {
    let (endpoint, mut heads) = collector("200 OK").await;
    let counts = Arc::new(Counts::default());
    let set = [
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=secret"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
    ];
    let tracer = Tracer::start(settings(&endpoint, &set), counts.clone()).unwrap();
    tracer.export(spans(&tracer, 5));
    tracer.flush(LONG).await;
    let sizes: Vec<usize> = counts.0.lock().iter().map(|(_, count)| *count).collect();
    assert_eq!(sizes, [2, 2, 1]);
    let head = heads.recv().await.unwrap();
    assert!(head.starts_with("POST /v1/traces HTTP/1.1"), "{head}");
    for line in [
        "content-type: application/x-protobuf",
        "content-encoding: gzip",
        "x-key: secret",
    ] {
        assert!(head.contains(line), "{head}");
    }
}

#[tokio::test]
async fn a_full_queue_drops_and_counts() {
    let (endpoint, _heads) = collector("200 OK").await;
    let counts = Arc::new(Counts::default());
    let set = [("OTEL_BSP_MAX_QUEUE_SIZE", "3")];
    let tracer = Tracer::start(settings(&endpoint, &set), counts.clone()).unwrap();
    // One runtime thread: the task does not run before the flush.
    tracer.export(spans(&tracer, 2));
    tracer.export(spans(&tracer, 2));
    assert_eq!(*counts.0.lock(), [(SpanResult::Dropped, 2)]);
    tracer.flush(LONG).await;
    assert_eq!(counts.0.lock()[1], (SpanResult::Exported, 2));
}

#[tokio::test]
async fn what_the_collector_refuses_is_not_sent_again() {
    let (endpoint, mut heads) = collector("400 Bad Request").await;
    let counts = Arc::new(Counts::default());
    let tracer = Tracer::start(settings(&endpoint, &[]), counts.clone()).unwrap();
    tracer.export(spans(&tracer, 1));
    tracer.flush(LONG).await;
    assert_eq!(*counts.0.lock(), [(SpanResult::Failed, 1)]);
    assert!(heads.recv().await.is_some() && heads.try_recv().is_err());
}

#[tokio::test]
async fn what_the_collector_takes_in_part_is_counted_apart() {
    // A partial success: 2 spans are rejected.
    let (endpoint, mut heads) = answering(|_| ("200 OK", vec![0x0a, 2, 1 << 3, 2])).await;
    let counts = Arc::new(Counts::default());
    let tracer = Tracer::start(settings(&endpoint, &[]), counts.clone()).unwrap();
    tracer.export(spans(&tracer, 3));
    tracer.flush(LONG).await;
    let expected = [(SpanResult::Exported, 1), (SpanResult::Failed, 2)];
    assert_eq!(*counts.0.lock(), expected);
    assert!(heads.recv().await.is_some() && heads.try_recv().is_err());
}

#[tokio::test]
async fn a_collector_that_is_busy_is_asked_again() {
    let busy = |number| match number {
        0 => ("503 Service Unavailable\r\nretry-after: 0", Vec::new()),
        _ => ("200 OK", Vec::new()),
    };
    let (endpoint, mut heads) = answering(busy).await;
    let counts = Arc::new(Counts::default());
    let tracer = Tracer::start(settings(&endpoint, &[]), counts.clone()).unwrap();
    tracer.export(spans(&tracer, 1));
    tracer.flush(LONG).await;
    assert_eq!(*counts.0.lock(), [(SpanResult::Exported, 1)]);
    assert!(heads.recv().await.is_some() && heads.recv().await.is_some());
}

#[tokio::test]
async fn a_pause_beyond_the_end_of_a_batch_is_not_waited_for() {
    let later = |_| ("429 Too Many Requests\r\nretry-after: 25", Vec::new());
    let (endpoint, mut heads) = answering(later).await;
    let counts = Arc::new(Counts::default());
    let set = [("OTEL_BSP_EXPORT_TIMEOUT", "20000")];
    let tracer = Tracer::start(settings(&endpoint, &set), counts.clone()).unwrap();
    tracer.export(spans(&tracer, 1));
    tracer.flush(LONG).await;
    assert_eq!(*counts.0.lock(), [(SpanResult::Failed, 1)]);
    assert!(heads.recv().await.is_some() && heads.try_recv().is_err());
}

#[tokio::test]
async fn a_trace_goes_on_from_another_process() {
    let (endpoint, _heads) = collector("200 OK").await;
    let start = |set: &[(&str, &str)]| {
        let counts = Arc::new(Counts::default());
        Tracer::start(settings(&endpoint, set), counts).unwrap()
    };
    let above = start(&[]).trace().unwrap();
    let parent = Parent::parse(&above.traceparent());
    let parent = parent.map(|parent| parent.with_state("a=1"));
    let below = start(&[]).trace_below(parent.clone()).unwrap();
    let of = (below.root.trace, below.above);
    assert_eq!(of, (above.trace, Some(above.span)));
    assert_eq!(below.state, TraceState::parse("a=1"));
    assert_ne!(below.root.span, above.span);
    let alone = start(&[("OTEL_PROPAGATORS", "none")]);
    let other = alone.trace_below(parent.clone()).unwrap();
    assert!(other.root.trace != above.trace && other.above.is_none() && other.state.is_none());
    // Without a trace elsewhere there is none here, and with one there is.
    let follows = start(&[("OTEL_TRACES_SAMPLER", "parentbased_always_off")]);
    assert!(follows.trace().is_none() && follows.trace_below(parent).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_batch_ends_with_its_time_though_a_request_may_take_longer() {
    // The system accepts connections, and nothing reads from them.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    let counts = Arc::new(Counts::default());
    let set = [
        ("OTEL_BSP_EXPORT_TIMEOUT", "3000"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "40000"),
    ];
    let tracer = Tracer::start(settings(&endpoint, &set), counts.clone()).unwrap();
    tracer.export(spans(&tracer, 1));
    let began = tokio::time::Instant::now();
    tracer.flush(LONG).await;
    assert_eq!(*counts.0.lock(), [(SpanResult::Failed, 1)]);
    // The clock is paused: nothing but timers moves it.
    assert!(began.elapsed() < Duration::from_secs(4));
}
