//! Tests that a document contains no sensitive value in any form, and that all other values stay.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::*;
use crate::journal::story::Warning;

const MARKER: &str = "m4rker-\"s3cret\"";

fn encoded(text: &str) -> String {
    STANDARD.encode(text)
}

fn secret() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": "s", "namespace": "default" },
        "data": { "password": encoded(MARKER) },
    })
}

fn read(object: Value) -> Read {
    Read {
        verb: "get".into(),
        object: format!("{} default/s", object["kind"].as_str().unwrap()),
        objects: vec![object],
        ..Read::default()
    }
}

fn effect(form: Value) -> Effect {
    Effect {
        object: "Secret default/s".into(),
        effect: form,
        ..Effect::default()
    }
}

fn patch(kind: &str, patch_type: &str, body: Value) -> Effect {
    effect(json!({ "patch": {
        "key": { "apiVersion": "v1", "kind": kind, "namespace": "default", "name": "s" },
        "type": patch_type, "body": body,
    } }))
}

/// Redacts by these rules, with these settings.
fn redacted(sensitive: &[&str], settings: &[(&str, &str)], turns: Vec<Turn>) -> Vec<Turn> {
    let mut story = Story {
        turns,
        ..Story::default()
    };
    let sensitive = sensitive.iter().map(|text| text.parse().unwrap());
    let settings = settings.iter();
    let settings = settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let plugin = PluginSecrets {
        settings: &settings.collect(),
        reads_sensitive: true,
    };
    Redact::new(sensitive.collect()).story(&mut story, plugin);
    story.turns
}

/// Returns the document, after a check that the marker is not in it.
fn without_marker(sensitive: &[&str], settings: &[(&str, &str)], turn: Turn) -> String {
    let turns = redacted(sensitive, settings, vec![turn]);
    let text = serde_json::to_string(&turns).unwrap();
    for part in [
        "m4rker",
        "s3cret",
        &encoded(MARKER)[..16],
        &encoded(MARKER)[4..],
    ] {
        assert!(!text.contains(part), "{part} in {text}");
    }
    assert!(text.contains("<redacted "), "{text}");
    text
}

#[test]
fn a_secret_that_was_read_vanishes_everywhere() {
    let manifest = json!({ "spec": { "password": MARKER } }).to_string();
    let config_map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c" },
        "data": {
            "copy": MARKER, "base64": encoded(MARKER), "auth": encoded(&format!("me:{MARKER}")),
            "nested": manifest, "twice": json!([manifest]).to_string(),
        },
    });
    let body = json!({ "data": { "url": format!("http://me:{MARKER}@host") } });
    let operations = json!([
        { "op": "test", "path": "/metadata/annotations/x", "value": MARKER },
        { "op": "add", "path": "/data/y", "value": { "list": [encoded(MARKER)] } },
    ]);
    let field = Field {
        path: "data.copy".into(),
        old: Some(MARKER.into()),
        new: Some(encoded(MARKER).into()),
    };
    let turn = Turn {
        kind: "ConfigMap.v1".into(),
        object: Some(config_map.clone()),
        previous: Some(config_map.clone()),
        reads: vec![
            read(secret()),
            Read {
                error: Some(format!("no {MARKER}")),
                ..read(config_map.clone())
            },
        ],
        act: format!("broke: panicked at {MARKER:?}"),
        next: Some(json!({ "retry": format!("bad {MARKER}") })),
        causes: vec![Woken {
            object: Some("ConfigMap default/c".into()),
            fields: vec![field.clone()],
            manager: Some(MARKER.into()),
            ..Woken::default()
        }],
        effects: vec![
            patch("ConfigMap", "merge", body),
            patch("ConfigMap", "json", operations),
            effect(json!({ "create": { "object": config_map } })),
            effect(json!({ "event": { "type": "warning", "reason": "R", "note": MARKER } })),
            Effect {
                fields: vec![field],
                message: Some(format!("refused: {}", encoded(MARKER))),
                ..Effect::default()
            },
        ],
        message: Some(format!("reconcile failed: {MARKER}")),
        ..Turn::default()
    };
    let text = without_marker(&[], &[], turn);
    for left in [
        "http://me:",
        "@host",
        "panicked at",
        "reconcile failed",
        "ConfigMap default/c",
    ] {
        assert!(text.contains(left), "{left} in {text}");
    }
}

