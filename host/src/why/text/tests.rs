use serde_json::json;
use vmhost_runtime::journal::story::{Digests, Field, Read};

use super::*;

fn status(old: &str, new: &str) -> Field {
    Field {
        path: "spec.status".into(),
        old: Some(json!(old)),
        new: Some(json!(new)),
    }
}

/// Returns a turn of a VM at this second, with a fraction of the second.
fn turn(time: &str) -> Turn {
    Turn {
        time: format!("2026-11-23T10:00:{time}Z"),
        controller: "vm".into(),
        kind: "VirtualMachine.v1.cloud.waibizi.com".into(),
        key: "default/public-wx".into(),
        generation: 2,
        cause_count: 1,
        act: "returned".into(),
        result: "success".into(),
        decision: "waits for a change".into(),
        wait_ms: 0.2,
        took_ms: 1.2,
        ..Turn::default()
    }
}

fn woken(cause: &str) -> Woken {
    Woken {
        cause: cause.into(),
        object: Some("VirtualMachine default/public-wx".into()),
        ..Woken::default()
    }
}

fn first() -> Turn {
    Turn {
        causes: vec![Woken {
            fields: vec![status("", "creating")],
            field_count: 1,
            manager: Some("kubectl-create".into()),
            ..woken("created")
        }],
        version: Some(812),
        reads: vec![Read {
            verb: "get".into(),
            object: "ConfigMap default/settings".into(),
            ..Read::default()
        }],
        next: Some(json!("awaitChange")),
        effects: vec![Effect {
            verb: "patch".into(),
            object: "VirtualMachine default/public-wx".into(),
            fields: vec![status("creating", "complete")],
            end: "written".into(),
            version: Some(813),
            ..Effect::default()
        }],
        ..turn("01.123456")
    }
}

fn quiet() -> Turn {
    Turn {
        causes: vec![Woken {
            version: Some(813),
            ..woken("own-write")
        }],
        quiet: 3,
        since: Some("2026-11-23T10:00:01.130000Z".into()),
        ..turn("01.230000")
    }
}

fn text(story: &Story) -> String {
    let mut text = Text::new(Paint::Off, Vec::new());
    text.story(story, "vm default/public-wx");
    text.take()
}

#[test]
fn a_story_is_told_in_order() {
    let edit = Woken {
        time: Some("2026-11-23T10:00:01.200000Z".into()),
        fields: vec![status("complete", "stopped")],
        field_count: 1,
        manager: Some("kubectl-edit".into()),
        version: Some(814),
        ..woken("changed")
    };
    let story = Story {
        turns: vec![first(), quiet()],
        pending: vec![edit],
        warnings: vec![Warning {
            name: "fights-with".into(),
            text: "fights-with kubectl-edit at spec.status: each undoes the other".into(),
            ..Warning::default()
        }],
        dropped: 0,
    };
    let expected = r#"
VirtualMachine default/public-wx   controller vm, generation 2   2026-11-23 UTC
10:00:01.123  woken by spec.status "" -> "creating" (created by kubectl-create)      waited 0.2ms
              saw      version 812
              read     ConfigMap default/settings: missing
              did      patch VirtualMachine default/public-wx: spec.status "creating" -> "complete"
              server   written, version 813
              next     waits for a change                                            took 1.2ms
10:00:01.200  change   spec.status "complete" -> "stopped" by kubectl-edit (version 814); no turn followed
10:00:01.230  woken by own write (version 813)                                       waited 0.2ms
              nothing to do; 3 quiet turns since 10:00:01.130
warning       fights-with kubectl-edit at spec.status: each undoes the other"#;
    assert_eq!(text(&story), expected.trim_start());
}

#[test]
fn turns_of_a_candidate_are_marked() {
    for (plugin, generation, expected) in [("vm", 2, true), ("vm", 3, false), ("other", 2, false)] {
        let mut text = Text::new(Paint::Off, vec![(plugin.into(), generation)]);
        text.turn(&first());
        let text = text.take();
        let is_marked = text.contains("controller vm, generation 2 (candidate)");
        assert_eq!(is_marked, expected, "{text}");
    }
}

#[test]
fn a_key_that_waits_says_for_what() {
    let paused = Turn {
        act: "paused for 1s".into(),
        ..quiet()
    };
    let story = Story {
        turns: vec![paused],
        ..Story::default()
    };
    let text = text(&story);
    assert!(
        text.ends_with("paused for 1s; 3 times since 10:00:01.130"),
        "{text}"
    );
}

