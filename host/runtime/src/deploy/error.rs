//! The reasons why new content did not become a generation, and whether the same content may
//! succeed later.
//!
//! The decision depends on the error type alone. This module must not know the number of attempts.

use std::time::Duration;

use vmhost_cluster::CrdError;
use vmhost_engine::LoadError;

use crate::deploy::files::FileError;
use crate::deploy::registered::Registered;
use crate::deploy::unique::Shared;
use crate::rights::access::MissingRights;

/// The longest pause between two attempts that cost a few requests or a file read. It bounds how
/// late the host notices a right, a definition or a readable file.
const CHEAP: Duration = Duration::from_secs(30);

/// The longest pause between two attempts that compile, or run a guest to its deadline: 10 s
/// (`--call-timeout`) every 310 s is 3 % of a core.
const COSTLY: Duration = Duration::from_secs(300);

/// Why a reload failed.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// The file could not be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The source does not build. A saved change or an installed tool fixes it.
    #[error(transparent)]
    Build(Box<dyn std::error::Error + Send + Sync>),
    /// The content is not a plugin that this host can load.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The content is another plugin.
    #[error(
        "the new description is named {found:?}, but the running plugin is {expected:?}: the name owns fields in the cluster and cannot change"
    )]
    OtherName {
        /// The name in the new description.
        found: String,
        /// The name of the running plugin.
        expected: String,
    },
    /// The content asks for more than the operator granted.
    #[error(
        "the new version asks for more than the plugin was granted ({0}); restart vmhost to grant it, or run with --allow-wider"
    )]
    Wider(String),
    /// RBAC does not grant all the rights that the content needs.
    #[error(transparent)]
    MissingRights(#[from] MissingRights),
    /// The content conflicts with another plugin, whose own file may change.
    #[error(transparent)]
    Shared(#[from] Shared),
    /// A CustomResourceDefinition of the plugin could not be installed.
    #[error(transparent)]
    Definition(#[from] CrdError),
    /// The API server asks a webhook that the content drops or changes.
    #[error(transparent)]
    Registered(#[from] Registered),
    /// The informers did not sync: a kind is not served, or a list takes long.
    #[error("stores did not sync within {after:?}: {waiting}")]
    NotSynced {
        /// `--cache-sync-timeout`.
        after: Duration,
        /// What each informer waits for.
        waiting: String,
    },
}

impl ReloadError {
    /// The longest pause before the same content is retried. `None` if only other content can
    /// succeed.
    ///
    /// Errors that follow from the bytes or from the host's flags are not retried. Errors that
    /// depend on the cluster, the machine or another plugin are.
    pub(crate) fn longest_pause(&self) -> Option<Duration> {
        match self {
            Self::File(FileError::Unreadable(_))
            | Self::MissingRights(_)
            | Self::Shared(_)
            | Self::Registered(_)
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
