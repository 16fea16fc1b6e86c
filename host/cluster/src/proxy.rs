//! Chooses the proxy, if any, between the host and an API server, by client-go's rules: the
//! `proxy-url` of the kubeconfig's cluster, otherwise the environment.
//!
//! This module owns the meaning of `proxy-url`, `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`; the
//! variables have the meaning of Go's `golang.org/x/net/http/httpproxy`, the package that client-go
//! uses. It must not open connections, and it keeps a proxy's password out of every text.

use std::fmt;
use std::net::IpAddr;

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::Matcher;
use ipnet::IpNet;

/// The port of a SOCKS proxy whose URL has none.
const SOCKS_PORT: u16 = 1080;

/// The proxy variables of the process; a variable that is `None` or empty is not set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment {
    /// `HTTPS_PROXY` or `https_proxy`: the proxy for servers with TLS.
    pub https_proxy: Option<String>,
    /// `HTTP_PROXY` or `http_proxy`: the proxy for servers without TLS.
    pub http_proxy: Option<String>,
    /// `NO_PROXY` or `no_proxy`: the servers that are reached without a proxy.
    pub no_proxy: String,
}

/// One proxy: its address and its protocol.
#[derive(Clone)]
pub(crate) struct Proxy {
    /// Where to connect; the scheme is `https` if the proxy itself has TLS, otherwise `http`.
    pub address: Uri,
    pub protocol: Protocol,
    /// For messages: the URL without user and password, and the setting that it comes from.
    name: String,
}

/// The protocol of a proxy, with the credentials for it.
#[derive(Clone)]
pub(crate) enum Protocol {
    /// HTTP, with the value of `Proxy-Authorization`.
    Http(Option<HeaderValue>),
    /// SOCKS5, with user and password. The proxy resolves the server's name, as for client-go.
    Socks5(Option<(String, String)>),
}

/// A setting that is not the URL of a proxy. The text omits the value, which may contain a
/// password.
#[derive(Debug, thiserror::Error)]
#[error(
    "{setting} is not the URL of a proxy, such as http://proxy:3128 (schemes: http, https, socks5, socks5h)"
)]
pub(crate) struct BadProxy {
    setting: &'static str,
}

impl Environment {
    pub(crate) fn of_process() -> Self {
        let first = |names: [&str; 2]| {
            let mut values = names
                .into_iter()
                .filter_map(|name| std::env::var(name).ok());
            values.find(|value| !value.is_empty())
        };
        Self {
            https_proxy: first(["HTTPS_PROXY", "https_proxy"]),
            http_proxy: first(["HTTP_PROXY", "http_proxy"]),
            no_proxy: first(["NO_PROXY", "no_proxy"]).unwrap_or_default(),
        }
    }

    /// Returns the proxy for this server. `proxy_url`, from the kubeconfig, applies to every
    /// server, also to one on loopback (the proxy may be the entrance of a tunnel to another
    /// machine). The variables do not apply to a server on loopback or in `NO_PROXY`.
    pub(crate) fn proxy_for(
        &self,
        server: &Uri,
        proxy_url: Option<&str>,
    ) -> Result<Option<Proxy>, BadProxy> {
        if let Some(url) = proxy_url.filter(|url| !url.is_empty()) {
            let setting = "proxy-url";
            // Only a variable may omit the scheme.
            let proxy = Proxy::parse(url, setting).filter(|_| url.contains("://"));
            return proxy.ok_or(BadProxy { setting }).map(Some);
        }
        let (setting, url) = match server.scheme_str() {
            Some("https") => ("HTTPS_PROXY", &self.https_proxy),
            _ => ("HTTP_PROXY", &self.http_proxy),
        };
        match url {
            Some(url) if !bypasses_proxy(server, &self.no_proxy) => {
                let proxy = Proxy::parse(url, setting);
                proxy.ok_or(BadProxy { setting }).map(Some)
            }
            _ => Ok(None),
        }
    }
}

