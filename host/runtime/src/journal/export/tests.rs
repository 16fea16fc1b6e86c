//! Tests that a case contains what the call got, to the byte, and no sensitive value.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

use serde_json::json;
use vmhost_core::trace::{Asked, Drawn, Read, Start};
use vmhost_core::{
    Effect, Gvk, HttpError, HttpRequest, HttpResponse, HttpSent, ListQuery, Next, Object,
    ObjectKey, ObjectName, Page, Patch, PatchType, ReadError, Refusal, Snapshot, Trace,
};
use vmhost_queue::{Decision, Lane};

use super::*;
use crate::journal::case::Verb;
use crate::journal::record::withheld::Configured;
use crate::journal::redact::{PluginSecrets, Redact};
use crate::journal::tag::{Cause, WakeTag};
use crate::observe::metrics::controller::TurnResult;
use crate::turn::finalizer;

/// The base64 of `correct-horse`.
const ENCODED: &str = "Y29ycmVjdC1ob3JzZQ==";
const FINALIZER: &str = "example.com/x";

fn kind(of: &str) -> Gvk {
    match of {
        "Machine" => Gvk::new("example.com", "v1", of),
        _ => Gvk::new("", "v1", of),
    }
}

fn name(of: &str) -> ObjectName {
    ObjectName::new(Some("a"), of)
}

/// An object as the API server spells it: in an order and with numbers of its own.
fn object(of: &str, called: &str, more: &str) -> Snapshot {
    let version = kind(of).api_version();
    let text = format!(
        r#"{{"kind":"{of}","apiVersion":"{version}","metadata":{{"uid":"u-{called}","name":"{called}","namespace":"a","resourceVersion":"7"{more}}},"count":1.0}}"#
    );
    Object::with_text(name(called), &format!("u-{called}"), 7, &text)
}

fn get(of: &str, called: &str, answer: Result<Option<Snapshot>, ReadError>) -> Read {
    Read {
        live: false,
        asked: Asked::Get(kind(of), name(called), answer),
    }
}

fn list(of: &str, change: impl FnOnce(&mut ListQuery), page: Page) -> Read {
    let mut query = ListQuery {
        kind: kind(of),
        namespace: Some("a".into()),
        label_selector: None,
        index: None,
        owner: None,
        limit: 2,
        after: None,
    };
    change(&mut query);
    Read {
        live: false,
        asked: Asked::List(query, Ok(page)),
    }
}

fn page(objects: Vec<Snapshot>, next: Option<&str>) -> Page {
    Page {
        objects,
        next: next.map(str::to_owned),
    }
}

fn patch(body: &str) -> Effect {
    Effect::Patch(Patch {
        key: ObjectKey {
            kind: kind("Machine"),
            name: name("x"),
        },
        subresource: None,
        kind: PatchType::Merge,
        body: body.into(),
        if_version: None,
    })
}

fn trace(reads: Vec<Read>) -> Trace {
    let mut trace = Trace::default();
    trace.start = Some(Arc::new(Start {
        seed: 9,
        drawn: Drawn {
            random: vec![1, 2],
            ..Drawn::default()
        },
    }));
    trace.drawn = Drawn {
        wall: vec![1_769_860_800_000_000_001],
        random: vec![3],
        ..Drawn::default()
    };
    reads.into_iter().for_each(|read| trace.note(read));
    trace
}

