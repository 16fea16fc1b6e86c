//! Why a front cannot start, or a cluster cannot be read. Refusals of requests are not errors of
//! this kind, but a `Status`.

use std::net::SocketAddr;
use std::path::PathBuf;

/// A failed step of opening a [`crate::State`] or starting a [`crate::Server`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address is not loopback. The development server has no real access control, so it must
    /// not be reachable from other machines.
    #[error("refusing to listen on {0}: the development server serves loopback addresses only")]
    NotLoopback(SocketAddr),
    /// The address is in use or not available.
    #[error("cannot listen on {addr}")]
    Bind {
        /// The requested address.
        addr: SocketAddr,
        /// The underlying error.
        #[source]
        source: std::io::Error,
    },
    /// The certificate authority or the server's certificate cannot be created.
    #[error("cannot create a certificate")]
    Certificate(#[from] rcgen::Error),
    /// A file of the folder that keeps a cluster cannot be read or written.
    #[error("cannot use {}, which keeps the cluster", .path.display())]
    State {
        /// The file or the folder.
        path: PathBuf,
        /// The underlying error.
        #[source]
        source: std::io::Error,
    },
    /// Another process uses the folder that keeps a cluster.
    #[error("{} keeps the cluster of another process that is running", .0.display())]
    StateInUse(PathBuf),
    /// A file of the folder that keeps a cluster is not as it was written.
    #[error("{} is damaged at byte {at}", .path.display())]
    StateDamaged {
        /// The file.
        path: PathBuf,
        /// The beginning of the damaged line.
        at: u64,
    },
    /// The key that signs tokens of service accounts cannot be created, or is not one of the curve
    /// P-256 in the form PKCS #8.
    #[error("cannot use the key that signs tokens of service accounts")]
    TokenKey,
    /// The certificate that a front shows, or its key, is not PEM.
    #[error("cannot read the server's certificate or its key")]
    ServingCertificate,
    /// The authority of client certificates is not a certificate in PEM.
    #[error("cannot read the authority of client certificates")]
    ClientAuthority,
    /// The TLS library refused the certificate.
    #[error("cannot set up tls")]
    Tls(#[from] rustls::Error),
}
