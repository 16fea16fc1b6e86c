use super::lanes::LANE;
use super::waiting::LAST;
use super::*;
use crate::error::Error;
use crate::fake::{self, Fake, Seen, plain, status};
use http::Method;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use tokio::time::sleep;
use vmhost_core::{EventType, Gvk, ObjectName};

pub(super) fn event(name: &str, version: u64) -> RecordedEvent {
    RecordedEvent {
        regarding: ObjectRef {
            kind: Gvk::new("cloud.waibizi.com", "v1", "VirtualMachine"),
            name: ObjectName::new(Some("n"), name),
            uid: Some("u".into()),
            version: Some(version),
        },
        related: None,
        author: Author::Host,
        kind: EventType::Warning,
        reason: "Refused".into(),
        action: "Apply".into(),
        note: "no room".into(),
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
    let recorder = Recorder::new(
        fake.connection().events(),
        "vm",
        Arc::new(NoEventObserver),
        None,
    );
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
        (&json!("vmhost/vm.vm"), &json!("no room"), &json!("Warning"))
    );

    // The series continues: it is written again after the window. Afterwards the same event is a
    // new one.
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
async fn another_note_is_another_event_up_to_ten() {
    let fake = Fake::new(|_| fake::json(201, "{}"));
    let observer = Arc::new(NoEventObserver);
    let recorder = Recorder::new(fake.connection().events(), "vm", observer, None);
    let with_note = |number: u32| RecordedEvent {
        note: format!("try {number}"),
        ..event("a", 1)
    };
    for number in (1..=12).chain([1]) {
        recorder.record(with_note(number));
    }
    recorder.record(event("b", 1));
    assert!(recorder.flush(MINUTE).await);
    let read = |seen: &Seen| serde_json::from_str::<Value>(&seen.body).unwrap();
    let (new, counts): (Vec<_>, Vec<_>) = fake
        .seen()
        .into_iter()
        .partition(|seen| seen.method == "POST");
    let notes: Vec<_> = new.iter().map(|seen| read(seen)["note"].clone()).collect();
    let mut expected: Vec<_> = (1..=10)
        .map(|number| json!(format!("try {number}")))
        .collect();
    expected.push(json!("no room"));
    assert_eq!(notes, expected);
    let name = |at: usize| {
        read(&new[at])["metadata"]["name"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let counted: Vec<_> = counts
        .iter()
        .map(|seen| {
            (
                seen.path.rsplit('/').next().unwrap().to_owned(),
                series(seen),
            )
        })
        .collect();
    assert_eq!(
        counted,
        [
            (name(9), json!(2)),
            (name(0), json!(2)),
            (name(9), json!(3))
        ],
        "the eleventh, the repetition of the first, and at the flush the twelfth"
    );
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
    let recorder = Recorder::new(
        fake.connection().events(),
        "vm",
        Arc::new(NoEventObserver),
        None,
    );
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
    let recorder = Recorder::new(fake.connection().events(), "vm", counts.clone(), None);
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
    // The server is unreachable: the recorder gives up after all attempts.
    let counts = Arc::new(Counts::default());
    let recorder = Recorder::new(
        Fake::broken().connection().events(),
        "vm",
        counts.clone(),
        None,
    );
    recorder.record(event("a", 1));
    assert!(!recorder.flush(MINUTE).await, "66 s of tries");
    assert!(recorder.flush(MINUTE).await);
    assert_eq!(counts.failed.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_fence_holds_back_is_sent_later() {
    let fake = Fake::new(|_| fake::json(201, "{}"));
    let is_open = Arc::new(AtomicBool::new(false));
    let asked = is_open.clone();
    let fence = move || match asked.load(Ordering::Relaxed) {
        true => Ok(()),
        false => Err(Error::NotSent("not now".into())),
    };
    let events = fake.connection().events().fenced(Arc::new(fence));
    let counts = Arc::new(Counts::default());
    let recorder = Recorder::new(events, "vm", counts.clone(), None);
    recorder.record(event("a", 1));
    assert!(!recorder.flush(MINUTE / 2).await);
    assert_eq!(fake.seen().len(), 0);
    is_open.store(true, Ordering::Relaxed);
    assert!(recorder.flush(MINUTE).await);
    assert_eq!(fake.seen().len(), 1);
    assert_eq!(counts.recorded.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_full_lane_drops_and_counts() {
    let counts = Arc::new(Counts::default());
    let connection = Fake::new(|_| fake::json(201, "{}")).connection();
    let recorder = Recorder::new(connection.events(), "vm", counts.clone(), None);
    for number in 0..LANE + 7 {
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
    let recorder = Recorder::new(
        fake.connection().events(),
        "vm",
        counts.clone(),
        Some(limit),
    );
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

#[tokio::test(start_paused = true)]
async fn a_namespace_that_fails_holds_up_no_other() {
    let fake = Fake::new(|request| match request.uri().path().contains("/bad/") {
        true => status(500, "InternalError", "etcd is away"),
        false => fake::json(201, "{}"),
    });
    let counts = Arc::new(Counts::default());
    let recorder = Recorder::new(fake.connection().events(), "vm", counts.clone(), None);
    let of = |namespace: &str, name: &str| {
        let mut event = event(name, 1);
        event.regarding.name = ObjectName::new(Some(namespace), name);
        event
    };
    for number in 0..5 {
        recorder.record(of("bad", &number.to_string()));
    }
    let start = tokio::time::Instant::now();
    for number in 0..5 {
        recorder.record(of("good", &number.to_string()));
        while counts.recorded.load(Ordering::Relaxed) <= number {
            sleep(Duration::from_millis(1)).await;
        }
    }
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(counts.failed.load(Ordering::Relaxed), 0);
    assert!(recorder.flush(6 * MINUTE).await);
    assert_eq!(counts.failed.load(Ordering::Relaxed), 5);
}

#[tokio::test(start_paused = true)]
async fn the_task_ends_with_the_plugin_and_soon() {
    let fake = Fake::new(|request| match request.uri().path().contains("/bad/") {
        true => fake::hang(),
        false => fake::json(201, "{}"),
    });
    let counts = Arc::new(Counts::default());
    let recorder = Recorder::new(fake.connection().events(), "vm", counts.clone(), None);
    assert!(recorder.flush(MINUTE).await, "nothing is to be written");
    for version in 1..=3 {
        recorder.record(event("a", version));
    }
    let shared = Arc::downgrade(&recorder.0.shared);
    let clone = recorder.clone();
    drop(recorder);
    sleep(2 * LAST).await;
    assert!(shared.upgrade().is_some(), "a clone is left");
    drop(clone);
    sleep(Duration::from_millis(1)).await;
    assert!(shared.upgrade().is_none(), "the task goes on");
    let last = fake.seen().pop().unwrap();
    assert_eq!((last.method.as_str(), series(&last)), ("PATCH", json!(3)));

    // A request without an answer is given up, and counted.
    let recorder = Recorder::new(fake.connection().events(), "vm", counts.clone(), None);
    for name in ["b", "c"] {
        let mut event = event(name, 1);
        event.regarding.name = ObjectName::new(Some("bad"), name);
        recorder.record(event);
    }
    let shared = Arc::downgrade(&recorder.0.shared);
    sleep(Duration::from_millis(1)).await;
    drop(recorder);
    sleep(LAST + Duration::from_millis(1)).await;
    assert!(shared.upgrade().is_none(), "the task goes on");
    assert!(counts.dropped.load(Ordering::Relaxed) >= 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_abandoned_writes_nothing_more() {
    // The first request has no answer.
    let fake = Fake::script([]);
    let counts = Arc::new(Counts::default());
    let recorder = Recorder::new(fake.connection().events(), "vm", counts.clone(), None);
    recorder.record(event("a", 1));
    recorder.record(event("b", 1));
    sleep(Duration::from_millis(1)).await;
    assert_eq!(fake.seen().len(), 1);
    recorder.abandon();
    recorder.record(event("c", 1));
    sleep(MINUTE).await;
    assert_eq!(fake.seen().len(), 1);
    assert_eq!(counts.dropped.load(Ordering::Relaxed), 2, "b and c");
}
