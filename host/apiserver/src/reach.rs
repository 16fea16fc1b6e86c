//! How a webhook is reached: the `clientConfig` of a configuration or a definition.
//!
//! Owns its form, and the address that a Service stands for. Must not know what is sent there.

pub(crate) mod check;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::object::Key;
use crate::store::Store;

const SERVICES: &str = "/services";

/// Where a webhook is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reach {
    url: String,
    service: Option<Service>,
    /// The authorities that may have signed its certificate, in PEM; empty: those of the system.
    authorities: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Service {
    namespace: String,
    name: String,
    path: String,
    port: u64,
}

/// An address to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The URL that is connected to.
    pub url: String,
    /// Host and port as the webhook sees them.
    pub host: String,
    /// The name in its certificate, if it is not the host of the URL.
    pub name: Option<String>,
    pub authorities: Vec<u8>,
}

impl Reach {
    /// Reads a `clientConfig` that was checked.
    pub fn read(config: &Value) -> Reach {
        let text = |of: &Value, field: &str| of[field].as_str().unwrap_or_default().to_owned();
        let service = config.get("service").filter(|service| service.is_object());
        let bundle = STANDARD
            .decode(text(config, "caBundle"))
            .unwrap_or_default();
        Reach {
            url: cleaned(&text(config, "url")),
            service: service.map(|service| Service {
                namespace: text(service, "namespace"),
                name: text(service, "name"),
                path: text(service, "path"),
                port: service["port"].as_u64().unwrap_or(443),
            }),
            // A bundle of white space counts as none.
            authorities: match bundle.iter().all(u8::is_ascii_whitespace) {
                true => Vec::new(),
                false => bundle,
            },
        }
    }

    /// Returns the URL as refusals show it, with this query.
    pub fn shown(&self, query: &str) -> String {
        match &self.service {
            Some(service) => format!("https://{}{}{query}", service.host(), service.rest()),
            None => format!("{}{query}", self.url),
        }
    }

    /// Returns the address to connect to; an error says why there is none.
    pub fn address(&self, store: &Store, query: &str) -> Result<Address, String> {
        let Some(service) = &self.service else {
            let rest = self.url.split_once("://").map_or("", |(_, rest)| rest);
            return Ok(Address {
                url: self.shown(query),
                host: rest.split('/').next().unwrap_or_default().to_owned(),
                name: None,
                authorities: self.authorities.clone(),
            });
        };
        let host = service.resolve(store)?;
        Ok(Address {
            url: format!("https://{host}{}{query}", service.rest()),
            host: service.host(),
            name: Some(service.certified()),
            authorities: self.authorities.clone(),
        })
    }
}

impl Service {
    fn certified(&self) -> String {
        format!("{}.{}.svc", self.name, self.namespace)
    }

    fn host(&self) -> String {
        format!("{}:{}", self.certified(), self.port)
    }

    /// Returns the path with the slash that it begins with.
    fn rest(&self) -> String {
        match self.path.strip_prefix('/') {
            Some(_) => self.path.clone(),
            None => format!("/{}", self.path),
        }
    }

    /// Returns host and port behind the service. There is no network of services here: only one
    /// with an external name leads somewhere.
    fn resolve(&self, store: &Store) -> Result<String, String> {
        let (name, port) = (&self.name, self.port);
        let Some(service) = store.get(SERVICES, &Key::new(&self.namespace, name)) else {
            return Err(format!("service {name:?} not found"));
        };
        let text = |field: &str| service["spec"][field].as_str().unwrap_or_default();
        if text("type") == "ExternalName" {
            return Ok(format!("{}:{port}", text("externalName")));
        }
        let ip = text("clusterIP");
        if ip == "None" {
            return Err("cannot route to service with ClusterIP \"None\"".to_owned());
        }
        let ports = service["spec"]["ports"].as_array().into_iter().flatten();
        let mut ports = ports.filter_map(|port| port["port"].as_u64());
        Err(match ports.any(|known| known == port) {
            true => format!("dial tcp {ip}:{port}: connect: no route to host"),
            false => format!("no service port {port} found for service {name:?}"),
        })
    }
}

/// Returns a URL with its path as Go's `path.Join` writes it: envtest registers `//path`.
fn cleaned(url: &str) -> String {
    let after = url.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = url.split_at(after);
    let Some((host, path)) = rest.split_once('/') else {
        return url.to_owned();
    };
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("{scheme}{host}/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    #[test]
    fn an_address_is_a_url_or_that_of_a_service() {
        let mut store = Store::new();
        let url = Reach::read(&json!({ "url": "https://127.0.0.1:9443/admit" }));
        let address = url.address(&store, "?timeout=10s").unwrap();
        assert_eq!(address.url, "https://127.0.0.1:9443/admit?timeout=10s");
        assert_eq!(
            (address.host.as_str(), address.name),
            ("127.0.0.1:9443", None)
        );

        assert_eq!(cleaned("https://a:1//b/./c/../d/"), "https://a:1/b/d");
        assert_eq!(cleaned("https://a:1"), "https://a:1");

        let service = json!({ "service": { "namespace": "n", "name": "s", "path": "/p" } });
        let reach = Reach::read(&service);
        assert_eq!(
            reach.shown("?timeout=1s"),
            "https://s.n.svc:443/p?timeout=1s"
        );
        let missing = reach.address(&store, "").unwrap_err();
        assert_eq!(missing, "service \"s\" not found");

        let storage: Arc<str> = SERVICES.into();
        let spec =
            json!({ "type": "ClusterIP", "clusterIP": "10.96.0.9", "ports": [{ "port": 443 }] });
        store.put(
            &storage,
            Key::new("n", "s"),
            json!({ "metadata": {}, "spec": spec }),
        );
        let unreachable = reach.address(&store, "").unwrap_err();
        assert_eq!(
            unreachable,
            "dial tcp 10.96.0.9:443: connect: no route to host"
        );

        let spec = json!({ "type": "ExternalName", "externalName": "localhost" });
        store.put(
            &storage,
            Key::new("n", "s"),
            json!({ "metadata": {}, "spec": spec }),
        );
        let external = reach.address(&store, "").unwrap();
        assert_eq!(external.url, "https://localhost:443/p");
        assert_eq!(external.name.as_deref(), Some("s.n.svc"));
    }
}
