//! Why new content did not become a generation, and whether the same content may do so later.
//!
//! It decides by type. It must not know how often something was tried.

use std::time::Duration;

use vmhost_cluster::CrdError;
use vmhost_engine::LoadError;

use crate::deploy::files::FileError;
use crate::deploy::unique::Shared;
use crate::rights::access::MissingRights;

/// Longest pause between two tries that cost a few requests or a look at a file: how late a right,
/// a definition or a readable file is felt.
const CHEAP: Duration = Duration::from_secs(30);

/// Longest pause between two tries that compile, or run a guest to its deadline: of 10 s
/// (`--call-timeout`) in 310 s, 3 % of a core.
const COSTLY: Duration = Duration::from_secs(300);

/// Why a reload failed.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// There is no content.
    #[error(transparent)]
    File(#[from] FileError),
    /// The source cannot be built: a save, or a tool that is installed, mends it.
    #[error(transparent)]
    Build(Box<dyn std::error::Error + Send + Sync>),
    /// The content is no plugin of this host.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// It is another plugin.
    #[error(
        "its description has the name {found:?}, and the plugin that runs is {expected:?}: the name owns fields in the cluster"
    )]
    OtherName {
        /// In the new description.
        found: String,
        /// Of the plugin that runs.
        expected: String,
    },
    /// The operator has granted less.
    #[error(
        "it asks for more than the plugin was granted ({0}); restart vmhost to grant it, or run with --allow-wider"
    )]
    Wider(String),
    /// RBAC grants less.
    #[error(transparent)]
    MissingRights(#[from] MissingRights),
    /// Another plugin has to act: its own file may change.
    #[error(transparent)]
    Shared(#[from] Shared),
    /// A definition that it carries is not installed.
    #[error(transparent)]
    Definition(#[from] CrdError),
    /// Kinds are not served, or lists take long.
    #[error("the objects that it wants could not be listed within {after:?}: {waiting}")]
    NotSynced {
        /// `--cache-sync-timeout`.
        after: Duration,
        /// What each informer waits for.
        waiting: String,
    },
}

impl ReloadError {
    /// The longest pause before the same content is tried again. Nothing if only other content
    /// can mend it.
    ///
    /// What follows from the bytes and from how the host was started is not tried again. What
    /// depends on the cluster, the machine or another plugin is.
    pub(crate) fn longest_pause(&self) -> Option<Duration> {
        match self {
            Self::File(FileError::Unreadable(_))
            | Self::MissingRights(_)
            | Self::Shared(_)
            | Self::NotSynced { .. } => Some(CHEAP),
            Self::Definition(error) => (!error.is_of_the_definition()).then_some(CHEAP),
            Self::Load(error) => error.may_pass().then_some(COSTLY),
            Self::File(FileError::TooLarge { .. })
            | Self::Build(_)
            | Self::OtherName { .. }
            | Self::Wider(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmhost_cluster::Status;
    use vmhost_engine::CallError;

    #[test]
    fn what_the_bytes_decide_is_not_tried_again() {
        let crd = |code| CrdError::Apply {
            name: "databases.example.com".into(),
            source: vmhost_cluster::Error::Refused(Status {
                code,
                ..Status::default()
            }),
        };
        let unreadable = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        let trap = || CallError::Trap {
            reason: "panic".into(),
        };
        let deadline = || CallError::Deadline(Duration::from_secs(10));
        let cases: [(ReloadError, Option<Duration>); 19] = [
            (FileError::Unreadable(unreadable).into(), Some(CHEAP)),
            (FileError::TooLarge { size: 2, limit: 1 }.into(), None),
            (LoadError::NotWasm.into(), None),
            (LoadError::Compiler("it crashed".into()).into(), None),
            (LoadError::Shortage("no room".into()).into(), Some(COSTLY)),
            (LoadError::Refused("no size".into()).into(), None),
            (LoadError::Describe(trap()).into(), None),
            (LoadError::Describe(deadline()).into(), Some(COSTLY)),
            (LoadError::Instantiate(deadline()).into(), Some(COSTLY)),
            (
                LoadError::Instantiate(CallError::Busy("full".into())).into(),
                Some(COSTLY),
            ),
            (
                ReloadError::OtherName {
                    found: "a".into(),
                    expected: "b".into(),
                },
                None,
            ),
            (ReloadError::Wider("patch Pod.v1".into()), None),
            (MissingRights("it needs 1 right".into()).into(), Some(CHEAP)),
            (
                Shared::Finalizer {
                    plugin: "a".into(),
                    other: "b".into(),
                    finalizer: "example.com/x".into(),
                }
                .into(),
                Some(CHEAP),
            ),
            (crd(403).into(), Some(CHEAP)),
            (crd(503).into(), Some(CHEAP)),
            (crd(422).into(), None),
            (
                CrdError::Terminating("databases.example.com".into()).into(),
                Some(CHEAP),
            ),
            (
                ReloadError::NotSynced {
                    after: Duration::from_secs(30),
                    waiting: String::new(),
                },
                Some(CHEAP),
            ),
        ];
        for (error, longest) in cases {
            assert_eq!(error.longest_pause(), longest, "{error:?}");
        }
    }
}
