//! Tests of `self-waking` and `write-unchanged`.

use super::*;

/// Returns a turn that the own write with this number woke, and that wrote again.
fn again(number: u32) -> TurnRecord {
    let version = 100 + u64::from(number);
    let turn = turn(u64::from(number) * 10).by_own_write(number);
    turn.patches(primary(), version, version + 1)
}

/// Returns the own write with this number, which changed this field.
fn own(number: u32, field: &str) -> Wakened {
    let spec = |value: u32| format!(r#"{{"{field}":{value}}}"#);
    let ms = u64::from(number) * 10;
    change(
        number,
        ms,
        &primary(),
        (&spec(number), &spec(number + 1)),
        None,
    )
}

#[test]
fn a_key_that_wakes_itself_is_named_with_its_fields() {
    let turns: Vec<TurnRecord> = (1..6).map(again).collect();
    let woken: Vec<Wakened> = (1..6).map(|number| own(number, "count")).collect();
    assert_eq!(
        text(&turns, &[], &woken, "self-waking"),
        "only its own writes woke the last 3 turns, and each of them wrote again: spec.count"
    );
    let said = text(&turns, &[], &[], "self-waking");
    assert!(said.ends_with("wrote again"), "the log is bounded: {said}");
    let earlier = [quiet(5), quiet(25)];
    assert_eq!(names(&turns, &earlier, &woken), ["self-waking"]);
    // Then the key is held, which does not count as a turn.
    let mut held = quiet(900);
    held.act = Act::Held(Duration::from_secs(30));
    assert_eq!(names(&turns, &[held], &woken), ["self-waking"]);
}

#[test]
fn what_it_makes_and_removes_is_named_too() {
    let turns: Vec<TurnRecord> = (1..4).map(again).collect();
    let child = |number: u32, name: &str| {
        let ms = u64::from(number) * 10;
        change(number, ms, &config_map(name), ("{}", r#"{"a":1}"#), None)
    };
    let (made, gone, kept) = (child(1, "made"), child(2, "gone"), child(3, "kept"));
    let woken = [
        Wakened { old: None, ..made },
        Wakened { new: None, ..gone },
        kept,
        own(3, "a"),
        own(3, "b"),
        own(3, "c"),
    ];
    assert_eq!(
        text(&turns, &[], &woken, "self-waking"),
        "only its own writes woke the last 3 turns, and each of them wrote again: \
         a new ConfigMap default/made, the deletion of ConfigMap default/gone, \
         spec.a of ConfigMap default/kept, spec.a and 2 more"
    );
}

#[test]
fn a_key_that_comes_to_rest_does_not_wake_itself() {
    let foreign = turn(20).patches(primary(), 102, 103);
    let failed = again(3).ends(Next::Retry("later".into()));
    let idle = turn(20).by_own_write(2).patches(primary(), 102, 102);
    let mut mixed = again(2);
    mixed.tag = {
        use vmhost_queue::Tag;
        mixed.tag.join(Cause::Changed.into())
    };
    for (turns, quiet, what) in [
        (vec![again(1), again(2)], vec![], "two turns"),
        (vec![again(1), again(2), again(3)], vec![quiet(31)], "quiet"),
        (
            vec![again(1), again(2), again(3)],
            vec![quiet(15)],
            "quiet in between",
        ),
        (
            vec![again(1), foreign, again(3)],
            vec![],
            "another's change",
        ),
        (vec![again(1), mixed, again(3)], vec![], "both"),
        (vec![again(1), again(2), failed], vec![], "a retry"),
        (vec![again(1), idle, again(3)], vec![], "nothing written"),
    ] {
        assert!(names(&turns, &quiet, &[]).is_empty(), "{what}");
    }
}

/// Returns a turn that sent this effect, which changed nothing.
fn sends(ms: u64, effect: Effect, object: ObjectKey, version: u64) -> TurnRecord {
    let end = AnswerEnd::Written(version);
    turn(ms).does(effect, object, Some(version), end)
}

#[test]
fn writes_without_a_change_are_named() {
    let own = |ms: u64| sends(ms, patch(&primary()), primary(), ms);
    let other = |ms: u64| turn(ms).patches(primary(), ms, ms + 1);
    let child = |ms: u64, version: u64| sends(ms, apply(), config_map("child"), version);
    assert_eq!(
        text(&[own(1), own(2), own(3)], &[], &[], "write-unchanged"),
        "3 of the last 3 turns sent a write that changed nothing: patch Loop default/x"
    );
    let turns = [own(1), own(2), other(3), other(4), own(5), own(6)];
    let said = text(&turns, &[], &[], "write-unchanged");
    assert!(said.starts_with("3 of the last 5 turns"), "{said}");
    let turns = [child(1, 7), child(2, 7), child(3, 7)];
    let said = text(&turns, &[], &[], "write-unchanged");
    assert!(said.ends_with("apply ConfigMap default/child"), "{said}");
    let mut status = own(3);
    if let Some(Effect::Patch(patch)) = status.effects.first_mut() {
        patch.subresource = Some("status".into());
    }
    let turns = [status.clone(), status.clone(), status];
    let said = text(&turns, &[], &[], "write-unchanged");
    assert!(said.ends_with("patch Loop default/x/status"), "{said}");
}

#[test]
fn writes_with_a_reason_are_not() {
    let own = |ms: u64| sends(ms, patch(&primary()), primary(), ms);
    let other = |ms: u64| turn(ms).patches(primary(), ms, ms + 1);
    // Another controller changes the child's status in between.
    let child = |ms: u64| sends(ms, apply(), config_map("child"), ms);
    let gone = config_map("going");
    let deletes = |ms: u64| sends(ms, delete(&gone), gone.clone(), 7);
    let unknown = |ms: u64| {
        let end = AnswerEnd::Written(7);
        turn(ms).does(patch(&gone), gone.clone(), None, end)
    };
    let skipped = |ms: u64| turn(ms).does(apply(), gone.clone(), Some(7), AnswerEnd::Repeated);
    let another = |name: &str| sends(3, patch(&gone), config_map(name), 7);
    for (turns, quiet, what) in [
        (vec![own(1), own(2)], vec![], "two turns"),
        (
            vec![own(1), own(2), own(3), other(4)],
            vec![],
            "not the newest",
        ),
        (
            vec![own(1), own(2), other(3), other(4), other(5), own(6)],
            vec![],
            "long ago",
        ),
        (vec![own(1), own(2), own(3)], vec![quiet(4)], "quiet"),
        (vec![child(1), child(2), child(3)], vec![], "a rollout"),
        (vec![deletes(1), deletes(2), deletes(3)], vec![], "deletes"),
        (vec![unknown(1), unknown(2), unknown(3)], vec![], "unknown"),
        (vec![skipped(1), skipped(2), skipped(3)], vec![], "not sent"),
        (
            vec![another("a"), another("b"), another("c")],
            vec![],
            "three objects",
        ),
    ] {
        assert!(names(&turns, &quiet, &[]).is_empty(), "{what}");
    }
}
