//! Tests of the table of verdicts, and of the texts of refusals.

use super::*;
use crate::canary::end::TakenBack;
use vmhost_core::{Create, Delete, Gvk, ObjectKey, ObjectName};

fn key() -> ObjectKey {
    ObjectKey {
        kind: Gvk::new("", "v1", "Pod"),
        name: ObjectName::new(Some("a"), "x"),
    }
}

fn patch(kind: PatchType) -> Effect {
    Effect::Patch(Patch {
        key: key(),
        subresource: None,
        kind,
        body: String::new(),
        if_version: None,
    })
}

/// The response of kube-apiserver 1.36 to an apply or a patch with another uid.
fn uid_refused() -> Error {
    let cause = StatusCause {
        reason: "FieldValueInvalid".into(),
        message: "field is immutable".into(),
        field: "metadata.uid".into(),
    };
    Error::Refused(Status {
        code: 422,
        reason: "Invalid".into(),
        message: "m".into(),
        causes: vec![cause],
        retry_after: None,
    })
}

fn status(code: u16, reason: &str, cause: Option<&str>) -> Error {
    let causes = cause
        .map(|reason| StatusCause {
            reason: reason.into(),
            ..StatusCause::default()
        })
        .into_iter()
        .collect();
    Error::Refused(Status {
        code,
        reason: reason.into(),
        message: "m".into(),
        causes,
        retry_after: None,
    })
}

#[test]
fn every_answer_has_its_row() {
    let merge = || patch(PatchType::Merge);
    let json = || patch(PatchType::Json);
    let delete = || {
        Effect::Delete(Delete {
            key: key(),
            uid: None,
            if_version: None,
            propagation: None,
        })
    };
    let create = || {
        Effect::Create(Create {
            object: String::new(),
        })
    };
    let retry = Verdict::Retry;
    for (effect, primary, error, verdict) in [
        (merge(), true, uid_refused(), Verdict::Conflict),
        (
            create(),
            false,
            status(409, "AlreadyExists", None),
            Verdict::Exists,
        ),
        (
            merge(),
            true,
            status(409, "Conflict", None),
            Verdict::Conflict,
        ),
        (
            merge(),
            true,
            status(409, "Conflict", Some("FieldManagerConflict")),
            Verdict::Terminal,
        ),
        (
            json(),
            true,
            status(422, "Invalid", None),
            Verdict::Conflict,
        ),
        (
            json(),
            true,
            status(422, "Invalid", Some("FieldValueInvalid")),
            Verdict::Terminal,
        ),
        (
            merge(),
            true,
            status(422, "Invalid", None),
            Verdict::Terminal,
        ),
        (merge(), true, status(404, "NotFound", None), Verdict::Gone),
        (merge(), false, status(404, "NotFound", None), retry.clone()),
        (
            delete(),
            false,
            status(404, "NotFound", None),
            Verdict::Done,
        ),
        (
            merge(),
            true,
            status(403, "Forbidden", None),
            Verdict::Forbidden,
        ),
        (
            create(),
            false,
            status(403, "Forbidden", Some("NamespaceTerminating")),
            Verdict::Ended,
        ),
        (
            merge(),
            true,
            status(401, "Unauthorized", None),
            Verdict::Unauthorized,
        ),
        (
            merge(),
            true,
            status(429, "TooManyRequests", None),
            retry.clone(),
        ),
        (
            merge(),
            true,
            status(500, "InternalError", None),
            retry.clone(),
        ),
        (merge(), true, status(502, "", None), retry.clone()),
        (
            merge(),
            true,
            status(400, "BadRequest", None),
            Verdict::Terminal,
        ),
        (
            merge(),
            true,
            status(415, "UnsupportedMediaType", None),
            Verdict::Terminal,
        ),
        (merge(), true, Error::Timeout(Duration::from_secs(4)), retry),
        (
            merge(),
            true,
            Error::NotSent(Box::new(crate::lead::NotLeading)),
            Verdict::NotLeading,
        ),
        (merge(), true, TakenBack::error(), Verdict::TakenBack),
    ] {
        assert_eq!(
            judge(&effect, primary, &error),
            verdict,
            "{effect:?} {error:?}"
        );
    }
}

#[test]
fn a_patch_that_does_not_fit_names_its_paths() {
    let Effect::Patch(mut json) = patch(PatchType::Json) else {
        panic!()
    };
    json.body = r#"[{"op":"test","path":"/a","value":1},{"op":"remove","path":"/b~1c"}]"#.into();
    json.if_version = Some("7".into());
    let error = status(422, "Invalid", None);
    let told = |effect: &Effect| refusal(1, effect, &error).message;
    assert_eq!(
        told(&Effect::Patch(json.clone())),
        "m; one of these operations failed: test /metadata/resourceVersion, test /a, remove /b~1c"
    );
    json.kind = PatchType::Merge;
    assert_eq!(told(&Effect::Patch(json)), "m");
}

#[test]
fn a_key_waits_for_what_the_server_asks_and_a_moment_for_a_member_that_is_not_reached() {
    let unsent = || Error::NotSent("no connection".into());
    assert_eq!(wait(&unsent(), true), UNREACHED);
    assert_eq!(wait(&unsent(), false), Duration::ZERO);
    let unknown = status(401, "Unauthorized", None);
    assert_eq!(wait(&unknown, true), UNREACHED);
    assert_eq!(wait(&unknown, false), Duration::ZERO);
    let Error::Refused(mut busy) = status(429, "TooManyRequests", None) else {
        panic!()
    };
    busy.retry_after = Some(Duration::from_secs(7));
    let busy = Error::Refused(busy);
    for is_member in [true, false] {
        assert_eq!(wait(&busy, is_member), Duration::from_secs(7));
        assert_eq!(
            wait(&Error::Timeout(UNREACHED), is_member),
            Duration::ZERO,
            "the turn has waited"
        );
    }
}
