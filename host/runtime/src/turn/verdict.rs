//! From an API server's answer to a queue decision: the table of design section 4, as a pure function. It decides by the `reason` of the `Status`, not by the
//! code alone.

use std::time::Duration;

use serde::Deserialize;
use vmhost_cluster::{Error, Status, StatusCause};
use vmhost_core::{Effect, Patch, PatchType, Refusal, chain};

use crate::rights::access::Required;

/// Operations of a JSON patch that are named to a reader who looks for the one that does not fit.
const OPERATIONS: usize = 8;

/// What becomes of a key whose effect was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As good as done: the turn goes on. (A delete of what is gone.)
    Done,
    /// The key's own object is gone, or another one has its name: nothing to do, its event comes or has come.
    Gone,
    /// The turn ends without an error; nothing more can be done there. (A namespace that is being deleted.)
    Ended,
    /// Somebody else was faster: look again, rate limited from the first step.
    Conflict,
    /// The object is there already: look again when the store shows it.
    Exists,
    /// May pass: back off.
    Retry,
    /// Not sent, since this host does not lead any more: again when it does.
    NotLeading,
    /// May pass and is nobody's fault but the cluster's configuration: back off, not counted against the plugin.
    Unauthorized,
    /// The API server does not allow it: again when it does.
    Forbidden,
    /// Repeating does not help: rest until the object or the plugin changes.
    Terminal,
}

/// The effect that ended a turn.
#[derive(Clone, Debug)]
pub struct Stop {
    /// What its refusal means.
    pub verdict: Verdict,
    /// How long the API server asks to wait (`Retry-After`).
    pub wait: Duration,
    /// What the policy is told.
    pub refusal: Refusal,
    /// `patch VirtualMachine.v1.cloud.waibizi.com default/public-wx`.
    pub what: String,
    /// The rights that it takes, if the API server did not allow it.
    pub required: Required,
}

/// What a refused effect means. `primary`: it writes the turn's own object.
pub fn judge(effect: &Effect, primary: bool, error: &Error) -> Verdict {
    if crate::lead::is_fenced(error) {
        return Verdict::NotLeading;
    }
    let Error::Refused(Status {
        code,
        reason,
        causes,
        ..
    }) = error
    else {
        return Verdict::Retry;
    };
    let has_cause = |wanted: &str| causes.iter().any(|cause| cause.reason == wanted);
    match (*code, reason.as_str()) {
        (409, "AlreadyExists") => Verdict::Exists,
        (409, _) if has_cause("FieldManagerConflict") => Verdict::Terminal,
        (409, _) => Verdict::Conflict,
        (403, _) if has_cause("NamespaceTerminating") => Verdict::Ended,
        (403, _) => Verdict::Forbidden,
        (404, _) => match effect {
            Effect::Delete(_) => Verdict::Done,
            _ if primary => Verdict::Gone,
            _ => Verdict::Retry,
        },
        // Another object has the name by now: its uid is not the one that the policy saw.
        (422, _) if causes.iter().any(|cause| cause.field == "metadata.uid") => Verdict::Conflict,
        (422, _) if misfit(effect, *code, causes).is_some() => Verdict::Conflict,
        (401, _) => Verdict::Unauthorized,
        (429, _) | (408, _) => Verdict::Retry,
        (code, _) if code >= 500 => Verdict::Retry,
        _ => Verdict::Terminal,
    }
}

/// The JSON patch that cannot be applied to what is there: a `test` failed, or a path is missing.
/// Validation of the result, too, is answered with 422, and names its causes.
fn misfit<'a>(effect: &'a Effect, code: u16, causes: &[StatusCause]) -> Option<&'a Patch> {
    match effect {
        Effect::Patch(patch) if patch.kind == PatchType::Json => {
            (code == 422 && causes.is_empty()).then_some(patch)
        }
        _ => None,
    }
}

/// `test /spec/status, replace /spec/status`: the API server does not say which operation does not
/// fit.
fn operations(patch: &Patch) -> String {
    #[derive(Deserialize)]
    struct Operation {
        op: String,
        path: String,
    }
    let operations: Vec<Operation> = serde_json::from_str(&patch.body).unwrap_or_default();
    let guard = patch.if_version.as_ref();
    let guard = guard.map(|_| "test /metadata/resourceVersion".to_owned());
    let shown = operations
        .iter()
        .map(|Operation { op, path }| format!("{op} {path}"));
    let text: Vec<String> = guard.into_iter().chain(shown.take(OPERATIONS)).collect();
    // The paths are the guest's.
    vmhost_core::cut(&text.join(", "), 512).to_owned()
}

/// What the policy is told in `request.last`. `index`: the effect's place.
pub fn refusal(index: usize, effect: &Effect, error: &Error) -> Refusal {
    let number = index as u32;
    match error {
        Error::Refused(Status {
            code,
            reason,
            message,
            causes,
            ..
        }) => {
            let mut message = message.clone();
            for cause in causes {
                if !message.contains(&cause.message) {
                    message.push_str(&format!("; {}: {}", cause.field, cause.message));
                }
            }
            if let Some(patch) = misfit(effect, *code, causes) {
                message.push_str(&format!(
                    "; one of these does not fit: {}",
                    operations(patch)
                ));
            }
            Refusal {
                effect: number,
                code: *code,
                reason: reason.clone(),
                message,
            }
        }
        error => Refusal {
            effect: number,
            code: 0,
            reason: "NoAnswer".into(),
            message: chain(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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

    /// What kube-apiserver 1.36 answers to an apply or a patch that carries another uid.
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
        json.body =
            r#"[{"op":"test","path":"/a","value":1},{"op":"remove","path":"/b~1c"}]"#.into();
        json.if_version = Some("7".into());
        let error = status(422, "Invalid", None);
        let told = |effect: &Effect| refusal(1, effect, &error).message;
        assert_eq!(
            told(&Effect::Patch(json.clone())),
            "m; one of these does not fit: test /metadata/resourceVersion, test /a, remove /b~1c"
        );
        json.kind = PatchType::Merge;
        assert_eq!(told(&Effect::Patch(json)), "m");
    }
}
