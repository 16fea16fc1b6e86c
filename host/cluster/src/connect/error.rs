//! Where to connect, and why there is no connection.
//!
//! It owns the words of each failure. It must not know how a configuration is found or a connection
//! made.

use std::path::PathBuf;
use std::time::Duration;

use crate::api::BoxError;

/// The order in which configurations are tried if no flag names one. controller-runtime tries
/// `$KUBECONFIG` before the in-cluster configuration.
pub const CONFIGURATION_ORDER: &str =
    "the in-cluster configuration, then $KUBECONFIG, then ~/.kube/config";

/// Where to connect; if both are `None`, by [`CONFIGURATION_ORDER`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectOptions {
    /// A kubeconfig file.
    pub kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig; `None` means its current one. With a context the in-cluster
    /// configuration is skipped.
    pub context: Option<String>,
}

/// Why there is no connection. Each text names the file, context or server, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// There is nothing that says where the cluster is.
    #[error("no cluster to connect to: not inside one, and {} does not exist; give --kubeconfig or set KUBECONFIG", .0.display())]
    NoKubeconfig(PathBuf),
    /// A file that was named is not there.
    #[error("kubeconfig {} does not exist; check --kubeconfig or KUBECONFIG", .0.display())]
    MissingKubeconfig(PathBuf),
    /// A file could not be read.
    #[error("cannot read kubeconfig {}", path.display())]
    ReadKubeconfig {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is no kubeconfig.
    #[error("kubeconfig {} is malformed: {detail}; repair it or name another with --kubeconfig", path.display())]
    ParseKubeconfig {
        /// The file.
        path: PathBuf,
        /// What the parser says, on one line.
        detail: String,
    },
    /// The context is not in the file.
    #[error(
        "context {context:?} is not in kubeconfig {file}, which has: {known}; choose one with --context"
    )]
    UnknownContext {
        /// What was asked for.
        context: String,
        /// Where.
        file: String,
        /// The contexts that there are, joined by commas.
        known: String,
    },
    /// Nobody said which context.
    #[error("kubeconfig {file} has no current context; choose one with --context: {known}")]
    NoContext {
        /// Where.
        file: String,
        /// The contexts that there are, joined by commas.
        known: String,
    },
    /// The context's cluster, certificates or credentials cannot be used.
    #[error("{place} cannot be used: {detail}")]
    Configure {
        /// Which context of which file, or the in-cluster configuration.
        place: String,
        /// What is wrong, on one line.
        detail: String,
    },
    /// No connection.
    #[error("cannot reach the API server {server}; is it running, and does the address hold?")]
    Unreachable {
        /// The server, and where its address is from.
        server: String,
        /// Why.
        source: BoxError,
    },
    /// No answer.
    #[error("the API server {server} did not answer within {after:?}")]
    Timeout {
        /// The server.
        server: String,
        /// How long was waited.
        after: Duration,
    },
    /// 401.
    #[error(
        "the API server {server} does not accept the credentials (401): {message}; renew them, or choose another context"
    )]
    Unauthorized {
        /// The server.
        server: String,
        /// What it said.
        message: String,
    },
    /// 403.
    #[error(
        "the API server {server} does not allow GET /version (403): {message}; the user lacks the cluster role system:public-info-viewer"
    )]
    Forbidden {
        /// The server.
        server: String,
        /// What it said.
        message: String,
    },
    /// Anything else.
    #[error("{server} does not answer as a Kubernetes API server: {detail}")]
    Answer {
        /// The server.
        server: String,
        /// What it said.
        detail: String,
    },
}
