//! How a registry is reached: as whom, through which mirror, with whose certificates, for how long.
//! This module must not know what is read or written.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use reqwest::redirect::{Attempt, Policy};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::credentials::Credentials;
use crate::error::Error;
use crate::mirrors::Mirrors;

/// How long an operation may take, unless the caller says otherwise.
const TIMEOUT: Duration = Duration::from_secs(60);

/// How long a connection may take to come about, so that a mirror that is down costs little.
const CONNECT: Duration = Duration::from_secs(5);

/// How often a registry may send a request elsewhere: storage behind it, and a few hops more.
const REDIRECTS: usize = 5;

/// What an access without mirrors refers to.
static NO_MIRRORS: Mirrors = Mirrors::none();

/// How a registry is reached.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    /// As whom.
    pub credentials: &'a Credentials,
    /// Through which mirrors artifacts are read.
    pub mirrors: &'a Mirrors,
    /// Certificate authorities besides those of the machine, as PEM.
    pub authorities: Option<&'a [u8]>,
    /// Without TLS. Only for registries on loopback.
    pub insecure: bool,
    /// How long the whole operation may take.
    pub timeout: Duration,
}

impl<'a> Access<'a> {
    /// Returns the access with these credentials: over TLS, without mirrors.
    pub fn new(credentials: &'a Credentials) -> Self {
        Self {
            credentials,
            mirrors: &NO_MIRRORS,
            authorities: None,
            insecure: false,
            timeout: TIMEOUT,
        }
    }

    /// Returns the scheme for a registry. Refuses a registry without TLS that others may stand in
    /// the way of.
    pub(crate) fn scheme(&self, registry: &str) -> Result<&'static str, Error> {
        if !self.insecure {
            return Ok("https");
        }
        if is_loopback(registry) {
            return Ok("http");
        }
        Err(Error::NotLoopback {
            registry: registry.to_owned(),
        })
    }

    /// Returns the HTTP client for a registry. A server that sends nothing for `idle` has failed.
    pub(crate) fn client(
        &self,
        registry: &str,
        idle: Option<Duration>,
    ) -> Result<reqwest::Client, Error> {
        let setup = |error: reqwest::Error| Error::Setup(vmhost_core::chain(&error));
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("vmhost/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT)
            .redirect(Policy::custom(follow))
            // An address may carry a signature, which is not for the place that it leads to.
            .referer(false)
            .tls_backend_preconfigured(self.tls()?);
        if is_loopback(registry) {
            builder = builder.no_proxy();
        }
        if let Some(idle) = idle {
            builder = builder.read_timeout(idle);
        }
        builder.build().map_err(setup)
    }

    /// Returns the settings of TLS. Reads the machine's authorities, which takes milliseconds, so
    /// not for a registry without TLS: it trusts none.
    fn tls(&self) -> Result<ClientConfig, Error> {
        let mut roots = RootCertStore::empty();
        if !self.insecure {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        if let Some(pem) = self.authorities {
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let added = certificate
                    .map_err(|error| error.to_string())
                    .and_then(|der| roots.add(der).map_err(|error| error.to_string()));
                added.map_err(|why| Error::Setup(format!("a certificate authority: {why}")))?;
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::Setup(error.to_string()))?;
        Ok(config.with_root_certificates(roots).with_no_client_auth())
    }
}

/// Follows a registry to its storage, but to no place that others may stand in the way of.
fn follow(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let from = attempt.previous().last();
    if !from.is_some_and(|from| may_lead(from, attempt.url())) {
        return attempt.error("it leads to a place without TLS");
    }
    if attempt.previous().len() > REDIRECTS {
        return attempt.error("it leads to ever more places");
    }
    attempt.follow()
}

/// Returns whether a server may send a request on to another address: over TLS, or within this
/// machine if the server itself was asked without.
pub(crate) fn may_lead(from: &Url, to: &Url) -> bool {
    match to.scheme() {
        "https" => true,
        "http" => from.scheme() == "http" && to.host_str().is_some_and(is_loopback),
        _ => false,
    }
}

/// Returns whether a registry is on this machine, by its name alone.
pub(crate) fn is_loopback(registry: &str) -> bool {
    let host = match registry.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => registry.split(':').next().unwrap_or_default(),
    };
    let is_address = host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    is_address || host == "localhost"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_sent_on_over_tls_or_within_this_machine() {
        let leads = |from: &str, to: &str| {
            let url = |text: &str| Url::parse(text).unwrap();
            may_lead(&url(from), &url(to))
        };
        for (from, to) in [
            ("https://r.example/v2/", "https://s.example/blob"),
            ("http://127.0.0.1:5000/", "https://s.example/blob"),
            ("http://127.0.0.1:5000/", "http://[::1]:5001/blob"),
        ] {
            assert!(leads(from, to), "{from} to {to}");
        }
        for (from, to) in [
            ("https://r.example/v2/", "http://r.example/v2/"),
            ("https://r.example/v2/", "http://127.0.0.1/blob"),
            ("http://127.0.0.1:5000/", "http://s.example/blob"),
            ("http://127.0.0.1:5000/", "ftp://127.0.0.1/blob"),
        ] {
            assert!(!leads(from, to), "{from} to {to}");
        }
    }

    #[test]
    fn only_loopback_goes_without_tls() {
        let nobody = Credentials::anonymous();
        let mut access = Access::new(&nobody);
        assert_eq!(access.scheme("localhost:5000").unwrap(), "https");
        access.insecure = true;
        for here in [
            "localhost",
            "localhost:5000",
            "127.0.0.1:1",
            "127.9.9.9",
            "[::1]:5",
        ] {
            assert_eq!(access.scheme(here).unwrap(), "http", "{here}");
        }
        for there in [
            "r.example",
            "localhost.example:1",
            "10.0.0.1:5000",
            "[::2]:5",
        ] {
            let error = access.scheme(there).unwrap_err().to_string();
            assert!(
                error.contains(there) && error.contains("--insecure"),
                "{error}"
            );
        }
    }
}
