//! Tests how changes are grouped and compared.

use serde_json::json;
use vmhost_core::ObjectName;

use super::*;
use crate::workshop::preview::ids::Id;

fn change(name: &str, verb: Verb, new: &str) -> Change {
    let field = Field {
        path: "spec.x".into(),
        old: None,
        new: Some(json!(new)),
    };
    Change {
        id: Id {
            group: "apps".into(),
            kind: "Deployment".into(),
            name: ObjectName::new(Some("a"), name),
        },
        verb,
        fields: match verb {
            Verb::Delete => Vec::new(),
            _ => vec![field],
        },
        waits_for: Vec::new(),
        generated: None,
    }
}

fn version() -> Version {
    Version {
        plugin: "p".into(),
        version: "1".into(),
        digest: "sha256:x".into(),
    }
}

fn ran(changes: Vec<Change>) -> Ran {
    Ran {
        changes,
        unchanged: 7,
        ..Ran::default()
    }
}

fn lines(plan: &Plan) -> Vec<String> {
    let line = |group: &Group| {
        let Group {
            verb,
            by,
            count,
            objects,
            ..
        } = group;
        format!("{verb:?} {by:?} {count} {}", objects.join(" "))
    };
    plan.groups.iter().map(line).collect()
}

#[test]
fn equal_changes_are_one_group_and_deletions_come_first() {
    let changes = vec![
        change("a", Verb::Patch, "1"),
        change("b", Verb::Patch, "2"),
        change("c", Verb::Patch, "2"),
        change("d", Verb::Create, "1"),
        change("e", Verb::Delete, ""),
        change("f", Verb::Patch, "x<redacted 00000001>"),
        change("g", Verb::Patch, "x<redacted 00000002>"),
        change("h", Verb::Patch, "x<redacted 00000002>"),
    ];
    let plan = Plan::new((version(), ran(changes)), None);
    let wanted = [
        "Delete None 1 a/e",
        "Create None 1 a/d",
        "Patch None 3 a/f a/g a/h",
        "Patch None 2 a/b a/c",
        "Patch None 1 a/a",
    ];
    assert_eq!(lines(&plan), wanted);
    let counts = Counts {
        patch: 6,
        create: 1,
        delete: 1,
        unchanged: 7,
        failed: 0,
    };
    assert_eq!(plan.counts, counts);
    assert!(plan.differs());
    assert_eq!(plan.groups[0].kind, "Deployment.apps");
}

#[test]
fn only_what_differs_from_the_old_version_is_shown() {
    let new = vec![
        change("same", Verb::Patch, "1"),
        change("other", Verb::Patch, "new"),
        change("secret", Verb::Patch, "<redacted 00000001>"),
        change("more", Verb::Create, "1"),
    ];
    let old = vec![
        change("same", Verb::Patch, "1"),
        change("other", Verb::Patch, "old"),
        change("secret", Verb::Patch, "<redacted 00000002>"),
        change("gone", Verb::Delete, ""),
    ];
    let plan = Plan::new((version(), ran(new)), Some((version(), ran(old))));
    let wanted = [
        "Delete Some(Old) 1 a/gone",
        "Create Some(New) 1 a/more",
        "Patch Some(New) 1 a/secret",
        "Patch Some(New) 1 a/other",
        "Patch Some(Old) 1 a/secret",
        "Patch Some(Old) 1 a/other",
    ];
    assert_eq!(lines(&plan), wanted);
    assert_eq!(plan.counts.patch, 3, "of the new version");
}

#[test]
fn two_versions_that_do_the_same_do_not_differ() {
    let same = || {
        ran(vec![
            change("a", Verb::Patch, "1"),
            change("a", Verb::Patch, "1"),
        ])
    };
    let plan = Plan::new((version(), same()), Some((version(), same())));
    assert!(!plan.differs(), "{:?}", plan.groups);
    let less = ran(vec![change("a", Verb::Patch, "1")]);
    let plan = Plan::new((version(), same()), Some((version(), less)));
    assert_eq!(lines(&plan), ["Patch Some(New) 1 a/a"]);
}

#[test]
fn keys_that_fail_alike_are_together() {
    let problem = |key: &str, text: &str| Problem {
        controller: "p/c".into(),
        key: key.into(),
        what: "trap",
        text: text.into(),
    };
    let new = Ran {
        problems: vec![problem("a", "x"), problem("b", "x"), problem("c", "y")],
        ..Ran::default()
    };
    let old = Ran {
        problems: vec![problem("a", "x")],
        ..Ran::default()
    };
    let plan = Plan::new((version(), new), Some((version(), old)));
    let found: Vec<_> = plan
        .problems
        .iter()
        .map(|of| (of.text.as_str(), of.keys.join(" ")))
        .collect();
    assert_eq!(found, [("x", "b".to_owned()), ("y", "c".to_owned())]);
    assert!(plan.differs() && plan.counts.failed == 3);
    assert!(!Plan::new((version(), Ran::default()), None).differs());
}
