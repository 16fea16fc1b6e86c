//! Kubeconfigs for a front.
//!
//! Owns their text. Must not know where credentials come from.

use std::net::SocketAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// What a client shows.
pub(crate) enum Credentials<'a> {
    Token(&'a str),
    /// A certificate and its key, in PEM.
    Certificate(&'a str, &'a str),
}

/// Returns a kubeconfig for the server at this address, which clients trust by `authority` (PEM).
pub(crate) fn text(addr: SocketAddr, authority: &str, credentials: &Credentials<'_>) -> String {
    let authority = STANDARD.encode(authority);
    let user = match credentials {
        Credentials::Token(token) => format!("token: {token:?}"),
        Credentials::Certificate(certificate, key) => format!(
            "client-certificate-data: {}\n    client-key-data: {}",
            STANDARD.encode(certificate),
            STANDARD.encode(key)
        ),
    };
    format!(
        "apiVersion: v1
kind: Config
current-context: vmhost-dev
clusters:
- name: vmhost-dev
  cluster:
    server: https://{addr}
    certificate-authority-data: {authority}
users:
- name: vmhost-dev
  user:
    {user}
contexts:
- name: vmhost-dev
  context:
    cluster: vmhost-dev
    user: vmhost-dev
    namespace: default
"
    )
}
