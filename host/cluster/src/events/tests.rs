use super::*;
use crate::fake::{self, Fake, Seen, plain, status};
use serde_json::json;
use std::sync::atomic::{AtomicU32, Ordering};

pub(super) fn event(name: &str, version: u64) -> RecordedEvent {
    RecordedEvent {
        plugin: "vm".into(),
        regarding: ObjectRef {
            kind: Gvk::new("cloud.waibizi.com", "v1", "VirtualMachine"),
            name: ObjectName::new(Some("n"), name),
            uid: Some("u".into()),
            version: Some(version),
        },
        related: None,
        kind: EventType::Warning,
        reason: "Refused".into(),
        action: "Apply".into(),
        note: format!("try {version}"),
        reporting_controller: "vmhost/vm/vm".into(),
    }
}

fn series(seen: &Seen) -> Value {
    serde_json::from_str::<Value>(&seen.body).unwrap()["series"]["count"].clone()
}

#[derive(Default)]
struct Counts {
    dropped: AtomicU32,
    failed: AtomicU32,
    recorded: AtomicU32,
    limited: AtomicU32,
}
impl EventObserver for Counts {
    fn dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
    fn limited(&self) {
        self.limited.fetch_add(1, Ordering::Relaxed);
    }
    fn recorded(&self) {
        self.recorded.fetch_add(1, Ordering::Relaxed);
    }
    fn failed(&self, _reason: &str) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }
}

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn repetitions_become_a_series() {
    let fake = Fake::new(|_| fake::json(201, "{}"));
    let recorder = Recorder::start(fake.connection(), Arc::new(NoEventObserver), None);
    for version in 1..=5 {
        recorder.record(event("a", version));
    }
    recorder.record(event("b", 1));
    assert!(recorder.flush(MINUTE).await);
    let seen = fake.seen();
    let methods: Vec<_> = seen.iter().map(|seen| seen.method.as_str()).collect();
    assert_eq!(
        methods,
        ["POST", "PATCH", "POST", "PATCH"],
        "a, its second, b, and a's count at the flush"
    );
    assert_eq!((series(&seen[1]), series(&seen[3])), (json!(2), json!(5)));
    assert_eq!(seen[1].content_type, "application/merge-patch+json");
    let first: Value = serde_json::from_str(&seen[0].body).unwrap();
    assert_eq!(
        seen[1].path,
        format!(
            "/apis/events.k8s.io/v1/namespaces/n/events/{}",
            first["metadata"]["name"].as_str().unwrap()
        )
    );
    assert_eq!(first["regarding"]["resourceVersion"], "1");
    assert_eq!(
        (
            &first["reportingController"],
            &first["note"],
            &first["type"]
        ),
        (&json!("vmhost/vm.vm"), &json!("try 1"), &json!("Warning"))
    );

    // Goes on: written again when the window is over. Afterwards the same event is a new one.
    recorder.record(event("a", 6));
    sleep(8 * MINUTE).await;
    recorder.record(event("a", 7));
    assert!(recorder.flush(MINUTE).await);
    let seen = fake.seen();
    assert_eq!(
        (seen[4].method.as_str(), series(&seen[4])),
        ("PATCH", json!(6))
    );
    assert_eq!((seen[5].method.as_str(), seen.len()), ("POST", 6));
}

#[tokio::test(start_paused = true)]
async fn a_lost_series_begins_anew() {
    let fake = Fake::new(|request| {
        if request.method() == Method::PATCH {
            status(404, "NotFound", "no")
        } else {
            fake::json(201, "{}")
        }
    });
    let recorder = Recorder::start(fake.connection(), Arc::new(NoEventObserver), None);
    recorder.record(event("a", 1));
    recorder.record(event("a", 2));
    assert!(recorder.flush(MINUTE).await);
    let methods: Vec<_> = fake.seen().into_iter().map(|seen| seen.method).collect();
    assert_eq!(methods, ["POST", "PATCH", "POST"]);
}

#[tokio::test(start_paused = true)]
async fn what_may_pass_is_tried_again_and_what_is_refused_is_given_up() {
    let answers = [
        plain(502, "x"),
        status(429, "TooManyRequests", "x"),
        fake::json(201, "{}"),
        status(422, "Invalid", "x"),
        status(404, "NotFound", "no namespace"),
    ];
    let fake = Fake::script(answers);
    let counts = Arc::new(Counts::default());
    let recorder = Recorder::start(fake.connection(), counts.clone(), None);
    for name in ["a", "b", "c"] {
        recorder.record(event(name, 1));
    }
    assert!(recorder.flush(MINUTE).await);
    assert_eq!(fake.seen().len(), 5);
    assert_eq!(
        (
            counts.recorded.load(Ordering::Relaxed),
            counts.failed.load(Ordering::Relaxed)
        ),
        (1, 1)
    );
    // An unreachable server: given up after all tries.
    let counts = Arc::new(Counts::default());
    let recorder = Recorder::start(Fake::broken().connection(), counts.clone(), None);
    recorder.record(event("a", 1));
    assert!(!recorder.flush(MINUTE).await, "63 s of tries");
    assert!(recorder.flush(MINUTE).await);
    assert_eq!(counts.failed.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_drops_and_counts() {
    let counts = Arc::new(Counts::default());
    let recorder = Recorder::start(
        Fake::new(|_| fake::json(201, "{}")).connection(),
        counts.clone(),
        None,
    );
    for number in 0..QUEUE + 7 {
        recorder.record(event(&format!("a{number}"), 1));
    }
    assert_eq!(counts.dropped.load(Ordering::Relaxed), 7);
}

#[tokio::test(start_paused = true)]
async fn normal_events_are_limited_and_their_series_go_on() {
    let fake = Fake::new(|_| fake::json(201, "{}"));
    let counts = Arc::new(Counts::default());
    let limit = EventLimit {
        per_second: 10,
        burst: 2,
    };
    let recorder = Recorder::start(fake.connection(), counts.clone(), Some(limit));
    for name in ["a", "b", "a", "c", "d", "a"] {
        recorder.record(RecordedEvent {
            kind: EventType::Normal,
            ..event(name, 1)
        });
    }
    recorder.record(event("e", 1));
    assert!(recorder.flush(MINUTE).await);
    let methods: Vec<_> = fake.seen().into_iter().map(|seen| seen.method).collect();
    assert_eq!(
        methods,
        ["POST", "POST", "PATCH", "POST", "PATCH"],
        "a, b, a's second, the Warning, and a's count at the flush"
    );
    assert_eq!(counts.limited.load(Ordering::Relaxed), 2);
    assert_eq!(counts.dropped.load(Ordering::Relaxed), 0);
}
