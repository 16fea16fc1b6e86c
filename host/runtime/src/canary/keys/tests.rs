//! Tests of what is remembered of keys while a candidate runs them, and after its end.

use vmhost_core::Object;

use super::*;

fn keys() -> CandidateKeys {
    CandidateKeys::new("p/c".into())
}

fn key(name: &str) -> ObjectName {
    ObjectName::new(Some("a"), name)
}

fn object(uid: &str, version: u64) -> Snapshot {
    Object::with_text(key("x"), uid, version, "{}")
}

fn version(recall: &Recall) -> Option<Option<u64>> {
    match recall {
        Recall::Memory => None,
        Recall::Own(object) => Some(object.as_ref().map(|object| object.version)),
    }
}

#[test]
fn a_key_is_where_its_last_turn_was() {
    let keys = keys();
    assert!(!keys.has(&key("x")));
    keys.begins_on_candidate(&key("x"));
    keys.begins_on_candidate(&key("x"));
    assert!(keys.has(&key("x")));
    assert_eq!((keys.turns("a/x"), keys.turns("a/y")), (2, 0));
    keys.begins_on_live(&key("x"));
    assert!(!keys.has(&key("x")));
    assert_eq!(keys.turns("a/x"), 0);
    // The candidate saw the deletion, so a next turn of the key is on the candidate too.
    keys.begins_on_candidate(&key("x"));
    assert!(keys.remember_gone(&key("x")));
    assert!(keys.has(&key("x")));
    keys.begins_on_candidate(&key("x"));
    assert!(keys.has(&key("x")));
    assert_eq!(keys.end(), [key("x")]);
    assert!(!keys.has(&key("x")), "the canary is over");
}

#[test]
fn deleted_keys_are_bounded() {
    let keys = keys();
    for number in 0..GONE {
        assert!(keys.remember_gone(&key(&number.to_string())));
    }
    assert!(!keys.remember_gone(&key("one-more")));
    assert!(
        !keys.has(&key("one-more")),
        "its next turn is on the live version"
    );
    assert_eq!(keys.end().len(), GONE);
}

#[test]
fn the_candidate_recalls_what_it_saw_itself() {
    let keys = keys();
    assert_eq!(version(&keys.previous(&key("x"))), None, "asks the memory");
    assert!(!keys.saw(&key("x"), Some(&object("u", 7))), "kept here");
    assert_eq!(version(&keys.previous(&key("x"))), Some(Some(7)));
    assert!(!keys.saw(&key("x"), None));
    assert_eq!(version(&keys.previous(&key("x"))), Some(None));
    // The live version ran the key meanwhile.
    keys.live_saw(&key("x"));
    assert_eq!(version(&keys.previous(&key("x"))), None);
}

#[test]
fn an_object_that_took_over_a_name_is_told_apart() {
    let keys = keys();
    assert!(!keys.saw_other(&key("x"), "u"), "nothing was seen");
    keys.saw(&key("x"), Some(&object("u", 7)));
    assert!(!keys.saw_other(&key("x"), "u"));
    assert!(keys.saw_other(&key("x"), "v"));
    keys.saw(&key("x"), None);
    assert!(
        !keys.saw_other(&key("x"), "v"),
        "it knows that the old one is gone"
    );
}

#[test]
fn a_promotion_hands_the_snapshots_over_and_an_abort_drops_them() {
    let promoted = keys();
    promoted.saw(&key("x"), Some(&object("u", 7)));
    promoted.saw(&key("y"), None);
    let mut merged = Vec::new();
    promoted.merge(|key, object| merged.push((key.clone(), object.map(|saw| saw.version))));
    merged.sort();
    assert_eq!(merged, [(key("x"), Some(7)), (key("y"), None)]);
    assert!(
        promoted.saw(&key("x"), Some(&object("u", 8))),
        "for the memory"
    );
    promoted.end();
    assert!(promoted.saw(&key("x"), None), "still");

    let aborted = keys();
    aborted.saw(&key("x"), Some(&object("u", 7)));
    aborted.end();
    assert_eq!(version(&aborted.previous(&key("x"))), None);
    assert!(!aborted.saw(&key("x"), Some(&object("u", 8))), "for nobody");
}

#[test]
fn keys_that_failed_before_are_known() {
    let keys = keys();
    keys.note_troubled([key("x")]);
    assert!(keys.is_troubled(&key("x")) && !keys.is_troubled(&key("y")));
}
