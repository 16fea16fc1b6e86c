//! Tests of what woke a turn.

use super::*;

#[test]
fn each_cause_has_its_word() {
    let clock = Clock::new();
    let none = told(&clock, &record(clock.at(1), WakeTag::default()), &[]);
    assert_eq!((none.causes.len(), &*none.causes[0].cause), (1, "decision"));
    for (cause, word) in [
        (Cause::Changed, "changed"),
        (Cause::OwnWrite, "own-write"),
        (Cause::Initial, "first-list"),
        (Cause::Relisted, "relist"),
        (Cause::Rewound, "rewound"),
        (Cause::Mapped, "mapped"),
        (Cause::Timer, "timer"),
        (Cause::Swap, "swap"),
        (Cause::Granted, "granted"),
        (Cause::Canary, "canary"),
        (Cause::Review, "review"),
    ] {
        let turn = told(&clock, &record(clock.at(1), cause.into()), &[]);
        assert_eq!((turn.causes.len(), &*turn.causes[0].cause), (1, word));
    }
    let (old, new) = (Some(machine(6, 2)), Some(machine(7, 3)));
    for (cause, own, old, new, word) in [
        (Cause::Changed, false, old.clone(), new.clone(), "changed"),
        (Cause::Changed, false, None, new.clone(), "created"),
        (Cause::Changed, false, old.clone(), None, "deleted"),
        (Cause::Changed, true, old.clone(), new.clone(), "own-write"),
        (
            Cause::OwnWrite,
            false,
            old.clone(),
            new.clone(),
            "own-write",
        ),
        (Cause::Relisted, false, old, new, "relist"),
    ] {
        let mut change = change(clock.at(1), old, new);
        (change.number, change.own) = (5, own);
        let record = record(clock.at(2), WakeTag::logged(cause, 5));
        let turn = told(&clock, &record, &[change]);
        assert_eq!((turn.causes.len(), &*turn.causes[0].cause), (1, word));
    }
}

#[test]
fn a_denied_review_says_what_was_asked_and_has_no_decision() {
    let clock = Clock::new();
    let review = TurnRecord {
        act: Act::Denied {
            asked: "CREATE of Pod.v1".into(),
            reason: "403 no tag".into(),
        },
        ..record(clock.at(1), Cause::Review.into())
    };
    let turn = told(&clock, &review, &[]);
    assert_eq!((&*turn.result, &*turn.decision), ("denied", ""));
    assert_eq!(turn.act, "denied the CREATE of Pod.v1: 403 no tag");
}

#[test]
fn nobody_owns_the_fields_of_a_deletion() {
    let clock = Clock::new();
    let mut going = words::json(&machine(7, 2));
    going["metadata"]["deletionTimestamp"] = json!("2026-01-31T12:00:00Z");
    going["metadata"]["deletionGracePeriodSeconds"] = json!(0);
    let going = Object::with_text(name("x"), "u", 7, &going.to_string());
    let managed = r#"[{"manager":"kubectl-create","time":"2026-01-31T12:00:00Z"}]"#;
    for (new, manager) in [(going, None), (machine(7, 3), Some("kubectl-create"))] {
        let mut change = change(clock.at(1), Some(machine(6, 2)), Some(new));
        (change.number, change.managed) = (5, Some(managed.into()));
        let record = record(clock.at(2), WakeTag::logged(Cause::Changed, 5));
        let turn = told(&clock, &record, &[change]);
        assert_eq!(turn.causes[0].manager.as_deref(), manager);
        assert!(turn.causes[0].field_count > 0);
    }
}

#[test]
fn of_many_causes_the_newest_are_told_and_all_are_counted() {
    let clock = Clock::new();
    let mut tag = WakeTag::from(Cause::Timer);
    let mut changes = Vec::new();
    for number in 1..=20 {
        let mut change = change(clock.at(1), None, Some(machine(number.into(), 1)));
        change.number = number;
        changes.push(change);
        tag = tag.join(WakeTag::logged(Cause::Changed, number));
    }
    let turn = told(&clock, &record(clock.at(2), tag), &changes);
    let versions: Vec<Option<u64>> = turn.causes.iter().map(|cause| cause.version).collect();
    assert_eq!((turn.cause_count, turn.causes.len()), (21, 8));
    assert_eq!(
        (versions[0], versions[6], versions[7]),
        (Some(14), Some(20), None)
    );
}
