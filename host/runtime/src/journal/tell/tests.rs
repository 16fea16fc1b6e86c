//! Tests that records become the right documents, without a sensitive value.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use vmhost_core::{
    Effect, Event, EventType, Gvk, Next, Object, ObjectKey, Patch, PatchType, Trace,
};
use vmhost_queue::{Lane, Tag};

use super::*;
use crate::journal::record::withheld::Configured;
use crate::journal::record::{Answer, AnswerEnd};
use crate::journal::tag::Cause;
use crate::journal::warnings::warnings;
use crate::observe::metrics::controller::TurnResult;

const LABEL: &str = "vm/virtualmachines";

/// Times in seconds from a start.
struct Clock(Instant);

impl Clock {
    fn new() -> Self {
        Self(Instant::now())
    }

    fn at(&self, second: u64) -> Instant {
        self.0 + Duration::from_secs(second)
    }

    fn time(&self) -> impl Fn(Instant) -> SystemTime {
        let start = self.0;
        move |at| SystemTime::UNIX_EPOCH + at.duration_since(start)
    }
}

fn kind(name: &str) -> Gvk {
    match name {
        "Machine" => Gvk::new("example.com", "v1", name),
        _ => Gvk::new("", "v1", name),
    }
}

fn name(name: &str) -> ObjectName {
    ObjectName::new(Some("default"), name)
}

fn key(of: &str, called: &str) -> ObjectKey {
    ObjectKey {
        kind: kind(of),
        name: name(called),
    }
}

/// A snapshot with these fields besides its names.
fn snapshot(of: &str, called: &str, version: u64, fields: Value) -> Snapshot {
    let mut object = json!({
        "apiVersion": kind(of).api_version(), "kind": of,
        "metadata": {
            "namespace": "default", "name": called, "resourceVersion": version.to_string(),
        },
    });
    for (name, value) in fields.as_object().unwrap() {
        object[name] = value.clone();
    }
    Object::with_text(name(called), "u", version, &object.to_string())
}

fn machine(version: u64, replicas: u32) -> Snapshot {
    let fields = json!({ "spec": { "replicas": replicas } });
    snapshot("Machine", "x", version, fields)
}

fn origin() -> Arc<Origin> {
    Arc::new(Origin {
        controller: LABEL.into(),
        kind: kind("Machine"),
        field_manager: format!("vmhost/{LABEL}"),
        generation: 3,
        finalizer: None,
        digest: "abc".into(),
        cluster: BTreeMap::new(),
        settings: Default::default(),
    })
}

fn record(began: Instant, tag: WakeTag) -> TurnRecord {
    TurnRecord {
        origin: origin(),
        key: name("x"),
        began,
        took: Duration::from_millis(3),
        call: Duration::from_micros(500),
        wait: Duration::from_secs(1),
        lane: Lane::High,
        tag,
        attempt: 0,
        last: None,
        deleting: false,
        version: Some(7),
        object: Some(machine(7, 3)),
        previous: None,
        trace: Trace::default(),
        act: Act::Returned(Next::AwaitChange),
        effects: Vec::new(),
        answers: Vec::new(),
        result: TurnResult::Success,
        decision: Decision::Forget,
        message: None,
        cut: None,
    }
}

fn quiet_record(began: Instant, tag: WakeTag, act: Act) -> Quiet {
    Quiet {
        origin: origin(),
        key: name("x"),
        began,
        since: began,
        count: 1,
        took: Duration::ZERO,
        call: Duration::ZERO,
        wait: Duration::ZERO,
        tag,
        version: Some(7),
        act,
        decision: Decision::Forget,
    }
}

fn change(at: Instant, old: Option<Snapshot>, new: Option<Snapshot>) -> Wakened {
    Wakened {
        number: 0,
        at,
        controller: LABEL.into(),
        key: name("x"),
        kind: kind("Machine").into(),
        old,
        new,
        managed: None,
        own: false,
    }
}

fn patch(body: Value) -> Effect {
    Effect::Patch(Patch {
        key: key("Machine", "x"),
        subresource: Some("status".into()),
        kind: PatchType::Merge,
        body: body.to_string(),
        if_version: None,
    })
}

fn event(note: &str) -> Effect {
    Effect::Event(Event {
        kind: EventType::Normal,
        reason: "R".into(),
        action: "A".into(),
        note: note.into(),
        related: None,
    })
}

fn answer(effect: u32, before: Option<u64>, end: AnswerEnd) -> Answer {
    Answer {
        effect,
        object: key("Machine", "x"),
        before,
        end,
    }
}

/// Describes a turn of a plugin without settings.
fn told(clock: &Clock, record: &TurnRecord, wakened: &[Wakened]) -> Turn {
    let settings = HashMap::new();
    let plugin = PluginSecrets {
        settings: &settings,
        reads_sensitive: false,
    };
    turn(
        record,
        wakened,
        clock.time(),
        &Redact::new(Vec::new()),
        plugin,
    )
}

