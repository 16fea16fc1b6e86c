//! The services outside of the cluster that a plugin may call.

use serde::Serialize;

/// Requests that the plugin may send: by default GET, by https, to port 443 of one host.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpGrant {
    host: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheme: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    methods: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_prefix: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    headers: Vec<Header>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url_setting: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    allow_private: bool,
}

#[derive(Clone, Debug, Serialize)]
struct Header {
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    prefix: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<Secret>,
    #[serde(skip_serializing_if = "Option::is_none")]
    setting: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
struct Secret {
    namespace: String,
    name: String,
    key: String,
}

impl HttpGrant {
    /// Grants GETs to a host: a name, `*.domain`, or an address.
    pub fn new(host: &str) -> Self {
        Self {
            host: host.into(),
            port: None,
            scheme: None,
            methods: Vec::new(),
            path_prefix: None,
            headers: Vec::new(),
            url_setting: None,
            allow_private: false,
        }
    }

    /// Sets the port.
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Without TLS.
    pub fn plain_http(mut self) -> Self {
        self.scheme = Some("http");
        self
    }

    /// Sets the methods.
    pub fn methods(mut self, methods: &[&str]) -> Self {
        self.methods = methods.iter().map(|method| (*method).into()).collect();
        self
    }

    /// Only paths that begin with these segments: `/v1`.
    pub fn path_prefix(mut self, path: &str) -> Self {
        self.path_prefix = Some(path.into());
        self
    }

    /// Lets the host add a header with the value of a Secret's key behind `prefix`: `Bearer `. The
    /// policy never sees it.
    pub fn header_from_secret(
        mut self,
        header: &str,
        prefix: &str,
        (namespace, name, key): (&str, &str, &str),
    ) -> Self {
        self.headers.push(Header {
            name: header.into(),
            prefix: prefix.into(),
            secret: Some(Secret {
                namespace: namespace.into(),
                name: name.into(),
                key: key.into(),
            }),
            setting: None,
        });
        self
    }

    /// Lets the host add a header with the value of an operator's setting behind `prefix`. The
    /// policy does not see this setting.
    pub fn header_from_setting(mut self, header: &str, prefix: &str, setting: &str) -> Self {
        self.headers.push(Header {
            name: header.into(),
            prefix: prefix.into(),
            secret: None,
            setting: Some(setting.into()),
        });
        self
    }

    /// A setting of the operator with the URL of the service, for one that is somewhere else in
    /// each installation. It replaces scheme, host and port, and stands before the path.
    pub fn url_setting(mut self, setting: &str) -> Self {
        self.url_setting = Some(setting.into());
        self
    }

    /// The host may have a private address, such as one in the cluster. The operator has to name it
    /// with `--allow-http`, too.
    pub fn allow_private(mut self) -> Self {
        self.allow_private = true;
        self
    }
}
