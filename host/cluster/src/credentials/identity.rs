//! The identity of a client at a server that requests a certificate.

/// A client certificate with its chain, and its key, both PEM.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub certificate: Vec<u8>,
    pub key: Vec<u8>,
}
