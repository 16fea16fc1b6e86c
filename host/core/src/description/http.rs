//! The HTTP requests that a plugin may send to services outside of the cluster. Plain data.

use serde::{Deserialize, Serialize};

/// Requests that a plugin may send: to one host, or to the hosts below one domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HttpGrant {
    /// A name (`api.example.com`), all names below a domain (`*.example.com`), or an IP address.
    pub host: String,
    /// The port. Default: 443, or 80 with `"scheme": "http"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// `https` or `http`. Default: `https`.
    #[serde(default, skip_serializing_if = "HttpScheme::is_https")]
    pub scheme: HttpScheme,
    /// The methods. Default: `GET` only.
    #[serde(default = "only_get")]
    pub methods: Vec<String>,
    /// The path that requests begin with, whole segments of it. Default: `/`.
    #[serde(default = "root", skip_serializing_if = "is_root")]
    pub path_prefix: String,
    /// Headers that the host adds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<HttpHeader>,
    /// The operator's setting with a URL that replaces scheme, host and port, and stands before the
    /// path, if it is set: for a service that is somewhere else in each installation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url_setting: Option<String>,
    /// Whether the host may have a private address, such as one in the cluster. The operator has to
    /// allow it by name, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_private: bool,
}

/// The scheme of a URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HttpScheme {
    /// With TLS.
    #[default]
    Https,
    /// Without TLS.
    Http,
}

/// A header that the host adds to a request. The policy never sees its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HttpHeader {
    /// The header's name: `Authorization`.
    pub name: String,
    /// What stands before the value: `Bearer `.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// The Secret that holds the value. Either this or `setting` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretKey>,
    /// The operator's setting that holds the value (`--setting PLUGIN.NAME=VALUE`). The policy does
    /// not see this setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
}

/// One value of a Secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecretKey {
    /// The Secret's namespace.
    pub namespace: String,
    /// The Secret's name.
    pub name: String,
    /// The key in its `data`.
    pub key: String,
}

impl HttpScheme {
    /// The scheme as a URL has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
        }
    }

    /// The port of URLs without one.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Https => 443,
            Self::Http => 80,
        }
    }

    fn is_https(&self) -> bool {
        *self == Self::Https
    }
}

impl HttpGrant {
    /// The port.
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(self.scheme.default_port())
    }

    /// Returns whether the grant names one host, and not all hosts below a domain.
    pub fn names_one_host(&self) -> bool {
        !self.host.starts_with("*.")
    }

    /// Returns the grant with the place that a setting says, if there is one. A setting that is no
    /// URL grants nothing.
    pub fn placed<'s>(&self, setting: impl FnOnce(&str) -> Option<&'s str>) -> Self {
        let mut placed = self.clone();
        if let Some(url) = self.url_setting.as_deref().and_then(setting) {
            match Place::of(url) {
                Some(place) => {
                    let path = place.path.trim_end_matches('/');
                    placed.path_prefix = format!("{path}{}", self.path_prefix);
                    (placed.scheme, placed.port) = (place.scheme, Some(place.port));
                    placed.host = place.host;
                    // As in a description: anybody on the way would read them.
                    let is_plain = placed.scheme == HttpScheme::Http;
                    if is_plain && !placed.headers.is_empty() && !placed.allow_private {
                        placed.host.clear();
                    }
                }
                None => placed.host.clear(),
            }
        }
        placed
    }

    /// What the grant asks for, as readable lines.
    pub fn claims(&self) -> impl Iterator<Item = String> {
        let private = match self.allow_private {
            true => ", also at private addresses",
            false => "",
        };
        let (scheme, port) = (self.scheme.as_str(), self.port());
        let (host, path) = (&self.host, &self.path_prefix);
        let setting = match &self.url_setting {
            Some(setting) => format!(" or where the setting {setting} says"),
            None => String::new(),
        };
        let place = format!("{scheme}://{host}:{port}{path}{setting}{private}");
        let methods = self.methods.iter().map({
            let place = place.clone();
            move |method| format!("send {method} to {place}")
        });
        // With its methods: a version that sends a header with one more method asks for more.
        let headers = self.headers.iter().flat_map(move |header| {
            let name = &header.name;
            let value = match (&header.secret, &header.setting) {
                (Some(secret), _) => format!(
                    "key {} of Secret {}/{}",
                    secret.key, secret.namespace, secret.name
                ),
                (None, setting) => format!("setting {}", setting.as_deref().unwrap_or_default()),
            };
            let place = place.clone();
            let methods = self.methods.iter();
            methods.map(move |method| format!("send {name} from {value} with {method} to {place}"))
        });
        methods.chain(headers)
    }
}

/// The parts of a URL without a query.
struct Place {
    scheme: HttpScheme,
    host: String,
    port: u16,
    path: String,
}

impl Place {
    fn of(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let scheme = match scheme {
            "https" => HttpScheme::Https,
            "http" => HttpScheme::Http,
            _ => return None,
        };
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let (host, port) = match authority.rsplit_once(':') {
            // The colon belongs to an IPv6 address.
            Some((_, after)) if after.ends_with(']') => (authority, None),
            Some((host, port)) => (host, Some(port.parse().ok()?)),
            None => (authority, None),
        };
        let inner = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let host = inner.unwrap_or(host).to_ascii_lowercase();
        let is_sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
        let is_host = !host.is_empty() && host.chars().all(is_sound);
        let is_path = !path.contains(['?', '#', '%']);
        (is_host && is_path).then(|| Self {
            scheme,
            host,
            port: port.unwrap_or(scheme.default_port()),
            path: path.to_owned(),
        })
    }
}

fn only_get() -> Vec<String> {
    vec!["GET".to_owned()]
}

fn root() -> String {
    "/".to_owned()
}

fn is_root(path: &str) -> bool {
    path == "/"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_says_where_a_service_is() {
        let grant = HttpGrant {
            host: "cloud.example.com".into(),
            port: None,
            scheme: HttpScheme::Https,
            methods: only_get(),
            path_prefix: "/v1".into(),
            headers: Vec::new(),
            url_setting: Some("url".into()),
            allow_private: true,
        };
        assert_eq!(grant.placed(|_| None), grant);
        for (url, scheme, host, port, path) in [
            ("http://127.0.0.1:8080", "http", "127.0.0.1", 8080, "/v1"),
            (
                "https://Cloud.Corp/api/",
                "https",
                "cloud.corp",
                443,
                "/api/v1",
            ),
            ("http://[::1]:9/x", "http", "::1", 9, "/x/v1"),
            ("http://[::1]", "http", "::1", 80, "/v1"),
            // What is no URL names no host.
            ("cloud.corp", "https", "", 443, "/v1"),
            ("ftp://cloud.corp", "https", "", 443, "/v1"),
            ("http://user@cloud.corp", "https", "", 443, "/v1"),
            ("http://cloud.corp:http", "https", "", 443, "/v1"),
            ("http://cloud.corp/x?y", "https", "", 443, "/v1"),
        ] {
            let placed = grant.placed(|name| Some(url).filter(|_| name == "url"));
            let parts = (placed.scheme.as_str(), placed.host.as_str(), placed.port());
            assert_eq!(parts, (scheme, host, port), "{url}");
            assert_eq!(placed.path_prefix, path, "{url}");
        }
    }
}
