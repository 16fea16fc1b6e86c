//! From an API server's answer to a queue decision: the table of design section 4, as a pure function. It decides by the `reason` of the `Status`, not by the
//! code alone.

use std::time::Duration;

use vmhost_cluster::WriteError;
use vmhost_core::{Effect, PatchType, Refusal};

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
    /// May pass: back off, at least so long.
    Retry(Duration),
    /// Not sent, since this host does not lead any more: again when it does.
    NotLeading,
    /// May pass and is nobody's fault but the cluster's configuration: back off, not counted against the plugin.
    Unauthorized,
    /// Repeating does not help: rest until the object or the plugin changes.
    Terminal,
}

/// What a refused effect means. `primary`: it writes the turn's own object.
pub fn judge(effect: &Effect, primary: bool, error: &WriteError) -> Verdict {
    if crate::leader::is_fenced(error) {
        return Verdict::NotLeading;
    }
    let WriteError::Status {
        code,
        reason,
        causes,
        retry_after,
        ..
    } = error
    else {
        return Verdict::Retry(Duration::ZERO);
    };
    let has_cause = |wanted: &str| causes.iter().any(|cause| cause.reason == wanted);
    let wait = retry_after.unwrap_or_default();
    match (*code, reason.as_str()) {
        (409, "AlreadyExists") => Verdict::Exists,
        (409, _) if has_cause("FieldManagerConflict") => Verdict::Terminal,
        (409, _) => Verdict::Conflict,
        (403, _) if has_cause("NamespaceTerminating") => Verdict::Ended,
        (404, _) => match effect {
            Effect::Delete(_) => Verdict::Done,
            _ if primary => Verdict::Gone,
            _ => Verdict::Retry(wait),
        },
        // Another object has the name by now: its uid is not the one that the policy saw.
        (422, _) if causes.iter().any(|cause| cause.field == "metadata.uid") => Verdict::Conflict,
        // A JSON patch that cannot be applied to what is there: a `test` failed, or a path is missing. Validation of the result names its causes.
        (422, _)
            if causes.is_empty()
                && matches!(effect, Effect::Patch(patch) if patch.kind == PatchType::Json) =>
        {
            Verdict::Conflict
        }
        (401, _) => Verdict::Unauthorized,
        (429, _) | (408, _) => Verdict::Retry(wait),
        (code, _) if code >= 500 => Verdict::Retry(wait),
        _ => Verdict::Terminal,
    }
}

/// What the policy is told in `request.last`.
pub fn refusal(index: usize, error: &WriteError) -> Refusal {
    let effect = index as u32;
    match error {
        WriteError::Status {
            code,
            reason,
            message,
            causes,
            ..
        } => {
            let mut message = message.clone();
            for cause in causes {
                if !message.contains(&cause.message) {
                    message.push_str(&format!("; {}: {}", cause.field, cause.message));
                }
            }
            Refusal {
                effect,
                code: *code,
                reason: reason.clone(),
                message,
            }
        }
        error => Refusal {
            effect,
            code: 0,
            reason: "NoAnswer".into(),
            message: chain(error),
        },
    }
}

/// An error with its causes, on one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmhost_cluster::StatusCause;
    use vmhost_core::{Create, Delete, Gvk, ObjectKey, ObjectName, Patch};

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
    fn uid_refused() -> WriteError {
        let cause = StatusCause {
            reason: "FieldValueInvalid".into(),
            message: "field is immutable".into(),
            field: "metadata.uid".into(),
        };
        WriteError::Status {
            code: 422,
            reason: "Invalid".into(),
            message: "m".into(),
            causes: vec![cause],
            retry_after: None,
        }
    }

    fn status(code: u16, reason: &str, cause: Option<&str>) -> WriteError {
        let causes = cause
            .map(|reason| StatusCause {
                reason: reason.into(),
                ..StatusCause::default()
            })
            .into_iter()
            .collect();
        WriteError::Status {
            code,
            reason: reason.into(),
            message: "m".into(),
            causes,
            retry_after: None,
        }
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
        let retry = Verdict::Retry(Duration::ZERO);
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
                Verdict::Terminal,
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
            (
                merge(),
                true,
                WriteError::Timeout(Duration::from_secs(4)),
                retry,
            ),
            (
                merge(),
                true,
                WriteError::NotSent(Box::new(crate::leader::NotLeading)),
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
    fn the_servers_wait_is_respected() {
        let error = WriteError::Status {
            code: 429,
            reason: "TooManyRequests".into(),
            message: String::new(),
            causes: Vec::new(),
            retry_after: Some(Duration::from_secs(3)),
        };
        assert_eq!(
            judge(&patch(PatchType::Merge), true, &error),
            Verdict::Retry(Duration::from_secs(3))
        );
    }
}