#[test]
fn a_failure_is_told_with_its_reasons() {
    let refused = Effect {
        verb: "delete".into(),
        object: "Pod default/x".into(),
        end: "refused".into(),
        code: Some(403),
        message: Some("pods is forbidden".into()),
        ..Effect::default()
    };
    let failed = Turn {
        causes: vec![woken("decision")],
        cause_count: 4,
        attempt: 2,
        version: None,
        effects: vec![refused],
        next: Some(json!({ "retry": "the disk is missing" })),
        result: "error".into(),
        decision: "retries in 10ms".into(),
        ..turn("02.000000")
    };
    let broke = Turn {
        act: "broke: the call took longer than 10s".into(),
        cut: true,
        digests: Some(Digests {
            object: Some("5f0c".into()),
            reads: "0c1a".into(),
            read_count: 3,
            effects: "1a2b".into(),
            effect_count: 1,
            ..Digests::default()
        }),
        ..turn("03.000000")
    };
    let story = Story {
        turns: vec![failed, broke],
        ..Story::default()
    };
    let text = text(&story);
    for line in [
        "10:00:02.000  woken by retry 2",
        "              and      3 more",
        "              saw      that the object is gone",
        "              did      delete Pod default/x",
        "              server   refused with 403: pods is forbidden",
        "              policy   asks for a retry: the disk is missing",
        "              call     broke: the call took longer than 10s",
        "              note     too large to keep",
        "              digests  object 5f0c, 3 reads 0c1a, 1 effect 1a2b",
    ] {
        assert!(
            text.lines().any(|known| known.starts_with(line)),
            "{line}\n{text}"
        );
    }
    assert!(text.contains("took 1.2ms, error"), "{text}");
}

#[test]
fn a_new_generation_has_a_title() {
    let story = Story {
        turns: vec![
            turn("01.000000"),
            Turn {
                generation: 3,
                ..turn("02.000000")
            },
        ],
        ..Story::default()
    };
    let text = text(&story);
    let titles = text
        .lines()
        .filter(|line| line.starts_with("VirtualMachine"));
    assert_eq!(titles.count(), 2, "{text}");
    assert!(text.contains("\n\nVirtualMachine default/public-wx   controller vm, generation 3 "));
}

#[test]
fn without_turns_the_question_is_the_title() {
    let story = Story {
        warnings: vec![Warning {
            name: "waiting-on".into(),
            text: "ConfigMap default/settings".into(),
            ..Warning::default()
        }],
        ..Story::default()
    };
    assert_eq!(
        text(&story),
        "vm default/public-wx: no turn is recorded\nwarning       waiting-on: ConfigMap default/settings"
    );
}

#[test]
fn nothing_of_a_story_reaches_the_terminal_as_a_control_character() {
    let evil = || "a\x1b[2J\nb\u{9b}c".to_owned();
    let field = Field {
        path: evil(),
        old: Some(json!(evil())),
        new: None,
    };
    let woken = Woken {
        cause: evil(),
        time: Some(evil()),
        object: Some(evil()),
        fields: vec![field.clone()],
        manager: Some(evil()),
        ..Woken::default()
    };
    let turn = Turn {
        time: evil(),
        controller: evil(),
        kind: evil(),
        key: evil(),
        causes: vec![woken.clone()],
        reads: vec![Read {
            object: evil(),
            error: Some(evil()),
            ..Read::default()
        }],
        act: evil(),
        next: Some(json!({ "fail": evil() })),
        effects: vec![Effect {
            verb: evil(),
            object: evil(),
            fields: vec![field.clone(), field],
            end: evil(),
            message: Some(evil()),
            ..Effect::default()
        }],
        result: evil(),
        message: Some(evil()),
        decision: evil(),
        ..Turn::default()
    };
    let story = Story {
        turns: vec![
            turn.clone(),
            Turn {
                quiet: 2,
                since: Some(evil()),
                ..turn
            },
        ],
        pending: vec![woken],
        warnings: vec![Warning {
            name: evil(),
            text: evil(),
            ..Warning::default()
        }],
        dropped: 1,
    };
    for line in text(&story).lines() {
        assert!(!line.contains(char::is_control), "{line:?}");
    }
}

#[test]
fn a_denied_review_has_no_object_and_no_next_turn() {
    let review = Turn {
        causes: vec![woken("review")],
        act: "denied the CREATE of Pod.v1: 403 no tag".into(),
        result: "denied".into(),
        decision: String::new(),
        cut: true,
        digests: Some(Digests::default()),
        ..turn("04.000000")
    };
    let story = Story {
        turns: vec![review],
        ..Story::default()
    };
    let text = text(&story);
    for words in [
        "webhook  denied the CREATE of Pod.v1: 403 no tag",
        "next     nothing, since no queue has the key of a review",
        "took 1.2ms, denied",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    for words in ["saw", "too large", "digests", "unknown"] {
        assert!(!text.contains(words), "{words}\n{text}");
    }
}