#[test]
fn the_values_of_a_secret_are_found_wherever_the_secret_is() {
    let string_data = json!({ "stringData": { "p": MARKER } });
    let field = Field {
        path: "data.password".into(),
        old: None,
        new: Some(encoded(MARKER).into()),
    };
    let mut of_turn = secret();
    of_turn["stringData"] = string_data["stringData"].clone();
    let message = || Some(format!("x{MARKER}x"));
    let turns = [
        Turn {
            object: Some(of_turn),
            ..Turn::default()
        },
        Turn {
            previous: Some(secret()),
            ..Turn::default()
        },
        Turn {
            effects: vec![effect(json!({ "create": { "object": secret() } }))],
            ..Turn::default()
        },
        Turn {
            effects: vec![effect(
                json!({ "apply": { "object": secret(), "force": true } }),
            )],
            ..Turn::default()
        },
        Turn {
            effects: vec![patch("Secret", "merge", string_data)],
            ..Turn::default()
        },
        Turn {
            effects: vec![patch(
                "Secret",
                "json",
                json!([{ "op": "add", "path": "/data/p", "value": encoded(MARKER) }]),
            )],
            ..Turn::default()
        },
        Turn {
            effects: vec![patch(
                "Secret",
                "json",
                json!([{ "op": "replace", "path": "/data", "value": { "p": encoded(MARKER) } }]),
            )],
            ..Turn::default()
        },
        Turn {
            effects: vec![Effect {
                fields: vec![field.clone()],
                ..patch("Secret", "merge", json!({}))
            }],
            ..Turn::default()
        },
        Turn {
            causes: vec![Woken {
                object: Some("Secret default/s".into()),
                fields: vec![field],
                ..Woken::default()
            }],
            ..Turn::default()
        },
        Turn {
            object: Some(json!({ "kind": "Template", "objects": [secret()] })),
            ..Turn::default()
        },
    ];
    for turn in turns {
        without_marker(
            &[],
            &[],
            Turn {
                message: message(),
                ..turn
            },
        );
    }
}

#[test]
fn the_values_of_a_secret_for_another_cluster_are_found() {
    let field = Field {
        path: "data.password".into(),
        old: None,
        new: Some(encoded(MARKER).into()),
    };
    for form in [
        json!({ "create": { "object": secret() } }),
        patch(
            "Secret",
            "merge",
            json!({ "data": { "password": encoded(MARKER) } }),
        )
        .effect,
    ] {
        let body = json!({ "cluster": "east", "effect": form });
        let one = Effect {
            verb: "other".into(),
            effect: json!({ "other": { "name": "in-cluster", "body": body } }),
            fields: vec![field.clone()],
            ..Effect::default()
        };
        let turn = Turn {
            effects: vec![one],
            message: Some(format!("bad {MARKER}")),
            ..Turn::default()
        };
        let text = without_marker(&[], &[], turn);
        assert!(text.contains("east"), "{text}");
    }
}

#[test]
fn a_body_that_is_not_json_is_hidden_as_a_whole() {
    let broken = format!("{{\"data\":{{\"p\":\"{}\"", encoded(MARKER));
    for form in [
        json!({ "create": { "object": broken } }),
        json!({ "apply": { "object": broken } }),
    ] {
        let turn = Turn {
            effects: vec![effect(form)],
            ..Turn::default()
        };
        without_marker(&[], &[], turn);
    }
    let turn = Turn {
        effects: vec![patch("Secret", "json", broken.into())],
        ..Turn::default()
    };
    without_marker(&[], &[], turn);
}

