//! Why a front could not start. Answers to clients are not errors of this kind: they are a
//! `Status`.

use std::net::SocketAddr;

/// A step of starting a [`crate::Server`] that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The development server has no access control worth the name, so it never leaves this
    /// machine.
    #[error("refusing to listen on {0}: the development server serves loopback addresses only")]
    NotLoopback(SocketAddr),
    /// The address is taken, or not there.
    #[error("cannot listen on {addr}")]
    Bind {
        /// What was asked for.
        addr: SocketAddr,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The certificate authority or the server's certificate could not be made.
    #[error("cannot make a certificate")]
    Certificate(#[from] rcgen::Error),
    /// The TLS library refused the certificate.
    #[error("cannot set up tls")]
    Tls(#[from] rustls::Error),
}
