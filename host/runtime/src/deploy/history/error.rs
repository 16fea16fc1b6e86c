//! Why the history has no version to roll back to.

/// Why the history has no version to roll back to.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HistoryError {
    /// The operator wants no history.
    #[error("this vmhost keeps no versions of plugins (--history off)")]
    Off,
    /// The running version is the only one.
    #[error(
        "no version ran before the running one that is kept and was not rolled back itself; `vmhost history` lists the versions"
    )]
    NothingBefore,
    /// The text is empty.
    #[error("the digest is empty: give more of the digest, or none for the version before")]
    Empty,
    /// No digest begins with the text.
    #[error(
        "no kept version has a digest that begins with {0:?}; `vmhost history` lists the versions"
    )]
    Unknown(String),
    /// Several digests begin with the text.
    #[error("several versions have digests that begin with {to:?}: {}; give more of the digest", .found.join(", "))]
    Ambiguous {
        /// The text.
        to: String,
        /// The digests.
        found: Vec<String>,
    },
    /// The version runs.
    #[error("{0} runs already")]
    Runs(String),
    /// The version ran, but its bytes are gone.
    #[error(
        "the bytes of {0} are not kept any more: replace the plugin's file by that version instead"
    )]
    Gone(String),
    /// The bytes of the version cannot be used.
    #[error(
        "the kept file of {digest} cannot be used: {why}; replace the plugin's file by that version instead"
    )]
    Unreadable {
        /// The version.
        digest: String,
        /// Why.
        why: String,
    },
}
