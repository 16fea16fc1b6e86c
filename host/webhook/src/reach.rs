//! How an API server reaches the host.
//!
//! This module owns the two forms of `clientConfig`, and the names that a certificate needs for
//! them. It must not know what is registered.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use serde_json::{Value, json};

/// The port of a Service if none is given, as in Kubernetes.
const PORT: u16 = 443;

/// How an API server reaches the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// By a Service in its cluster.
    Service {
        /// The Service's namespace.
        namespace: String,
        /// The Service's name.
        name: String,
        /// The Service's port.
        port: u16,
    },
    /// By an address.
    Url(String),
}

/// Why a flag does not say where the host is reached.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReachError {
    /// Not `NS/NAME[:PORT]`.
    #[error("--webhook-service {0:?}: give the Service as NAMESPACE/NAME or NAMESPACE/NAME:PORT")]
    Service(String),
    /// Not an address that an API server takes.
    #[error(
        "--webhook-url {0:?}: give an address as https://HOST[:PORT][/PATH], without user, query and fragment"
    )]
    Url(String),
}

impl Reach {
    /// Reads `NS/NAME[:PORT]`.
    pub fn service(text: &str) -> Result<Reach, ReachError> {
        let wrong = || ReachError::Service(text.to_owned());
        let (namespace, rest) = text.split_once('/').ok_or_else(wrong)?;
        let (name, port) = match rest.split_once(':') {
            None => (rest, PORT),
            Some((name, port)) => (name, port.parse().map_err(|_| wrong())?),
        };
        let is_name = |name: &str| {
            let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            !name.is_empty() && name.chars().all(is_part)
        };
        if !is_name(namespace) || !is_name(name) || port == 0 {
            return Err(wrong());
        }
        Ok(Reach::Service {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            port,
        })
    }

    /// Reads an address. The paths of webhooks are appended to it.
    pub fn url(text: &str) -> Result<Reach, ReachError> {
        let wrong = || ReachError::Url(text.to_owned());
        let url: Uri = text.parse().map_err(|_| wrong())?;
        let authority = url.authority().ok_or_else(wrong)?.as_str();
        let is_bare = !authority.contains('@') && !text.contains(['?', '#']);
        if url.scheme_str() != Some("https") || !is_bare {
            return Err(wrong());
        }
        Ok(Reach::Url(text.trim_end_matches('/').to_owned()))
    }

    /// Returns the names that the host's certificate must carry: DNS names and addresses.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        match self {
            Self::Service {
                namespace, name, ..
            } => {
                // The API server asks for the first, programs in the cluster for all.
                let service = format!("{name}.{namespace}.svc");
                let whole = format!("{service}.cluster.local");
                vec![service, whole, format!("{name}.{namespace}")]
            }
            Self::Url(url) => {
                let url: Option<Uri> = url.parse().ok();
                let host = url.as_ref().and_then(Uri::host);
                let bare = host.map(|host| host.trim_matches(['[', ']']).to_owned());
                bare.into_iter().collect()
            }
        }
    }

    /// Returns the `clientConfig` of one path.
    pub(crate) fn client_config(&self, path: &str, bundle: Option<&str>) -> Value {
        let mut config = match self {
            Self::Service {
                namespace,
                name,
                port,
            } => json!({
                "service": {"namespace": namespace, "name": name, "port": port, "path": path},
            }),
            Self::Url(url) => json!({ "url": format!("{url}{path}") }),
        };
        if let Some(bundle) = bundle {
            config["caBundle"] = Value::from(STANDARD.encode(bundle));
        }
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_read() {
        let service = |port| Reach::Service {
            namespace: "n".to_owned(),
            name: "s".to_owned(),
            port,
        };
        assert_eq!(Reach::service("n/s"), Ok(service(443)));
        assert_eq!(Reach::service("n/s:9443"), Ok(service(9443)));
        for odd in [
            "", "s", "n/", "/s", "n/s:", "n/s:0", "n/s:x", "n/s/x", "N/s",
        ] {
            let error = Reach::service(odd);
            assert_eq!(error, Err(ReachError::Service(odd.to_owned())));
        }
        let names = ["s.n.svc", "s.n.svc.cluster.local", "s.n"];
        assert_eq!(service(443).names(), names);
    }

    #[test]
    fn addresses_are_read() {
        for (text, name, path) in [
            ("https://a.test", "a.test", "https://a.test/admit/p/w"),
            (
                "https://a.test:9443/",
                "a.test",
                "https://a.test:9443/admit/p/w",
            ),
            (
                "https://127.0.0.1:1/x",
                "127.0.0.1",
                "https://127.0.0.1:1/x/admit/p/w",
            ),
            ("https://[::1]:1", "::1", "https://[::1]:1/admit/p/w"),
        ] {
            let reach = Reach::url(text).unwrap();
            assert_eq!(reach.names(), [name]);
            let config = reach.client_config("/admit/p/w", None);
            assert_eq!(config, json!({ "url": path }));
        }
        for odd in [
            "",
            "a.test",
            "http://a.test",
            "https://u@a.test",
            "https://a.test/?q",
            "/x",
        ] {
            assert!(Reach::url(odd).is_err(), "{odd}");
        }
    }
}