#[test]
fn the_last_apply_is_hidden_with_the_values_in_it() {
    let applied = json!({
        "apiVersion": "v1", "kind": "Secret", "stringData": { "p": MARKER }, "type": "Opaque",
    });
    let object = json!({ "metadata": { "annotations": {
        "kubectl.kubernetes.io/last-applied-configuration": applied.to_string(),
        "copy": MARKER,
        "type": "Opaque",
    } } });
    let turn = Turn {
        object: Some(object),
        ..Turn::default()
    };
    let text = without_marker(&[], &[], turn);
    assert!(
        text.contains("Opaque"),
        "only what is sensitive is taken from it: {text}"
    );
}

#[test]
fn the_parts_of_a_value_that_is_json_are_hidden_too() {
    let mut docker = secret();
    docker["data"] = json!({
        ".dockerconfigjson": encoded(&json!({ "auths": { "r": { "auth": MARKER } } }).to_string()),
    });
    let turn = Turn {
        object: Some(docker),
        message: Some(format!("bad {MARKER}")),
        ..Turn::default()
    };
    without_marker(&[], &[], turn);
}

#[test]
fn the_lines_of_a_value_are_hidden_too() {
    let settings = format!("# of the database\nuser=me\n  password = '{MARKER}'\n");
    let mut env = secret();
    env["data"] = json!({ ".env": encoded(&settings) });
    let turn = Turn {
        object: Some(env),
        message: Some(format!("me: bad {MARKER}")),
        ..Turn::default()
    };
    let text = without_marker(&[], &[], turn);
    assert!(text.contains("me: bad <redacted "), "{text}");
}

#[test]
fn settings_are_hidden_wherever_they_appear() {
    let turn = Turn {
        object: Some(json!({ "spec": { "token": encoded(MARKER) } })),
        message: Some(format!("bad {MARKER}")),
        ..Turn::default()
    };
    without_marker(&[], &[("token", MARKER), ("empty", "")], turn.clone());
    let json = json!({ "token": MARKER }).to_string();
    without_marker(&[], &[("all", &json)], turn);
}

#[test]
fn the_operators_kinds_are_hidden() {
    let database = json!({
        "apiVersion": "example.com/v1", "kind": "Database",
        "spec": { "users": [{ "password": MARKER, "name": "open" }] },
    });
    let turn = Turn {
        object: Some(database),
        message: Some(format!("bad {MARKER}")),
        ..Turn::default()
    };
    let path = "Database.example.com=spec.users[*].password";
    assert!(without_marker(&[path], &[], turn.clone()).contains("open"));
    assert!(!without_marker(&["Database"], &[], turn.clone()).contains("open"));
    let untouched = redacted(&["Database.vault.io"], &[], vec![turn.clone()]);
    assert_eq!(untouched, [turn]);
}

#[test]
fn a_value_of_one_turn_is_hidden_in_all_turns_of_the_document() {
    let saw = Turn {
        reads: vec![read(secret())],
        ..Turn::default()
    };
    let wrote = Turn {
        object: Some(json!({ "kind": "ConfigMap", "data": { "copy": MARKER } })),
        ..Turn::default()
    };
    let text = serde_json::to_string(&redacted(&[], &[], vec![wrote, saw])).unwrap();
    assert!(!text.contains("m4rker"), "{text}");
}

#[test]
fn equal_values_look_equal_and_short_ones_are_hidden_only_at_their_place() {
    let mut object = secret();
    object["data"] = json!({ "a": encoded("hunter2"), "short": encoded("ab"), "null": null });
    object["stringData"] = json!({ "b": "hunter2", "c": "hunter3", "number": 7 });
    let turn = Turn {
        object: Some(object),
        message: Some("hunter2 ab".into()),
        ..Turn::default()
    };
    let turns = redacted(&[], &[], vec![turn]);
    let object = turns[0].object.as_ref().unwrap();
    let (data, strings) = (&object["data"], &object["stringData"]);
    assert_eq!(data["a"], strings["b"]);
    assert_ne!(strings["b"], strings["c"]);
    let is_hidden = |value: &Value| value.as_str().unwrap().starts_with("<redacted ");
    assert!(is_hidden(&data["short"]) && is_hidden(&strings["number"]));
    assert_eq!(data["null"], Value::Null);
    let expected = format!("{} ab", data["a"].as_str().unwrap());
    assert_eq!(turns[0].message.as_deref(), Some(&*expected));
}