impl Proxy {
    /// Parses a URL; without a scheme it is an HTTP proxy. `setting` is the source of the URL.
    fn parse(url: &str, setting: &str) -> Option<Self> {
        // hyper-util's matcher only serves as the parser. It would match servers by curl's rules.
        let any_server = Uri::from_static("http://server");
        let url = match url.split_once("://") {
            Some((scheme, rest)) => format!("{}://{rest}", scheme.to_ascii_lowercase()),
            None => format!("http://{url}"),
        };
        let parsed = Matcher::builder().all(url).build().intercept(&any_server)?;
        let uri = parsed.uri();
        let scheme = uri.scheme_str()?;
        let name = format!("{scheme}://{}, from {setting}", uri.authority()?);
        let (address, protocol) = match scheme {
            "http" | "https" => {
                let header = parsed.basic_auth().cloned();
                (uri.clone(), Protocol::Http(header))
            }
            "socks5" | "socks5h" => {
                let (host, port) = (uri.host()?, uri.port_u16().unwrap_or(SOCKS_PORT));
                let address = Uri::try_from(format!("http://{host}:{port}/")).ok()?;
                let user = parsed.raw_auth();
                let user = user.map(|(name, password)| (name.to_owned(), password.to_owned()));
                (address, Protocol::Socks5(user))
            }
            _ => return None,
        };
        Some(Self {
            address,
            protocol,
            name,
        })
    }

    /// Returns whether the proxy forwards single requests to this server, instead of opening a
    /// tunnel to it.
    pub(crate) fn forwards(&self, server: &Uri) -> bool {
        matches!(self.protocol, Protocol::Http(_)) && server.scheme_str() == Some("http")
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Returns whether this server bypasses the variables' proxies: it is on loopback, or an entry of
/// `NO_PROXY` matches it.
fn bypasses_proxy(server: &Uri, no_proxy: &str) -> bool {
    let host = server.host().unwrap_or_default().to_ascii_lowercase();
    let ip = parse_ip(&host);
    if host == "localhost" || ip.is_some_and(|ip| ip.is_loopback()) {
        return true;
    }
    let port = server.port_u16().unwrap_or(match server.scheme_str() {
        Some("https") => 443,
        _ => 80,
    });
    let no_proxy = no_proxy.to_ascii_lowercase();
    let mut entries = no_proxy.split(',').map(str::trim);
    entries.any(|entry| matches_entry(entry, &host, ip, port))
}

/// Matches one entry of `NO_PROXY`: `*`, a network (`10.0.0.0/8`), an address or a domain, the
/// latter two with or without a port.
fn matches_entry(entry: &str, host: &str, ip: Option<IpAddr>, port: u16) -> bool {
    if entry == "*" {
        return true;
    }
    if let Ok(network) = entry.parse::<IpNet>() {
        return ip.is_some_and(|ip| network.contains(&ip));
    }
    let (name, entry_port) = match entry.rsplit_once(':') {
        // Colons in the name without brackets: an IPv6 address without a port.
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => (name, Some(port)),
        _ => (entry, None),
    };
    // An empty port is any port, as in Go.
    let entry_port = entry_port.filter(|port| !port.is_empty());
    if name.is_empty() || entry_port.is_some_and(|wanted| wanted.parse() != Ok(port)) {
        return false;
    }
    if let Some(address) = parse_ip(name) {
        return ip == Some(address);
    }
    // `.domain` and `*.domain` match subdomains; `domain` also matches itself.
    let name = name.strip_prefix("*.").map_or(name, |_| &name[1..]);
    let is_below = |domain: &str| {
        let rest = host.strip_suffix(domain);
        rest.is_some_and(|rest| domain.starts_with('.') || rest.ends_with('.'))
    };
    host == name || is_below(name)
}

/// Parses an address, in brackets or not. An IPv4 address in IPv6 notation becomes IPv4.
fn parse_ip(host: &str) -> Option<IpAddr> {
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let ip: IpAddr = bare.unwrap_or(host).parse().ok()?;
    Some(ip.to_canonical())
}

#[cfg(test)]
mod tests;
