//! Tests that results are grouped, counted and bounded.

use serde_json::json;

use super::*;

fn key(name: &str) -> ObjectName {
    ObjectName::new(Some("default"), name)
}

fn turn(differences: Vec<Differing>) -> ShadowTurn {
    ShadowTurn {
        time: "now".into(),
        differences,
        ..ShadowTurn::default()
    }
}

fn changed(path: &str, live: Value, candidate: Value) -> Differing {
    Differing {
        what: "changed".into(),
        verb: "patch".into(),
        kind: "Machine".into(),
        fields: vec![Field {
            path: path.into(),
            old: Some(live),
            new: Some(candidate),
        }],
        ..Differing::default()
    }
}

fn report(results: &Results) -> ShadowReport {
    let mut report = ShadowReport::default();
    results.tell(&mut report);
    report
}

#[test]
fn differences_are_grouped_by_field_with_the_first_as_example() {
    let (mut results, label): (_, Arc<str>) = (Results::default(), "vm".into());
    for (name, index) in [("a", 0), ("b", 5), ("c", 1)] {
        let list = changed(&format!("spec.list[{index}]"), json!(1), json!(index));
        let size = changed("spec.size", json!(2), json!(3));
        let differences = if name == "a" {
            vec![list, size]
        } else {
            vec![list]
        };
        results.differs(&label, &key(name), None, turn(differences));
    }
    let report = report(&results);
    assert_eq!((report.counts.differs, report.counts.failed), (3, 0));
    let groups: Vec<_> = report
        .differences
        .iter()
        .map(|group| (group.path.as_str(), group.count, group.example.key.as_str()))
        .collect();
    assert_eq!(
        groups,
        [
            ("spec.list[*]", 3, "default/a"),
            ("spec.size", 1, "default/a")
        ]
    );
    let example = &report.differences[1].example;
    assert_eq!(
        (&example.live, &example.candidate),
        (&Some(json!(2)), &Some(json!(3)))
    );
    assert_eq!(results.of("vm", &key("b")).len(), 1);
}

#[test]
fn an_effect_of_one_version_is_one_kind_of_difference() {
    let (mut results, label): (_, Arc<str>) = (Results::default(), "vm".into());
    for path in ["spec.a", "spec.b"] {
        let missing = Differing {
            what: "missing".into(),
            ..changed(path, json!(1), json!(2))
        };
        results.differs(&label, &key("a"), None, turn(vec![missing]));
    }
    let groups = report(&results).differences;
    assert_eq!(groups.len(), 1);
    assert_eq!((groups[0].count, groups[0].path.as_str()), (2, ""));
    assert_eq!(groups[0].example.live, None);
}

#[test]
fn kinds_of_differences_and_reasons_are_bounded() {
    let (mut results, label): (_, Arc<str>) = (Results::default(), "vm".into());
    for number in 0..GROUPS + 20 {
        let path = format!("spec.p{number}");
        let differing = changed(&path, json!(1), json!(2));
        results.differs(&label, &key("a"), None, turn(vec![differing]));
        results.incomparable("read", &path, &key("a"));
    }
    let report = report(&results);
    assert_eq!(report.differences.len(), GROUPS);
    assert_eq!(report.other_differences, 20);
    assert_eq!(report.reasons.len(), OTHERS + 1);
    let rest = &report.reasons[0];
    assert_eq!((rest.about.as_str(), rest.turns), (REST, 20));
    assert_eq!(report.counts.incomparable as usize, GROUPS + 20);
}

#[test]
fn failures_are_counted_by_kind_beside_the_differences() {
    let (mut results, label): (_, Arc<str>) = (Results::default(), "vm".into());
    results.differs(&label, &key("a"), Some("trap"), turn(Vec::new()));
    results.differs(&label, &key("b"), Some("trap"), turn(Vec::new()));
    results.same(true);
    results.same(false);
    let report = report(&results);
    let counts = report.counts;
    assert_eq!((counts.failed, counts.differs), (2, 0));
    assert_eq!((counts.same, counts.masked), (2, 1));
    let reason = &report.reasons[0];
    assert_eq!(
        (reason.result.as_str(), reason.reason.as_str(), reason.turns),
        ("failed", "trap", 2)
    );
    assert_eq!(reason.example, "default/a");
}

#[test]
fn long_values_are_cut() {
    let (mut results, label): (_, Arc<str>) = (Results::default(), "vm".into());
    let long = json!({ "a": "x".repeat(10_000) });
    let differing = changed("spec", long, json!(1));
    results.differs(&label, &key("a"), None, turn(vec![differing]));
    let example = &report(&results).differences[0].example;
    let text = example.live.as_ref().and_then(Value::as_str).unwrap();
    assert!(text.len() < VALUE + 10 && text.ends_with("..."), "{text}");
    assert_eq!(example.candidate, Some(json!(1)));
}

#[test]
fn long_names_are_cut() {
    let (mut results, label): (_, Arc<str>) = (Results::default(), "vm".into());
    let long = "x".repeat(10_000);
    let differing = Differing {
        kind: long.clone(),
        object: long.clone(),
        ..changed(&format!("spec[{long:?}]"), json!(1), json!(2))
    };
    let turn = ShadowTurn {
        act: long.clone(),
        next: Some(json!({ "retry": long.as_str() })),
        ..turn(vec![differing])
    };
    results.differs(&label, &key("a"), None, turn);
    results.incomparable("read", &long, &key("a"));
    let place = Place {
        verb: "patch".into(),
        kind: long.clone(),
        path: long,
    };
    results.rerun("vm", vec![place]);
    let text = serde_json::to_string(&report(&results)).unwrap();
    assert!(text.len() < 10 * VALUE, "{} bytes", text.len());
    let kept = serde_json::to_string(&results.of("vm", &key("a"))).unwrap();
    assert!(kept.len() < 10 * VALUE, "{} bytes", kept.len());
}

#[test]
fn what_is_masked_belongs_to_one_live_version() {
    let mut results = Results::default();
    results.live("one");
    let place = Place {
        verb: "patch".into(),
        kind: "Machine".into(),
        path: "spec.time".into(),
    };
    results.rerun("vm", vec![place]);
    results.rerun("vm", Vec::new());
    let before = report(&results);
    assert_eq!((before.masked.len(), before.counts.rerun), (1, 2));
    results.live("two");
    let after = report(&results);
    assert!(after.masked.is_empty() && after.live == "two");
}