#[test]
fn texts_are_withheld_if_what_the_turn_read_is_not_known() {
    let turn = Turn {
        cut: true,
        act: format!("broke: {MARKER}"),
        next: Some(json!({ "retry": MARKER })),
        effects: vec![Effect {
            message: Some(MARKER.into()),
            ..Effect::default()
        }],
        message: Some(MARKER.into()),
        ..Turn::default()
    };
    let text = without_marker(&[], &[], turn.clone());
    assert!(text.contains("broke: <redacted "), "{text}");
    let settings = HashMap::new();
    let mut plugin = PluginSecrets {
        settings: &settings,
        reads_sensitive: false,
    };
    let redact = Redact::new(Vec::new());
    let mut shown = turn.clone();
    redact.turn(&mut shown, plugin);
    assert_eq!(shown, turn);
    plugin.reads_sensitive = true;
    let mut story = Story {
        turns: vec![turn],
        warnings: vec![Warning {
            name: "waiting-on".into(),
            text: format!("retried: {MARKER}"),
            ..Warning::default()
        }],
        ..Story::default()
    };
    redact.story(&mut story, plugin);
    let text = &story.warnings[0].text;
    assert!(
        text.starts_with("retried: <redacted ") && !text.contains("m4rker"),
        "{text}"
    );
}

#[test]
fn a_refusal_of_a_turn_that_is_not_shown_is_withheld() {
    let refused = Turn {
        reads: vec![read(secret())],
        effects: vec![Effect {
            message: Some(format!("{MARKER} is no count")),
            ..Effect::default()
        }],
        ..Turn::default()
    };
    // The Secret has another value by now, or this turn did not read it.
    let told = Turn {
        refusal: Some(format!("422 Invalid: {MARKER} is no count")),
        act: format!("broke: {MARKER} is no count"),
        ..Turn::default()
    };
    let text = without_marker(&[], &[], told.clone());
    assert!(text.contains("422 Invalid: <redacted ") && !text.contains("is no count"));
    let both = redacted(&[], &[], vec![refused, told]);
    let refusal = both[1].refusal.as_deref().unwrap();
    assert!(
        refusal.ends_with("> is no count") && !refusal.contains("m4rker"),
        "{refusal}"
    );
}

#[test]
fn one_change_is_redacted_too() {
    let woken = Woken {
        object: Some("Secret default/s".into()),
        fields: vec![Field {
            path: "data.password".into(),
            old: Some(encoded(MARKER).into()),
            new: Some("x".into()),
        }],
        ..Woken::default()
    };
    let settings = HashMap::new();
    let plugin = PluginSecrets {
        settings: &settings,
        reads_sensitive: true,
    };
    let mut story = Story {
        pending: vec![woken],
        ..Story::default()
    };
    Redact::new(Vec::new()).story(&mut story, plugin);
    let text = serde_json::to_string(&story.pending).unwrap();
    assert!(
        !text.contains(&encoded(MARKER)) && !text.contains("\"x\""),
        "{text}"
    );
}

#[test]
fn rules_for_kinds_tell_whether_a_plugin_reads_sensitive_values() {
    let redact = Redact::new(vec!["Database.example.com=spec".parse().unwrap()]);
    assert!(redact.concerns(&Gvk::new("", "v1", "Secret")));
    assert!(redact.concerns(&Gvk::new("example.com", "v2", "Database")));
    assert!(!redact.concerns(&Gvk::new("", "v1", "Pod")));
}