fn record(reads: Vec<Read>) -> TurnRecord {
    TurnRecord {
        origin: Arc::new(Origin {
            controller: "vm/machines".into(),
            kind: kind("Machine"),
            field_manager: "vmhost/vm/machines".into(),
            finalizer: Some(FINALIZER.into()),
            generation: 3,
            digest: "abc".into(),
            cluster: BTreeMap::new(),
            settings: Default::default(),
        }),
        key: name("x"),
        began: Instant::now(),
        took: Duration::from_millis(3),
        call: Duration::from_millis(1),
        wait: Duration::ZERO,
        lane: Lane::High,
        tag: WakeTag::from(Cause::Changed),
        attempt: 0,
        last: None,
        deleting: false,
        version: Some(7),
        object: Some(object("Machine", "x", "")),
        previous: None,
        trace: trace(reads),
        act: Act::Returned(Next::AwaitChange),
        effects: vec![patch(r#"{"spec":{"count":2.0}}"#)],
        answers: Vec::new(),
        result: TurnResult::Success,
        decision: Decision::Forget,
        message: None,
        cut: None,
    }
}

/// Makes a case of a plugin with these settings.
fn case_with(record: &TurnRecord, settings: &[(&str, &str)], handles_sensitive: bool) -> Case {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let settings: HashMap<String, String> = settings.iter().map(own).collect();
    let redact = Redact::new(Vec::new());
    let secrecy = Secrecy {
        redact: &redact,
        plugin: PluginSecrets {
            settings: &settings,
            reads_sensitive: handles_sensitive,
        },
    };
    case(record, UNIX_EPOCH, &secrecy).unwrap()
}

fn case_of(record: &TurnRecord) -> Case {
    case_with(record, &[], false)
}

fn parsed(case: &Case, file: &str) -> Value {
    serde_json::from_str(&case.files[file]).unwrap()
}

#[test]
fn a_turn_becomes_the_files_of_a_case() {
    let pod = object("Pod", "p", r#","labels":{"app":"web"}"#);
    let reads = vec![
        get("Pod", "p", Ok(Some(pod.clone()))),
        get("Pod", "q", Ok(None)),
        get("Machine", "x", Ok(Some(object("Machine", "x", "")))),
        list(
            "Pod",
            |query| query.label_selector = Some("app=web".into()),
            page(vec![pod.clone()], None),
        ),
        list("Secret", |_| (), Page::default()),
    ];
    let record = TurnRecord {
        attempt: 2,
        last: Some(Refusal {
            effect: 1,
            code: 409,
            reason: "Conflict".into(),
            message: "no".into(),
        }),
        previous: Some(object("Machine", "x", r#","labels":{}"#)),
        ..record(reads)
    };
    let case = case_of(&record);
    let names: Vec<&str> = case.files.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "cache/000-pod.json",
            "expect.json",
            "object.json",
            "request.json"
        ]
    );
    let text = |object: &Snapshot| format!("{}\n", &object.text);
    assert_eq!(case.files["cache/000-pod.json"], text(&pod));
    let own = record.object.as_ref().unwrap();
    assert_eq!(case.files["object.json"], text(own));
    let previous = record.previous.as_ref().unwrap();
    let request = &case.files["request.json"];
    assert!(request.contains(&previous.text), "{request}");
    let mut request = parsed(&case, "request.json");
    request["previous"].take();
    assert_eq!(
        request,
        json!({
            "controller": "machines", "attempt": 2, "previous": null,
            "last": { "effect": 1, "code": 409, "reason": "Conflict", "message": "no" },
            "now": "2026-01-31T12:00:00.000000001Z",
            "random": {
                "seed": "00000000000000000000000000000009", "start": "0102", "call": "03",
                "wall": { "call": [1_769_860_800_000_000_001_u64] },
            },
        })
    );
    let expect = parsed(&case, "expect.json");
    assert_eq!(expect["effects"][0]["patch"]["key"]["name"], "x");
    assert_eq!(expect["next"], "awaitChange");
    assert_eq!((&*case.plugin, &*case.controller), ("vm", "vm/machines"));
    assert_eq!((&*case.key, &*case.digest), ("a/x", "sha256:abc"));
    assert_eq!(case.time, "1970-01-01T00:00:00.000000Z");
    assert_eq!((case.missing, case.doubts), (Vec::new(), Vec::new()));
    let asked: Vec<_> = case
        .asked
        .iter()
        .map(|ask| (ask.verb, &*ask.kind))
        .collect();
    let (get, list) = (Verb::Get, Verb::List);
    assert_eq!(
        asked,
        [
            (get, "Pod"),
            (get, "Pod"),
            (get, "Machine"),
            (list, "Pod"),
            (list, "Secret")
        ]
    );
}

#[test]
fn a_turn_in_a_member_is_told_its_cluster_again() {
    let at_home = record(Vec::new());
    let home = parsed(&case_of(&at_home), "request.json");
    assert!(home.get("settings").is_none(), "{home}");
    let name = ("vmhost/cluster".to_owned(), "east".to_owned());
    let labels = (
        "vmhost/cluster-labels".to_owned(),
        r#"{"token":"hush-hush"}"#.to_owned(),
    );
    let member = TurnRecord {
        origin: Arc::new(Origin {
            controller: "vm/machines".into(),
            kind: kind("Machine"),
            field_manager: "vmhost/vm/machines".into(),
            finalizer: None,
            generation: 3,
            digest: "abc".into(),
            cluster: BTreeMap::from([name, labels]),
            settings: Configured::default(),
        }),
        ..at_home
    };
    let case = case_with(&member, &[("token", "hush-hush")], false);
    let settings = &parsed(&case, "request.json")["settings"];
    assert_eq!(settings["vmhost/cluster"], "east");
    let labels = settings["vmhost/cluster-labels"].to_string();
    assert!(
        labels.contains("token") && !labels.contains("hush-hush"),
        "{labels}"
    );
}

#[test]
fn reads_that_would_be_answered_otherwise_are_told_in_order() {
    let (old, new) = (
        object("Pod", "p", ""),
        object("Pod", "p", r#","labels":{}"#),
    );
    let live = |mut read: Read| {
        read.live = true;
        read
    };
    let of = |objects: &[&Snapshot], next| page(objects.iter().copied().cloned().collect(), next);
    for (what, reads) in [
        ("live", vec![live(get("Pod", "p", Ok(Some(old.clone()))))]),
        (
            "an error",
            vec![get("Pod", "p", Err(ReadError::NotWatched("Pod.v1".into())))],
        ),
        (
            "two versions",
            vec![
                get("Pod", "p", Ok(Some(old.clone()))),
                list("Pod", |_| (), of(&[&new], None)),
            ],
        ),
        (
            "an object that came later",
            vec![
                list("Pod", |_| (), Page::default()),
                get("Pod", "p", Ok(Some(old.clone()))),
            ],
        ),
        (
            "a page",
            vec![list("Pod", |_| (), of(&[&old], Some("a/p")))],
        ),
        (
            "an index",
            vec![list(
                "Pod",
                |query| {
                    query.index = Some(vmhost_core::IndexMatch {
                        name: "by".into(),
                        value: "x".into(),
                    });
                },
                of(&[&old], None),
            )],
        ),
        (
            "another version of the turn's object",
            vec![get(
                "Machine",
                "x",
                Ok(Some(object("Machine", "x", r#","labels":{}"#))),
            )],
        ),
    ] {
        let count = reads.len();
        let case = case_of(&record(reads));
        let text = &case.files["reads.json"];
        let told: Vec<crate::journal::case::Read> = serde_json::from_str(text).unwrap();
        assert_eq!(told.len(), count, "{what}: {text}");
        assert_eq!((case.asked.len(), case.missing.len()), (count, 0), "{what}");
    }
    let case = case_of(&record(vec![live(get("Pod", "p", Ok(Some(new.clone()))))]));
    assert!(case.files["reads.json"].contains(&new.text));
}

#[test]
fn lists_by_owner_and_in_pages_are_answered_from_the_cache() {
    let owned = r#","ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"u-n"}]"#;
    let objects = ["p", "q", "r"].map(|name| object("Pod", name, owned));
    let [p, q, r] = &objects;
    let of_owner = |query: &mut ListQuery| query.owner = Some("u-n".into());
    let behind = |query: &mut ListQuery| query.after = Some("a/q".into());
    let reads = vec![
        list(
            "Pod",
            of_owner,
            page(vec![p.clone(), q.clone()], Some("a/q")),
        ),
        list("Pod", behind, page(vec![r.clone()], None)),
    ];
    let case = case_of(&record(reads));
    assert!(!case.files.contains_key("reads.json"), "{:?}", case.files);
    assert_eq!(case.files.len(), 3 + objects.len());
}

#[test]
fn what_is_secret_is_in_no_file() {
    let secret = |of: &str| {
        let text = format!(
            r#"{{"apiVersion":"v1","kind":"{of}","metadata":{{"name":"s","namespace":"a","uid":"u","resourceVersion":"1"}},"data":{{"token":"{ENCODED}"}}}}"#
        );
        Object::with_text(name("s"), "u", 1, &text)
    };
    let body = json!({ "spec": { "url": "user:correct-horse@host" } }).to_string();
    let record = TurnRecord {
        effects: vec![patch(&body)],
        act: Act::Returned(Next::Fail("no correct-horse here".into())),
        last: Some(Refusal {
            effect: 0,
            code: 422,
            reason: "Invalid".into(),
            message: "correct-horse".into(),
        }),
        ..record(vec![
            get("Secret", "s", Ok(Some(secret("Secret")))),
            get(
                "Pod",
                "p",
                Err(ReadError::Unavailable("correct-horse".into())),
            ),
        ])
    };
    let case = case_of(&record);
    for (file, text) in &case.files {
        let is_told = text.contains("correct-horse") || text.contains(ENCODED);
        assert!(!is_told, "{file}: {text}");
    }
    assert!(case.files["cache/000-secret.json"].contains("<redacted "));
    assert!(case.files.contains_key("reads.json"));
    let random = &parsed(&case, "request.json")["random"];
    assert_eq!(
        *random,
        json!({ "wall": { "call": [1_769_860_800_000_000_001_u64] } }),
        "what is drawn may be what the secret was made of"
    );
    assert_eq!(case.missing.len(), 2, "{:?}", case.missing);
    assert!(case.missing[0].contains("hashes") && case.missing[1].contains("random"));
}

#[test]
fn settings_and_errors_are_hidden_too() {
    let record = TurnRecord {
        act: Act::Broke("the plugin trapped: hunter22 is wrong".into()),
        effects: Vec::new(),
        ..record(Vec::new())
    };
    let case = case_with(&record, &[("password", "hunter22")], false);
    let error = parsed(&case, "expect.json")["error"].clone();
    let error = error.as_str().unwrap();
    assert!(
        error.starts_with("the plugin trapped: <redacted "),
        "{error}"
    );
    let told = case.missing.last().unwrap();
    assert!(told.contains("settings"), "{told}");
}

#[test]
fn a_plugin_that_may_make_secrets_tells_no_random_numbers() {
    let case = case_with(&record(Vec::new()), &[], true);
    let request = &case.files["request.json"];
    assert!(!request.contains("seed") && !request.contains("0102"));
    assert!(case.missing[0].contains("random numbers are left out"));
}

#[test]
fn a_text_of_the_turn_before_is_withheld_if_it_may_hold_a_secret() {
    let record = TurnRecord {
        last: Some(Refusal {
            effect: 0,
            code: 422,
            reason: "Invalid".into(),
            message: "correct-horse is no count".into(),
        }),
        ..record(Vec::new())
    };
    let last = |handles_sensitive| {
        let case = case_with(&record, &[], handles_sensitive);
        parsed(&case, "request.json")["last"]["message"].clone()
    };
    assert_eq!(last(false), "correct-horse is no count");
    let hidden = last(true);
    assert!(
        hidden.as_str().unwrap().starts_with("<redacted "),
        "{hidden}"
    );
}

fn sent(url: &str, answer: Result<HttpResponse, HttpError>) -> HttpSent {
    HttpSent {
        request: HttpRequest {
            method: "GET".into(),
            url: url.into(),
            ..HttpRequest::default()
        },
        answer,
    }
}

fn response(headers: &[(&str, &str)], body: &[u8]) -> Result<HttpResponse, HttpError> {
    let headers = headers.iter();
    Ok(HttpResponse {
        status: 200,
        headers: headers
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        body: body.to_owned(),
    })
}

#[test]
fn the_answers_to_http_requests_are_in_the_case() {
    let mut record = record(Vec::new());
    let url = "https://a.com/x?page=1";
    let headers = [("etag", "\"1\"")];
    let answer = response(&headers, br#"{"n": 1.0}"#);
    record.trace.sent(sent(url, answer));
    let cut = HttpError::NoAnswer("cut".into());
    record.trace.sent(sent(url, Err(cut)));
    let case = case_of(&record);
    assert_eq!(
        parsed(&case, "http.json"),
        json!([
            {
                "request": { "method": "GET", "url": url },
                "response": { "status": 200, "headers": { "etag": "\"1\"" }, "body": "{\"n\": 1.0}" },
            },
            { "request": { "method": "GET", "url": url }, "error": { "noAnswer": "cut" } },
        ])
    );
    assert_eq!(case.missing, Vec::<String>::new());
}

#[test]
fn sensitive_values_of_http_answers_are_hidden_everywhere() {
    let secrets = [
        "in-the-query",
        "in-a-cookie",
        "in-a-header",
        "in-the-body",
        "in-a-line",
        "in-no-json",
        "in-no-object",
    ];
    let [query, cookie, bearer, token, line, plain, bare] = secrets;
    let used = format!("{bearer} {token} {line} {bare}");
    let mut record = TurnRecord {
        effects: vec![patch(&format!(r#"{{"spec":{{"a":"{used}"}}}}"#))],
        ..record(Vec::new())
    };
    let url = format!("https://a.com/x?access_token={query}&page=1");
    let body = json!({
        "id": "m-1",
        "auth": { "accessToken": token },
        "kubeconfig": format!("user:\n  token: {line}\n"),
    });
    let bearer = format!("Bearer {bearer}");
    let headers = [("set-cookie", cookie), ("authorization", &*bearer)];
    let answer = response(&headers, body.to_string().as_bytes());
    record.trace.sent(sent(&url, answer));
    for body in [plain.to_owned(), format!("{bare:?}")] {
        let other = response(&[], body.as_bytes());
        record.trace.sent(sent("https://a.com/y", other));
    }
    let case = case_of(&record);
    for (file, text) in &case.files {
        for secret in secrets {
            assert!(!text.contains(secret), "{file}: {text}");
        }
    }
    let told = &case.files["http.json"];
    assert!(told.contains("page=1") && told.contains("m-1"), "{told}");
    assert!(case.missing[0].contains("hashes"), "{case:?}");
}

#[test]
fn an_answer_that_a_case_cannot_give_is_told() {
    let mut record = record(Vec::new());
    let twice = [("a", "1"), ("a", "2")];
    for answer in [
        Err(HttpError::Denied("no".into())),
        response(&[], &[0xff, 0xfe]),
        response(&twice, b""),
        response(&[], br#"{"a":1,"a":2}"#),
    ] {
        record.trace.sent(sent("https://a.com/", answer));
    }
    let case = case_of(&record);
    assert!(!case.files.contains_key("http.json"));
    let told = &case.missing;
    assert!(
        told.iter().any(|text| text.contains("4 of the call's 4")),
        "{told:?}"
    );
}

#[test]
fn what_may_differ_is_told() {
    let mut record = record(Vec::new());
    record.trace.earlier = 4;
    record.trace.drawn.cut = true;
    let case = case_of(&record);
    assert!(case.missing[0].contains("more than 16384"), "{case:?}");
    assert!(case.doubts[0].contains("calls before (4)"), "{case:?}");
}

#[test]
fn the_hosts_own_effect_is_none_of_the_policy() {
    let finalizers = format!(r#","deletionTimestamp":"2026","finalizers":["{FINALIZER}"]"#);
    let deleted = object("Machine", "x", &finalizers);
    let own = finalizer::removal(FINALIZER, &kind("Machine"), &deleted).unwrap();
    let record = TurnRecord {
        deleting: true,
        object: Some(deleted),
        act: Act::Returned(Next::Finalized),
        effects: vec![patch("{}"), own],
        ..record(Vec::new())
    };
    let case = case_of(&record);
    let expect = parsed(&case, "expect.json");
    assert_eq!(expect["effects"].as_array().unwrap().len(), 1);
    assert_eq!(expect["next"], "finalized");
    assert_eq!(parsed(&case, "request.json")["deleting"], true);
}

#[test]
fn an_object_that_is_gone_has_a_key() {
    let record = TurnRecord {
        object: None,
        version: None,
        ..record(Vec::new())
    };
    let case = case_of(&record);
    assert!(!case.files.contains_key("object.json"));
    let request = parsed(&case, "request.json");
    assert_eq!(request["key"], json!({ "namespace": "a", "name": "x" }));
}

#[test]
fn a_turn_without_a_call_is_no_case() {
    let redact = Redact::new(Vec::new());
    let secrecy = Secrecy {
        redact: &redact,
        plugin: PluginSecrets {
            settings: &HashMap::new(),
            reads_sensitive: false,
        },
    };
    let why = |record: &TurnRecord| case(record, UNIX_EPOCH, &secrecy).err();
    let mut large = record(Vec::new());
    large.cut();
    assert_eq!(why(&large), Some(NoCase::TooLarge));
    let review = TurnRecord {
        tag: Cause::Review.into(),
        ..large
    };
    assert_eq!(why(&review), Some(NoCase::Review));
    let busy = TurnRecord {
        act: Act::Broke("no instance is free".into()),
        trace: Trace::default(),
        ..record(Vec::new())
    };
    assert_eq!(why(&busy), Some(NoCase::NoCall));
    let added = TurnRecord {
        act: Act::AddedFinalizer,
        ..record(Vec::new())
    };
    assert_eq!(why(&added), Some(NoCase::NoCall));
}
