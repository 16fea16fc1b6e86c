//! Where to connect, and why a connection failed.
//!
//! This module owns the text of each failure. It must not know how a configuration is found or a
//! connection made.

use std::path::PathBuf;
use std::time::Duration;

use crate::error::BoxError;

/// The order in which configurations are tried if no flag names one. controller-runtime tries
/// `$KUBECONFIG` before the in-cluster configuration.
pub const CONFIGURATION_ORDER: &str =
    "the in-cluster configuration, then $KUBECONFIG, then ~/.kube/config";

/// Where to connect. If both fields are `None`, [`CONFIGURATION_ORDER`] applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectOptions {
    /// A kubeconfig file.
    pub kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig; `None` means its current one. With a context the in-cluster
    /// configuration is skipped.
    pub context: Option<String>,
}

/// Why a connection failed. Each text names the file, context or server, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No configuration names a cluster.
    #[error("no cluster configured: not running in a pod, and {} does not exist; pass --kubeconfig or set KUBECONFIG", .0.display())]
    NoKubeconfig(PathBuf),
    /// The given file does not exist.
    #[error("kubeconfig {} does not exist; check --kubeconfig or KUBECONFIG", .0.display())]
    MissingKubeconfig(PathBuf),
    /// A kubeconfig could not be read.
    #[error("cannot read kubeconfig {}", path.display())]
    ReadKubeconfig {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not a valid kubeconfig.
    #[error("kubeconfig {} is malformed: {detail}; fix it, or name another file", path.display())]
    ParseKubeconfig {
        /// The file.
        path: PathBuf,
        /// The parser's message, on one line.
        detail: String,
    },
    /// The context is not in the kubeconfig.
    #[error(
        "context {context:?} is not in kubeconfig {file} (available: {known}); choose one with --context"
    )]
    UnknownContext {
        /// The requested context.
        context: String,
        /// The kubeconfig files.
        file: String,
        /// The defined contexts, joined by commas.
        known: String,
    },
    /// No context is chosen.
    #[error(
        "kubeconfig {file} has no current context; set one, or choose one with --context (available: {known})"
    )]
    NoContext {
        /// The kubeconfig files.
        file: String,
        /// The defined contexts, joined by commas.
        known: String,
    },
    /// The context's cluster, certificates or credentials cannot be used.
    #[error("{place} cannot be used: {detail}")]
    Configure {
        /// The context and its file, or the in-cluster configuration.
        place: String,
        /// What is wrong, on one line.
        detail: String,
    },
    /// The server could not be reached.
    #[error(
        "cannot reach the API server {server}; check that the server runs and that its address is right"
    )]
    Unreachable {
        /// The server, and the source of its address.
        server: String,
        /// Why.
        source: BoxError,
    },
    /// The server did not answer in time.
    #[error("the API server {server} did not answer within {after:?}")]
    Timeout {
        /// The server.
        server: String,
        /// The timeout.
        after: Duration,
    },
    /// The server rejected the credentials (401).
    #[error(
        "the API server {server} rejected the credentials (401): {message}; renew them or choose another context"
    )]
    Unauthorized {
        /// The server.
        server: String,
        /// The server's message.
        message: String,
    },
    /// The server denied `GET /version` (403).
    #[error(
        "the API server {server} denied GET /version (403): {message}; the user lacks the cluster role system:public-info-viewer"
    )]
    Forbidden {
        /// The server.
        server: String,
        /// The server's message.
        message: String,
    },
    /// The server gave another unexpected answer.
    #[error("{server} does not answer like a Kubernetes API server: {detail}")]
    Answer {
        /// The server.
        server: String,
        /// The server's message.
        detail: String,
    },
}
