//! A revision that no host runs, because it was rolled back or its canary was aborted: it stays so,
//! also on another host and after a restart, until `spec` wants another one. Plain data: it must
//! not know what runs instead.

use crate::conditions::Stop;
use crate::status::Status;

/// The reason of a revision that was rolled back.
pub(crate) const ROLLED_BACK: &str = "RolledBack";

/// The reason of a revision whose canary was aborted.
pub(crate) const ABORTED: &str = "CanaryAborted";

/// A refused revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// Its name.
    pub(crate) revision: String,
    /// Whether this host did not run it when it looked last.
    pub(crate) was_obeyed: bool,
    reason: &'static str,
    message: String,
}

impl Refused {
    /// A revision that this host has just found to be refused.
    pub(crate) fn new(revision: &str, reason: &'static str, why: &str) -> Self {
        Self {
            revision: revision.to_owned(),
            was_obeyed: true,
            reason,
            message: format!("revision {revision}: {why}; change spec to run another one"),
        }
    }

    /// The revision that a leader reported as refused.
    pub(crate) fn reported(status: &Status) -> Option<Self> {
        let revision = status.refused_revision.as_deref()?;
        let mut conditions = status.conditions.iter();
        let said = conditions.find(|condition| condition.kind == "Progressing");
        let reason = match said {
            Some(condition) if condition.reason == ABORTED => ABORTED,
            _ => ROLLED_BACK,
        };
        let said = said.filter(|condition| condition.reason == reason);
        let unsaid = || Self::new(revision, reason, "it is refused").message;
        Some(Self {
            revision: revision.to_owned(),
            was_obeyed: false,
            reason,
            message: said.map_or_else(unsaid, |condition| condition.message.clone()),
        })
    }

    /// What the condition says.
    pub(crate) fn stop(&self) -> Stop {
        Stop::at("Progressing", self.reason, self.message.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_leader_says_why_too() {
        let first = Refused::new("vm-2", ABORTED, "3 keys broke");
        let stop = first.stop();
        assert!(stop.message.contains("vm-2: 3 keys broke"), "{stop:?}");
        let status = |reason: &str, message: &str| -> Status {
            serde_json::from_value(serde_json::json!({
                "refusedRevision": "vm-2",
                "conditions": [{ "type": "Progressing", "reason": reason, "message": message }],
            }))
            .unwrap()
        };
        let next = Refused::reported(&status(ABORTED, &stop.message)).unwrap();
        assert_eq!(next.stop(), stop);
        assert!(!next.was_obeyed);
        let unsaid = Refused::reported(&status("Complete", "")).unwrap().stop();
        assert_eq!(unsaid.reason, ROLLED_BACK);
        assert!(unsaid.message.contains("vm-2"), "{unsaid:?}");
        assert_eq!(Refused::reported(&Status::default()), None);
    }
}