fn story_of(journal: &Journal) -> Story {
    let settings = HashMap::new();
    let plugin = PluginSecrets {
        settings: &settings,
        reads_sensitive: true,
    };
    story(
        journal,
        &Redact::new(Vec::new()),
        LABEL,
        &name("x"),
        plugin,
        warnings,
    )
}

/// The verb, object, end, version, code and first field of each effect.
fn ends(turn: &Turn) -> Vec<String> {
    let effects = turn.effects.iter();
    effects
        .map(|effect| {
            let field = effect.fields.first();
            let field = field.map_or(String::new(), |field| format!(" {}", field.path));
            format!(
                "{} {}: {} {:?} {:?}{field}",
                effect.verb, effect.object, effect.end, effect.version, effect.code
            )
        })
        .collect()
}

mod causes;
mod effects;

#[test]
fn a_turn_is_told_from_what_woke_it_to_what_comes_next() {
    let clock = Clock::new();
    let mut change = change(clock.at(1), Some(machine(6, 2)), Some(machine(7, 3)));
    change.number = 9;
    change.managed = Some(r#"[{"manager":"kubectl-edit","time":"2026-01-31T12:00:00Z"}]"#.into());
    let tag = WakeTag::logged(Cause::Changed, 9).join(Cause::Swap.into());
    let mut record = record(clock.at(2), tag);
    record.act = Act::Returned(Next::RequeueAfterMs(5000));
    record.decision = Decision::After(Duration::from_secs(5));
    record.result = TurnResult::RequeueAfter;
    record.effects = vec![patch(json!({ "status": { "ready": true } }))];
    record.answers = vec![answer(0, Some(7), AnswerEnd::Written(8))];
    let turn = told(&clock, &record, &[change]);
    assert_eq!(
        (&*turn.time, &*turn.controller, &*turn.kind, &*turn.key),
        (
            "1970-01-01T00:00:02.000000Z",
            LABEL,
            "Machine.v1.example.com",
            "default/x"
        )
    );
    assert_eq!((turn.generation, &*turn.digest), (3, "sha256:abc"));
    assert_eq!(
        (turn.wait_ms, turn.call_ms, turn.took_ms),
        (1000.0, 0.5, 3.0)
    );
    assert_eq!(
        (&*turn.lane, turn.version, turn.cut),
        ("high", Some(7), false)
    );
    assert_eq!(turn.object.as_ref().unwrap()["spec"]["replicas"], 3);
    assert_eq!(turn.next, Some(json!({ "requeueAfterMs": 5000 })));
    assert_eq!(
        (&*turn.act, &*turn.result, &*turn.decision),
        ("returned", "requeue_after", "again in 5s")
    );
    let [changed, swap] = &turn.causes[..] else {
        unreachable!("{:?}", turn.causes)
    };
    assert_eq!((turn.cause_count, &*swap.cause), (2, "swap"));
    assert_eq!((&*changed.cause, changed.version), ("changed", Some(7)));
    assert_eq!(changed.object.as_deref(), Some("Machine default/x"));
    assert_eq!(changed.manager.as_deref(), Some("kubectl-edit"));
    assert_eq!(changed.time.as_deref(), Some("1970-01-01T00:00:01.000000Z"));
    let [field] = &changed.fields[..] else {
        unreachable!("{:?}", changed.fields)
    };
    let values = (field.old.clone(), field.new.clone());
    assert_eq!(
        (&*field.path, values),
        ("spec.replicas", (Some(2.into()), Some(3.into())))
    );
    assert_eq!(
        ends(&turn),
        ["patch Machine default/x/status: written Some(8) None status.ready"]
    );
    assert_eq!(
        turn.effects[0].effect["patch"]["body"]["status"]["ready"],
        true
    );
}

#[test]
fn settings_are_told_as_a_digest() {
    let clock = Clock::new();
    let mut record = record(clock.at(1), WakeTag::default());
    assert_eq!(told(&clock, &record, &[]).settings, None);
    let settings = HashMap::from([("password".to_owned(), "hunter22".to_owned())]);
    let mut origin = origin();
    Arc::get_mut(&mut origin).unwrap().settings = Configured(settings.into());
    record.origin = origin;
    let turn = told(&clock, &record, &[]);
    assert_eq!(turn.settings.as_ref().unwrap().len(), 32);
    let shown = format!("{turn:?} {record:?}");
    assert!(!shown.contains("hunter22"), "{shown}");
}

#[test]
fn a_story_has_turns_and_quiet_turns_in_order_and_the_changes_that_none_followed() {
    let clock = Clock::new();
    let journal = Journal::new(1 << 20, 1);
    let numbers: Vec<u32> = (7..10)
        .map(|version| {
            let (old, new) = (machine(version - 1, 1), machine(version, 2));
            journal
                .wakes
                .add(change(clock.at(version), Some(old), Some(new)))
        })
        .collect();
    let mut wrote = record(clock.at(20), WakeTag::logged(Cause::Changed, numbers[0]));
    wrote.effects = vec![patch(json!({ "status": {} }))];
    wrote.answers = vec![answer(0, Some(7), AnswerEnd::Written(8))];
    journal.turn(wrote);
    let own = WakeTag::logged(Cause::OwnWrite, numbers[1]);
    let returned = Act::Returned(Next::AwaitChange);
    let first = quiet_record(clock.at(10), Cause::Timer.into(), returned.clone());
    let origin = first.origin.clone();
    journal.quiet(first);
    journal.quiet(Quiet {
        origin,
        ..quiet_record(clock.at(30), own, returned)
    });
    let told = story_of(&journal);
    let turns = told.turns.iter();
    let turns: Vec<_> = turns
        .map(|turn| (turn.quiet, &*turn.causes[0].cause))
        .collect();
    assert_eq!(turns, [(0, "changed"), (2, "own-write")]);
    assert!(told.turns[1].since.as_ref().unwrap() < &told.turns[0].time);
    let pending: Vec<_> = told.pending.iter().map(|woken| woken.version).collect();
    assert_eq!(pending, [Some(9)]);
    assert_eq!((told.dropped, told.warnings.len()), (0, 0));
    let other = name("other");
    let settings = HashMap::new();
    let plugin = PluginSecrets {
        settings: &settings,
        reads_sensitive: true,
    };
    let redact = Redact::new(Vec::new());
    let of_other = story(&journal, &redact, LABEL, &other, plugin, warnings);
    assert_eq!(of_other, Story::default());
}

#[test]
fn a_quiet_turn_says_what_it_came_to() {
    let clock = Clock::new();
    let settings = HashMap::new();
    let plugin = PluginSecrets {
        settings: &settings,
        reads_sensitive: true,
    };
    let redact = Redact::new(Vec::new());
    let after = Quiet {
        decision: Decision::After(Duration::from_secs(1)),
        count: 4,
        ..quiet_record(
            clock.at(1),
            Cause::Timer.into(),
            Act::Returned(Next::RequeueAfterMs(1000)),
        )
    };
    let turn = quiet(&after, &[], clock.time(), &redact, plugin);
    assert_eq!((turn.quiet, &*turn.result), (4, "requeue_after"));
    assert_eq!(turn.since.as_deref(), Some("1970-01-01T00:00:01.000000Z"));
    let paused = Act::Paused(Duration::from_secs(2));
    let paused = quiet_record(clock.at(1), Cause::Timer.into(), paused);
    let turn = quiet(&paused, &[], clock.time(), &redact, plugin);
    assert_eq!((&*turn.result, turn.next), ("requeue", None));
    assert!(turn.act.starts_with("paused for 2s"), "{}", turn.act);
}

#[test]
fn no_secret_leaves_the_journal() {
    let clock = Clock::new();
    let journal = Journal::new(1 << 20, 1);
    // The base64 of `m4rker-s3cret`.
    let secret = |version| {
        let fields = json!({ "data": { "password": "bTRya2VyLXMzY3JldA==" } });
        snapshot("Secret", "s", version, fields)
    };
    let woken = Wakened {
        kind: kind("Secret").into(),
        ..change(clock.at(1), None, Some(secret(2)))
    };
    let number = journal.wakes.add(woken.clone());
    let mut record = record(clock.at(2), WakeTag::logged(Cause::Changed, number));
    let asked = Asked::Get(kind("Secret"), name("s"), Ok(Some(secret(2))));
    record.trace.note(Asking { live: false, asked });
    record.effects = vec![
        patch(json!({ "status": { "password": "m4rker-s3cret" } })),
        Effect::Patch(Patch {
            key: key("Secret", "s"),
            subresource: None,
            kind: PatchType::Json,
            body:
                json!([{ "op": "replace", "path": "/data/password", "value": "bmV3LW00cmtlcg==" }])
                    .to_string(),
            if_version: None,
        }),
        event("it is m4rker-s3cret"),
    ];
    let refused = AnswerEnd::Refused(422, "m4rker-s3cret is too short".into());
    record.answers = vec![answer(0, Some(7), refused)];
    record.act = Act::Returned(Next::Retry("not m4rker-s3cret".into()));
    record.message = Some("reconcile failed: m4rker-s3cret".into());
    journal.turn(record);
    // A later turn is woken by the copy, and the secret is not in its record.
    let copy = snapshot(
        "Machine",
        "x",
        9,
        json!({ "status": { "password": "m4rker-s3cret" } }),
    );
    journal
        .wakes
        .add(change(clock.at(3), Some(machine(8, 1)), Some(copy)));
    let text = serde_json::to_string(&story_of(&journal)).unwrap();
    for part in ["m4rker", "s3cret", "bTRya2VyLXMz", "bmV3LW00cmtlcg"] {
        assert!(!text.contains(part), "{part} in {text}");
    }
    for left in [
        "reconcile failed: <redacted ",
        "data.password",
        "status.password",
    ] {
        assert!(text.contains(left), "{left} in {text}");
    }
}
