//! Tests of what a turn read and did.

use vmhost_core::{Apply, Delete, ListQuery, Page};

use super::*;

#[test]
fn each_effect_is_told_with_its_end() {
    let clock = Clock::new();
    let mut record = record(clock.at(1), WakeTag::default());
    let delete = || {
        Effect::Delete(Delete {
            key: key("Machine", "x"),
            uid: None,
            if_version: None,
            propagation: None,
        })
    };
    let apply = Effect::Apply(Apply {
        object: json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "namespace": "default", "name": "p" },
        })
        .to_string(),
        subresource: None,
        force: true,
        create_if_absent: true,
        if_version: None,
    });
    let status = |ready: bool| patch(json!({ "status": { "ready": ready } }));
    record.effects = vec![
        status(true),
        event("before"),
        status(true),
        delete(),
        apply.clone(),
        status(false),
        delete(),
        event("after"),
        apply,
    ];
    record.answers = vec![
        answer(0, None, AnswerEnd::Written(8)),
        answer(2, Some(8), AnswerEnd::Written(8)),
        answer(3, None, AnswerEnd::Refused(404, "no such object".into())),
        Answer {
            object: key("Pod", "p"),
            ..answer(4, None, AnswerEnd::Repeated)
        },
        answer(5, Some(8), AnswerEnd::Refused(409, "too late".into())),
    ];
    let turn = told(&clock, &record, &[]);
    let machine = "Machine default/x";
    assert_eq!(
        ends(&turn),
        [
            format!("patch {machine}/status: written Some(8) None status.ready"),
            format!("event {machine}: sent None None"),
            format!("patch {machine}/status: unchanged Some(8) None"),
            format!("delete {machine}: gone None None"),
            "apply Pod default/p: repeated None None".into(),
            format!("patch {machine}/status: refused None Some(409) status.ready"),
            format!("delete {machine}: not sent None None"),
            format!("event {machine}: not sent None None"),
            "apply Pod default/p: not sent None None".into(),
        ]
    );
    assert_eq!(turn.effects[5].message.as_deref(), Some("too late"));
    let field = &turn.effects[5].fields[0];
    let values = (field.old.clone(), field.new.clone());
    assert_eq!(
        values,
        (Some(true.into()), Some(false.into())),
        "as the first effect left it"
    );
    // The host refuses before it writes anything.
    record.answers.clear();
    let turn = told(&clock, &record, &[]);
    assert!(turn.effects.iter().all(|effect| effect.end == "not sent"));
    record.effects = vec![event("alone")];
    assert_eq!(told(&clock, &record, &[]).effects[0].end, "sent");
}

#[test]
fn a_turn_that_was_too_large_keeps_what_became_of_its_effects() {
    let clock = Clock::new();
    let mut record = record(clock.at(1), WakeTag::default());
    record.effects = vec![patch(json!({}))];
    record.answers = vec![answer(
        0,
        Some(7),
        AnswerEnd::Refused(422, "invalid".into()),
    )];
    record.cut();
    let turn = told(&clock, &record, &[]);
    assert!(turn.cut && turn.object.is_none());
    let digests = turn.digests.as_ref().unwrap();
    assert_eq!((digests.read_count, digests.effect_count), (0, 1));
    assert!(digests.object.is_some() && digests.previous.is_none());
    assert_eq!(
        ends(&turn),
        ["other Machine default/x: refused None Some(422)"]
    );
    assert_eq!(turn.effects[0].message.as_deref(), Some("invalid"));
}

#[test]
fn reads_are_told_with_their_answers() {
    let clock = Clock::new();
    let mut record = record(clock.at(1), WakeTag::default());
    let get = |answer| Asked::Get(kind("Pod"), name("p"), answer);
    let query = ListQuery {
        kind: kind("Pod"),
        namespace: Some("default".into()),
        label_selector: None,
        index: None,
        owner: None,
        limit: 10,
        after: None,
    };
    let page = Page {
        objects: vec![snapshot("Pod", "p", 1, json!({})), machine(1, 1)],
        next: None,
    };
    for asked in [
        get(Ok(Some(snapshot("Pod", "p", 1, json!({}))))),
        get(Ok(None)),
        get(Err(ReadError::TooLarge(5))),
        Asked::List(query, Ok(page)),
    ] {
        record.trace.note(Asking { live: true, asked });
    }
    let turn = told(&clock, &record, &[]);
    let reads: Vec<String> = turn
        .reads
        .iter()
        .map(|read| format!("{} {} {}", read.verb, read.object, read.objects.len()))
        .collect();
    assert_eq!(
        reads,
        [
            "get Pod default/p 1",
            "get Pod default/p 0",
            "get Pod default/p 0",
            "list Pod in default 2",
        ]
    );
    assert_eq!(turn.reads[2].error.as_deref(), Some("larger than 5 bytes"));
    assert!(turn.reads[1].error.is_none() && turn.reads[0].live);
    assert_eq!(turn.reads[3].objects[0]["metadata"]["name"], "p");
}
