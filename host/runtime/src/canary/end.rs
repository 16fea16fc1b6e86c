//! How a canary ends, and the error of a write that the host did not send because the canary was
//! aborted. This module must not know how an end is carried out.

use std::fmt;

use vmhost_cluster::Error;

use crate::canary::breach::Breach;

/// How a canary ended.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// The candidate became the live version.
    Promoted,
    /// The live version runs all objects again.
    Aborted(Abort),
}

/// Why a canary was aborted.
#[derive(Clone, Debug, PartialEq)]
pub enum Abort {
    /// An operator asked for it.
    Operator,
    /// The candidate did worse than the live version.
    Score(Breach),
    /// This host is no longer the leader.
    LeaderLost,
    /// The plugin was swapped to other bytes.
    NewBytes,
    /// The host shuts down.
    Shutdown,
}

/// The host did not send a candidate's write, because the canary was aborted.
#[derive(Debug, thiserror::Error)]
#[error("the canary was aborted before the write was sent")]
pub(crate) struct TakenBack;

impl TakenBack {
    /// Returns this as the error of a write.
    pub(crate) fn error() -> Error {
        Error::NotSent(Box::new(Self))
    }
}

/// Returns whether this host refused to send the write because the canary was aborted.
pub(crate) fn is_taken_back(error: &Error) -> bool {
    matches!(error, Error::NotSent(source) if source.is::<TakenBack>())
}

impl End {
    /// The end in one word, for metrics and programs.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Promoted => "promoted",
            Self::Aborted(Abort::Operator) => "operator",
            Self::Aborted(Abort::Score(_)) => "score",
            Self::Aborted(Abort::LeaderLost) => "leader",
            Self::Aborted(Abort::NewBytes) => "new-bytes",
            Self::Aborted(Abort::Shutdown) => "shutdown",
        }
    }
}

impl fmt::Display for Abort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operator => f.write_str("an operator aborted it"),
            Self::Score(breach) => breach.fmt(f),
            Self::LeaderLost => f.write_str("this host does not lead any more"),
            Self::NewBytes => f.write_str("another version was swapped in"),
            Self::Shutdown => f.write_str("the host shuts down"),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Promoted => f.write_str("the candidate is the live version"),
            Self::Aborted(why) => why.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lead;

    #[test]
    fn a_write_that_was_taken_back_is_no_lost_lease() {
        let error = TakenBack::error();
        assert!(is_taken_back(&error) && !lead::is_fenced(&error));
        let other = Error::NotSent(Box::new(lead::NotLeading));
        assert!(!is_taken_back(&other));
        assert!(!error.maybe_applied());
    }

    #[test]
    fn each_end_has_its_word() {
        let aborts = [
            Abort::Operator,
            Abort::Score(Breach::Hot("a/x".into())),
            Abort::LeaderLost,
            Abort::NewBytes,
            Abort::Shutdown,
        ];
        let ends = std::iter::once(End::Promoted).chain(aborts.map(End::Aborted));
        let words: Vec<&str> = ends.map(|end| end.word()).collect();
        assert_eq!(
            words,
            [
                "promoted",
                "operator",
                "score",
                "leader",
                "new-bytes",
                "shutdown"
            ]
        );
    }
}
