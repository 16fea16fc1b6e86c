//! Classifies an API server's response to an effect: a pure function that decides by the `reason`
//! of the `Status`, not by the code alone. This module must not know what becomes of the key.

use std::time::Duration;

use serde::Deserialize;
use vmhost_cluster::{Error, Status, StatusCause};
use vmhost_core::{Effect, Patch, PatchType, Refusal, chain};

use crate::canary::end::is_taken_back;
use crate::rights::access::Required;

/// Maximum number of operations of a failed JSON patch that are shown.
const OPERATIONS: usize = 8;

/// The meaning of a refused effect for its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The goal is reached anyway (a delete of a missing object). The turn continues.
    Done,
    /// The key's own object is gone, or another one has its name. There is nothing to do, since its
    /// event arrives or has arrived.
    Gone,
    /// The server does not find the key's own object, but the store still shows it: its deletion is
    /// on its way, or the server does not serve the kind at the moment. Look again.
    Missing,
    /// The turn ends without an error, since nothing more can be done (the namespace is being
    /// deleted).
    Ended,
    /// Another writer was faster. Retry, rate limited from the first step.
    Conflict,
    /// The object exists already. Retry when the store shows it.
    Exists,
    /// The error may pass. Retry with back-off.
    Retry,
    /// The write was not sent, since this host does not lead any more. Retry when it leads.
    NotLeading,
    /// The host did not send the write, because the turn's canary was aborted. The live version
    /// runs the key.
    TakenBack,
    /// The credentials were rejected. Retry with back-off, without counting a failure of the
    /// plugin.
    Unauthorized,
    /// The API server forbids the write. Retry when it is allowed.
    Forbidden,
    /// A retry would fail too. Wait until the object or the plugin changes.
    Terminal,
}

impl Verdict {
    /// Its name in metrics.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::Done | Self::Gone | Self::Ended => "gone",
            Self::Conflict => "conflict",
            Self::Exists => "exists",
            Self::NotLeading => "not_leading",
            Self::TakenBack => "taken_back",
            Self::Retry | Self::Unauthorized | Self::Missing => "retry",
            Self::Forbidden | Self::Terminal => "refused",
        }
    }
}

/// The effect that ended a turn.
#[derive(Clone, Debug)]
pub struct Stop {
    /// The meaning of the refusal.
    pub(crate) verdict: Verdict,
    /// How long the key waits at least: see [`wait`].
    pub(crate) wait: Duration,
    /// The refusal, for the plugin's next call.
    pub(crate) refusal: Refusal,
    /// The effect, such as `patch VirtualMachine.v1.cloud.waibizi.com default/public-wx`.
    pub(crate) what: String,
    /// The rights that the effect needs, if it was forbidden.
    pub(crate) required: Required,
}

/// Classifies a refused effect. `primary` means that it writes the turn's own object.
pub(crate) fn judge(effect: &Effect, primary: bool, error: &Error) -> Verdict {
    if crate::lead::is_fenced(error) {
        return Verdict::NotLeading;
    }
    if is_taken_back(error) {
        return Verdict::TakenBack;
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
        // Another object has taken over the name: its uid differs from the one that the plugin saw.
        (422, _) if causes.iter().any(|cause| cause.field == "metadata.uid") => Verdict::Conflict,
        (422, _) if misfit(effect, *code, causes).is_some() => Verdict::Conflict,
        (401, _) => Verdict::Unauthorized,
        (429, _) | (408, _) => Verdict::Retry,
        (code, _) if code >= 500 => Verdict::Retry,
        _ => Verdict::Terminal,
    }
}

/// How long a key waits at least after a write that could not be sent to a member, or for which the
/// member does not take the credentials.
pub const UNREACHED: Duration = Duration::from_secs(1);

/// How long a key waits at least after this error of a write: as long as the server asks for, and a
/// moment if a member cannot be reached or refuses the credentials. All keys of such a cluster fail
/// at once: their calls and log lines would hold up the other clusters.
pub fn wait(error: &Error, is_member: bool) -> Duration {
    match error {
        Error::NotSent(_) if is_member => UNREACHED,
        _ if is_member && error.code() == Some(401) => UNREACHED.max(error.retry_after()),
        _ => error.retry_after(),
    }
}

/// Returns the JSON patch if it could not be applied: a `test` failed, or a path is missing.
/// Validation errors are answered with 422 too, but they name their causes.
fn misfit<'a>(effect: &'a Effect, code: u16, causes: &[StatusCause]) -> Option<&'a Patch> {
    match effect {
        Effect::Patch(patch) if patch.kind == PatchType::Json => {
            (code == 422 && causes.is_empty()).then_some(patch)
        }
        _ => None,
    }
}

/// The operations of a patch, such as `test /spec/status, replace /spec/status`, since the API
/// server does not say which one failed.
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
    // Cut, since the paths come from the guest.
    vmhost_core::cut(&text.join(", "), 512).to_owned()
}

/// The refusal for `request.last` of the plugin's next call. `index` is the position of the effect.
pub(crate) fn refusal(index: usize, effect: &Effect, error: &Error) -> Refusal {
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
                    "; one of these operations failed: {}",
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
mod tests;
