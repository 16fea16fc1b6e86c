//! Tests of the text of reports and turns, which must not contain control characters.

use serde_json::json;
use vmhost_runtime::shadow::report::{Counts, Example};

use super::*;

fn running() -> ShadowReport {
    ShadowReport {
        plugin: "vm".into(),
        state: "running".into(),
        candidate: "sha256:0123456789abcdef".into(),
        version: "0.2.0".into(),
        live: "sha256:fedcba9876543210".into(),
        since: "2026-11-23T10:00:01.123456Z".into(),
        counts: Counts {
            same: 120,
            masked: 2,
            differs: 3,
            failed: 1,
            incomparable: 4,
            dropped: 5,
            waiting: 6,
            ..Counts::default()
        },
        reasons: vec![
            Reason {
                result: "incomparable".into(),
                reason: "read".into(),
                about: "get ConfigMap.v1".into(),
                turns: 4,
                example: "default/a".into(),
            },
            Reason {
                result: "failed".into(),
                reason: "trap".into(),
                about: String::new(),
                turns: 1,
                example: "default/b".into(),
            },
        ],
        differences: vec![Group {
            controller: "vm/virtualmachines".into(),
            what: "changed".into(),
            verb: "patch".into(),
            kind: "VirtualMachine".into(),
            path: "spec.status".into(),
            count: 3,
            example: Example {
                key: "default/x".into(),
                live: Some(json!("complete")),
                candidate: Some(json!("done")),
                ..Example::default()
            },
        }],
        masked: vec![Masked {
            controller: "vm/virtualmachines".into(),
            verb: "event".into(),
            kind: "VirtualMachine".into(),
            path: "note".into(),
        }],
        ..ShadowReport::default()
    }
}

#[test]
fn a_report_has_a_title_and_tables() {
    assert_eq!(
        report(&running()),
        "\
shadow of vm: candidate sha256:0123456789ab (0.2.0) beside sha256:fedcba987654, running since 2026-11-23 10:00:01.123

RESULT         TURNS   ABOUT
same           120     2 differ only where the live version differs from itself
differs        3
failed         1
               1       it trapped, as in default/b
incomparable   4
               4       get ConfigMap.v1: not read in the turn, as in default/a
dropped        5       the queue was full
waiting        6

CONTROLLER           DIFFERENCE                          LIVE         CANDIDATE   COUNT   EXAMPLE
vm/virtualmachines   patch VirtualMachine: spec.status   \"complete\"   \"done\"      3       default/x

CONTROLLER           NOT COMPARED
vm/virtualmachines   event VirtualMachine: note"
    );
}

#[test]
fn an_end_says_why_and_when() {
    let ended = ShadowReport {
        state: "ended".into(),
        ended: Some("stopped\nby an order".into()),
        at: Some("2026-11-23T10:10:00Z".into()),
        ..running()
    };
    let title = title(&ended);
    assert!(
        title.ends_with("from 2026-11-23 10:00:01.123 to 2026-11-23 10:10:00: stopped by an order"),
        "{title}"
    );
    let loading = ShadowReport {
        plugin: "vm".into(),
        state: "loading".into(),
        ..ShadowReport::default()
    };
    assert!(super::title(&loading).contains("a candidate, loading"));
}

#[test]
fn an_effect_of_one_version_is_wanted_by_it() {
    let group = |what: &str| Group {
        what: what.into(),
        verb: "create".into(),
        kind: "ConfigMap".into(),
        count: 1,
        ..Group::default()
    };
    let text = differences(&[group("missing"), group("extra")]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[1].contains("create ConfigMap   wanted       not wanted"),
        "{text}"
    );
    assert!(
        lines[2].contains("create ConfigMap   not wanted   wanted"),
        "{text}"
    );
}

#[test]
fn a_turn_tells_what_would_have_been_done() {
    let field = |old: &str, new: &str| Field {
        path: "spec.status".into(),
        old: Some(json!(old)),
        new: Some(json!(new)),
    };
    let would = ShadowTurn {
        time: "2026-11-23T10:00:01.123456Z".into(),
        controller: "vm/virtualmachines".into(),
        kind: "VirtualMachine.v1.cloud.waibizi.com".into(),
        key: "default/x".into(),
        generation: 2,
        candidate: "sha256:0123456789abcdef".into(),
        act: "returned".into(),
        effects: vec![Effect {
            verb: "patch".into(),
            object: "VirtualMachine default/x".into(),
            fields: vec![field("creating", "done\u{1b}[2J")],
            ..Effect::default()
        }],
        next: Some(json!("awaitChange")),
        differences: vec![Differing {
            what: "changed".into(),
            verb: "patch".into(),
            object: "VirtualMachine default/x".into(),
            fields: vec![field("complete", "done")],
            ..Differing::default()
        }],
        ..ShadowTurn::default()
    };
    let text = story(&ShadowStory {
        turns: vec![would.clone()],
    });
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "VirtualMachine default/x   controller vm/virtualmachines, generation 2, shadow sha256:0123456789ab   2026-11-23 UTC",
            "10:00:01.123  would    patch VirtualMachine default/x: spec.status \"creating\" -> \"done\\u001b[2J\"",
            "              next     waits for a change",
            "              differs  patch VirtualMachine default/x: spec.status \"complete\" (live), \"done\" (candidate)",
        ]
    );
    let broke = ShadowTurn {
        act: "broke: the plugin trapped\u{1b}[2J".into(),
        effects: Vec::new(),
        next: None,
        differences: vec![Differing {
            what: "changed".into(),
            verb: "call".into(),
            fields: vec![Field {
                path: String::new(),
                old: Some(json!("returned")),
                new: Some(json!("trap")),
            }],
            message: Some("the plugin trapped".into()),
            ..Differing::default()
        }],
        ..would
    };
    let text = turn(&broke);
    assert!(
        text.contains(
            "how the call ends: \"returned\" (live), \"trap\" (candidate): the plugin trapped"
        ),
        "{text}"
    );
    assert!(
        text.chars().all(|c| c == '\n' || !c.is_control()),
        "{text:?}"
    );
}
