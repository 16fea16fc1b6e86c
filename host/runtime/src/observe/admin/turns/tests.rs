//! Tests of the texts about keys that fail, and of what they hide.

use vmhost_core::trace::{Asked, Read};
use vmhost_core::{Gvk, Object};

use super::*;
use crate::journal::record::AnswerEnd;
use crate::journal::warnings::tests::parts::{CONTROLLER, key, turn};

const VALUE: &str = "hunter2-hunter2";

/// Returns a turn of a key that read a Secret, and whose write was refused with this text.
fn refused(ms: u64, key: &ObjectName, message: &str) -> TurnRecord {
    let mut record = turn(ms).refused(422);
    record.key = key.clone();
    record.answers[0].end = AnswerEnd::Refused(422, message.to_owned());
    let name = ObjectName::new(Some("default"), "s");
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"Secret","metadata":{{"name":"s"}},"stringData":{{"p":"{VALUE}"}}}}"#
    );
    let secret = Object::with_text(name.clone(), "u", 1, &text);
    record.trace.note(Read {
        live: false,
        asked: Asked::Get(Gvk::new("", "v1", "Secret"), name, Ok(Some(secret))),
    });
    record
}

#[test]
fn the_last_failure_of_each_key_is_told_without_a_secret() {
    let journal = Arc::new(Journal::new(4 << 20, 1));
    let redact = Arc::new(Redact::new(Vec::new()));
    let turns = Turns::new(journal.clone(), redact, Arc::default());
    let other = ObjectName::new(Some("default"), "other");
    journal.turn(refused(1, &key(), "first"));
    journal.turn(refused(2, &key(), &format!("{VALUE} is no count")));
    journal.turn(refused(3, &other, "of another key"));
    let keys = HashSet::from([key(), ObjectName::new(None, "unknown")]);
    let told = turns.failures(CONTROLLER, &keys, &Running::default());
    assert_eq!(told.len(), 1, "{told:?}");
    let text = &told[&key()];
    assert!(
        text.starts_with("patch Loop default/x: 422 <redacted ") && text.ends_with("> is no count"),
        "{text}"
    );
    assert!(
        turns
            .failures("loops/others", &keys, &Running::default())
            .is_empty()
    );
}

#[test]
fn a_setting_is_not_told_after_it_was_replaced() {
    let plugin = CONTROLLER.split('/').next().unwrap();
    let journal = Arc::new(Journal::new(4 << 20, 1));
    let book = SettingsBook::new(HashMap::new());
    for value in ["first-password", "second-password"] {
        let settings = Settings::from([("password".to_owned(), value.to_owned())]);
        book.set(plugin, Some(&settings));
    }
    let turns = Turns::new(journal.clone(), Arc::new(Redact::new(Vec::new())), book);
    journal.turn(refused(
        1,
        &key(),
        "first-password and second-password are wrong",
    ));
    let told = turns.failures(CONTROLLER, &HashSet::from([key()]), &Running::default());
    let text = &told[&key()];
    assert!(
        text.ends_with("are wrong") && !text.contains("password"),
        "{text}"
    );
}

#[test]
fn that_no_review_is_recorded_says_nothing_about_turns() {
    let journal = Arc::new(Journal::new(4 << 20, 1));
    let redact = Arc::new(Redact::new(Vec::new()));
    let turns = Turns::new(journal, redact, Arc::default());
    let webhook = Keyed {
        controller: "guard/images".into(),
        started: true,
        kind: admission_kind(),
        plural: "admissions".to_owned(),
        aliases: Default::default(),
        namespaced: true,
        reads_sensitive: false,
    };
    let running = Running {
        leading: false,
        controllers: vec![webhook],
    };
    let query = WhyQuery {
        kind: "admissions".to_owned(),
        name: "x".to_owned(),
        ..WhyQuery::default()
    };
    let error = turns.why(&query, &running).unwrap_err().to_string();
    assert!(
        error.contains("denied or not answered") && !error.contains("standby"),
        "{error}"
    );
}
