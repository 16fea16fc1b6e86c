//! Tests of the guards that are put into the bodies of writes.

use super::*;
use vmhost_core::{Gvk, ObjectKey, ObjectName};

fn patch(kind: PatchType, body: &str, if_version: Option<&str>) -> Patch {
    let key = ObjectKey {
        kind: Gvk::new("", "v1", "Pod"),
        name: ObjectName::new(Some("a"), "x"),
    };
    Patch {
        key,
        subresource: None,
        kind,
        body: body.into(),
        if_version: if_version.map(Into::into),
    }
}

#[test]
fn the_snapshots_uid_goes_into_every_kind_of_patch() {
    let guard = Guard {
        uid: Some("u1"),
        written: None,
        candidate: None,
        account: None,
        turn_member: None,
    };
    let merge = patch_body(&patch(PatchType::Merge, r#"{"spec":{"a":1}}"#, None), guard).unwrap();
    assert_eq!(merge, r#"{"metadata":{"uid":"u1"},"spec":{"a":1}}"#);
    let json = patch_body(
        &patch(
            PatchType::Json,
            r#"[{"op":"remove","path":"/a"}]"#,
            Some("7"),
        ),
        guard,
    )
    .unwrap();
    assert_eq!(
        json,
        r#"[{"op":"test","path":"/metadata/uid","value":"u1"},{"op":"test","path":"/metadata/resourceVersion","value":"7"},{"op":"remove","path":"/a"}]"#
    );
}

#[test]
fn guards_are_put_into_the_text_and_nothing_else_changes() {
    let guard = Guard {
        uid: Some("u\"1"),
        written: None,
        candidate: None,
        account: None,
        turn_member: None,
    };
    for (kind, body, guarded) in [
        (
            PatchType::Merge,
            "{}",
            r#"{"metadata":{"uid":"u\"1","resourceVersion":"7"}}"#,
        ),
        (
            PatchType::Merge,
            r#" { "z": 1.0, "a": {"metadata": 1} }"#,
            r#"{"metadata":{"uid":"u\"1","resourceVersion":"7"}, "z": 1.0, "a": {"metadata": 1} }"#,
        ),
        (
            PatchType::Merge,
            r#"{"meta\u0064ata":{"labels":{"a":"b"},"uid":"other"}}"#,
            r#"{"metadata":{"labels":{"a":"b"},"resourceVersion":"7","uid":"u\"1"}}"#,
        ),
        (
            PatchType::Json,
            " [ ] ",
            r#"[{"op":"test","path":"/metadata/uid","value":"u\"1"},{"op":"test","path":"/metadata/resourceVersion","value":"7"} ] "#,
        ),
    ] {
        let patch = patch(kind, body, Some("7"));
        assert_eq!(patch_body(&patch, guard).unwrap(), guarded, "{body}");
    }
}

#[test]
fn a_version_means_what_the_turn_itself_has_made_of_it() {
    let guard = Guard {
        uid: None,
        written: Some(9),
        candidate: None,
        account: None,
        turn_member: None,
    };
    assert!(
        patch_body(&patch(PatchType::Merge, "{}", Some("7")), guard)
            .unwrap()
            .contains(r#""resourceVersion":"9""#)
    );
    assert_eq!(
        patch_body(&patch(PatchType::Merge, "{}", None), guard).unwrap(),
        "{}"
    );
}

#[test]
fn bodies_that_make_no_sense_are_refused_before_they_are_sent() {
    let guard = Guard {
        uid: Some("u"),
        written: None,
        candidate: None,
        account: None,
        turn_member: None,
    };
    for (kind, body) in [
        (PatchType::Json, "{}"),
        (PatchType::Merge, "[]"),
        (PatchType::Merge, "nonsense"),
        (PatchType::Merge, r#"{"spec":{}"#),
        (PatchType::Merge, r#"{"spec":{}}}"#),
        (PatchType::Json, r#"[{"op":"remove","path":"/a"}"#),
        (PatchType::Json, "[],"),
        (PatchType::Merge, r#"{"metadata":null}"#),
        (PatchType::Merge, r#"{"metadata":1}"#),
    ] {
        assert!(
            patch_body(&patch(kind, body, None), guard).is_err(),
            "{body}"
        );
    }
}
