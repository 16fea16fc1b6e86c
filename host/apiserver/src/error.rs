//! Why a front cannot start. Refusals of requests are not errors of this kind, but a `Status`.

use std::net::SocketAddr;

/// A failed step of starting a [`crate::Server`].
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
    /// The TLS library refused the certificate.
    #[error("cannot set up tls")]
    Tls(#[from] rustls::Error),
}
