//! How a front is served.
//!
//! Owns the defaults. Must not know sockets.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use crate::access::credentials::Access;
use crate::access::token::Key;
use crate::error::Error;
use crate::state::State;
use crate::tls::clients::Clients;

/// How a front is served.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// A loopback address; port 0 selects a free port.
    pub addr: SocketAddr,
    /// The accepted bearer token. `None` selects the random token of the [`State`], so that a
    /// kubeconfig outlives a restart of the front.
    pub token: Option<String>,
    /// Whether the server does what controllers of a real cluster do to stored objects: it collects
    /// garbage, empties and removes deleted namespaces, releases deleted volumes and claims, and
    /// fills cluster roles that are made of others. A kube-apiserver alone, as envtest starts it,
    /// does none of that. A front decides this for its whole [`State`].
    pub controllers: bool,
    /// Whether roles decide what a user may do. Then a request without credentials is one of the
    /// user `system:anonymous`, and the roles that every cluster has exist. Otherwise every user
    /// may do everything, and a request without credentials is refused.
    pub rbac: bool,
    /// The certificate that the front shows, and its key, in PEM. Default: one that the cluster's
    /// own authority signs.
    pub certificate: Option<(String, String)>,
    /// Authorities of client certificates, in PEM, beside the cluster's own.
    pub client_authorities: String,
    /// The issuer of tokens of service accounts, and the audience that their requests may leave
    /// out. Default: that of a real cluster.
    pub issuer: Option<String>,
    /// The key that signs tokens of service accounts: of the curve P-256, in PEM. Default: one of
    /// the cluster's own.
    pub token_key: Option<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            addr: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            token: None,
            controllers: true,
            rbac: false,
            certificate: None,
            client_authorities: String::new(),
            issuer: None,
            token_key: None,
        }
    }
}

impl Options {
    /// Returns the default options with this address.
    #[must_use]
    pub fn at(addr: SocketAddr) -> Options {
        Options {
            addr,
            ..Options::default()
        }
    }

    /// Returns these options with role-based access control.
    #[must_use]
    pub fn with_rbac(self) -> Options {
        Options { rbac: true, ..self }
    }

    /// Returns whether this PEM can be [`Options::token_key`].
    #[must_use]
    pub fn can_sign_tokens(pem: &str) -> bool {
        Key::from_pem(pem).is_ok()
    }

    /// Returns the check of client certificates: by the cluster's own authority and the given ones.
    pub(crate) fn clients(&self, state: &State) -> Result<Clients, Error> {
        let own = state.secrets().authority()?.pem();
        Clients::of(&format!("{own}\n{}", self.client_authorities))
    }

    pub(crate) fn access(&self, state: &State) -> Result<Access, Error> {
        let mut access = Access::new(state, self.token.clone(), self.rbac)?;
        if let Some(issuer) = &self.issuer {
            access.issuer.clone_from(issuer);
        }
        if let Some(key) = &self.token_key {
            access.key = Arc::new(Key::from_pem(key)?);
        }
        Ok(access)
    }
}
