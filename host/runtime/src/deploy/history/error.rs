//! Why the history has no version to roll back to. Plain data. It must not know how a version is
//! looked for.

/// Why the history has no version to roll back to.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HistoryError {
    /// The operator has turned the history off.
    #[error("this vmhost keeps no versions of plugins (--history off)")]
    Off,
    /// No version ran before the running one.
    #[error(
        "no version ran before the running one that is kept and was not rolled back itself; `vmhost history` lists the versions"
    )]
    NothingBefore,
    /// The digest that was asked for is empty.
    #[error("the digest is empty: give more of the digest, or none for the version before")]
    Empty,
    /// No digest begins with the given text.
    #[error(
        "no kept version has a digest that begins with {0:?}; `vmhost history` lists the versions"
    )]
    Unknown(String),
    /// Several digests begin with the given text.
    #[error("several versions have digests that begin with {to:?}: {}; give more of the digest", .found.join(", "))]
    Ambiguous {
        /// The given text.
        to: String,
        /// The digests that begin with it.
        found: Vec<String>,
    },
    /// The version that was asked for is the running one.
    #[error("{0} runs already")]
    Runs(String),
    /// The version ran before, but its bytes are not kept any more.
    #[error(
        "the bytes of {0} are not kept any more: replace the plugin's file by that version instead"
    )]
    Gone(String),
    /// The kept bytes of the version cannot be used.
    #[error(
        "the kept file of {digest} cannot be used: {why}; replace the plugin's file by that version instead"
    )]
    Unreadable {
        /// The version's digest.
        digest: String,
        /// What is wrong with the bytes.
        why: String,
    },
}
