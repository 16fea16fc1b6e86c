//! Validation of the HTTP requests that a description asks for. This module must not know what the
//! operator allows.

use std::net::IpAddr;

use super::check_names::field;
use super::{DescriptionError, HttpGrant, HttpHeader, HttpScheme};
use crate::key::is_path_segment;

/// Maximum number of grants of a plugin.
const GRANTS: usize = 64;

/// Maximum number of headers that the host adds to a request.
const HEADERS: usize = 16;

/// The methods that a grant may name. `CONNECT` would open a tunnel, and `TRACE` would show the
/// headers that the host adds.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// Headers that belong to the connection, and that only the host sets.
pub const HTTP_CONNECTION_HEADERS: [&str; 12] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Checks the field `http` of a description.
impl HttpGrant {
    pub(super) fn check_all(grants: &[Self]) -> Result<(), DescriptionError> {
        if grants.len() > GRANTS {
            return Err(field("http", "at most 64"));
        }
        for (index, grant) in grants.iter().enumerate() {
            grant.check(&format!("http[{index}]"))?;
        }
        Ok(())
    }

    fn check(&self, at: &str) -> Result<(), DescriptionError> {
        self.check_host(at)?;
        if self.url_setting.as_deref() == Some("") {
            return Err(field(&format!("{at}.urlSetting"), "must not be empty"));
        }
        if self.port == Some(0) {
            return Err(field(&format!("{at}.port"), "from 1 to 65535"));
        }
        if self.methods.is_empty() || self.methods.len() > METHODS.len() {
            let reason = format!("1 to 7 of {}", METHODS.join(", "));
            return Err(field(&format!("{at}.methods"), &reason));
        }
        let unknown = |method: &&String| !METHODS.contains(&method.as_str());
        if let Some(method) = self.methods.iter().find(unknown) {
            let reason = format!("{method:?} is not one of {}", METHODS.join(", "));
            return Err(field(&format!("{at}.methods"), &reason));
        }
        self.check_path(at)?;
        if self.headers.len() > HEADERS {
            return Err(field(&format!("{at}.headers"), "at most 16"));
        }
        for (index, header) in self.headers.iter().enumerate() {
            header.check(&format!("{at}.headers[{index}]"))?;
        }
        if self.scheme == HttpScheme::Http && !self.headers.is_empty() && !self.allow_private {
            return Err(field(
                &format!("{at}.headers"),
                "with scheme http, anybody on the way would read them: use https (http is possible with allowPrivate, for a service in the cluster)",
            ));
        }
        Ok(())
    }

    fn check_host(&self, at: &str) -> Result<(), DescriptionError> {
        let at = format!("{at}.host");
        let host = self.host.as_str();
        if host.parse::<IpAddr>().is_ok() {
            return Ok(());
        }
        let domain = host.strip_prefix("*.");
        if !is_host(domain.unwrap_or(host)) {
            let reason = format!(
                "{host:?} is not a host name in lower case, *.DOMAIN, or an IP address without brackets"
            );
            return Err(field(&at, &reason));
        }
        match domain {
            Some(domain) if !domain.contains('.') => Err(field(
                &at,
                &format!("{host:?} would be all hosts of a top-level domain"),
            )),
            Some(_) if self.allow_private => Err(field(
                &at,
                "allowPrivate needs the name of one host, without *",
            )),
            _ => Ok(()),
        }
    }

    fn check_path(&self, at: &str) -> Result<(), DescriptionError> {
        let path = &self.path_prefix;
        let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '?' | '#' | '%' | '\\' | ';');
        let mut segments = path.split('/').skip(1);
        let is_sound = path.starts_with('/')
            && path.chars().all(is_plain)
            && segments.all(|segment| segment.is_empty() || is_path_segment(segment));
        if is_sound {
            return Ok(());
        }
        Err(field(
            &format!("{at}.pathPrefix"),
            &format!("{path:?} is not a path such as /v1/machines"),
        ))
    }
}

impl HttpHeader {
    fn check(&self, at: &str) -> Result<(), DescriptionError> {
        let token = |c: char| c.is_ascii_alphanumeric() || "!#$&'*+-.^_`|~".contains(c);
        if self.name.is_empty() || !self.name.chars().all(token) {
            let reason = format!("{:?} is not the name of a header", self.name);
            return Err(field(&format!("{at}.name"), &reason));
        }
        let name = self.name.to_ascii_lowercase();
        if HTTP_CONNECTION_HEADERS.contains(&name.as_str()) {
            let reason = format!("{name} belongs to the connection: the host sets it");
            return Err(field(&format!("{at}.name"), &reason));
        }
        if !self
            .prefix
            .chars()
            .all(|c| c == ' ' || c.is_ascii_graphic())
        {
            return Err(field(&format!("{at}.prefix"), "printable ASCII only"));
        }
        match (&self.secret, &self.setting) {
            (Some(_), Some(_)) | (None, None) => {
                Err(field(at, "exactly one of secret and setting must be set"))
            }
            (None, Some(setting)) if setting.is_empty() => {
                Err(field(&format!("{at}.setting"), "must not be empty"))
            }
            (Some(secret), None) => {
                let parts = [&secret.namespace, &secret.name, &secret.key];
                if parts.iter().all(|part| is_path_segment(part)) {
                    return Ok(());
                }
                let reason = "namespace, name and key of a Secret must be set, without / and %";
                Err(field(&format!("{at}.secret"), reason))
            }
            (None, Some(_)) => Ok(()),
        }
    }
}

/// Returns whether this is a DNS name in lower case, without a dot at its end. A name whose last
/// label is a number is refused: resolvers read `127.1` as an address.
fn is_host(name: &str) -> bool {
    let label = |label: &str| {
        let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        (1..=63).contains(&label.len())
            && label.chars().all(|c| edge(c) || matches!(c, '-' | '_'))
            && label.starts_with(|c| edge(c) || c == '_')
            && label.ends_with(edge)
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_number = last.starts_with(|c: char| c.is_ascii_digit());
    name.len() <= 253 && !is_number && name.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use crate::description::{Description, HttpScheme};

    fn parse(http: &str) -> Result<Description, String> {
        let text = format!(
            r#"{{"apiVersion":"vmhost/v1","name":"p","controllers":[{{"name":"c","timer":{{"once":true}}}}],"http":[{http}]}}"#
        );
        Description::parse(&text).map_err(|error| {
            let source = std::error::Error::source(&error).map(ToString::to_string);
            format!("{error} {}", source.unwrap_or_default())
        })
    }

    #[test]
    fn a_host_is_enough() {
        let description = parse(r#"{"host":"api.example.com"}"#).unwrap();
        let grant = &description.http[0];
        assert_eq!(
            (grant.port(), grant.scheme, grant.path_prefix.as_str()),
            (443, HttpScheme::Https, "/")
        );
        assert_eq!(grant.methods, ["GET"]);
        let claims: Vec<String> = grant.claims().collect();
        assert_eq!(claims, ["send GET to https://api.example.com:443/"]);
        for host in ["*.example.com", "10.0.0.1", "::1", "localhost", "a_b.svc"] {
            assert!(parse(&format!(r#"{{"host":"{host}"}}"#)).is_ok(), "{host}");
        }
    }

    #[test]
    fn a_mistake_is_named_by_its_field() {
        for (http, names) in [
            (r#"{"host":""}"#, "http[0].host"),
            (r#"{"host":"*"}"#, "http[0].host"),
            (r#"{"host":"*.com"}"#, "top-level domain"),
            (r#"{"host":"a.*.com"}"#, "http[0].host"),
            (r#"{"host":"API.example.com"}"#, "lower case"),
            (r#"{"host":"example.com."}"#, "http[0].host"),
            (r#"{"host":"[::1]"}"#, "without brackets"),
            (r#"{"host":"127.1"}"#, "http[0].host"),
            (r#"{"host":"a@b.com"}"#, "http[0].host"),
            (r#"{"host":"*.a.com","allowPrivate":true}"#, "without *"),
            (r#"{"host":"a.com","port":0}"#, "http[0].port"),
            (r#"{"host":"a.com","scheme":"ftp"}"#, "unknown variant"),
            (r#"{"host":"a.com","methods":[]}"#, "http[0].methods"),
            (r#"{"host":"a.com","methods":["get"]}"#, "\"get\""),
            (
                r#"{"host":"a.com","methods":["CONNECT"]}"#,
                "http[0].methods",
            ),
            (
                r#"{"host":"a.com","pathPrefix":"v1"}"#,
                "http[0].pathPrefix",
            ),
            (
                r#"{"host":"a.com","pathPrefix":"/a/../b"}"#,
                "http[0].pathPrefix",
            ),
            (
                r#"{"host":"a.com","pathPrefix":"/a?b"}"#,
                "http[0].pathPrefix",
            ),
            (
                r#"{"host":"a.com","headers":[{"name":"a b","setting":"s"}]}"#,
                "headers[0].name",
            ),
            (
                r#"{"host":"a.com","headers":[{"name":"Host","setting":"s"}]}"#,
                "the host sets it",
            ),
            (
                r#"{"host":"a.com","headers":[{"name":"A"}]}"#,
                "exactly one of secret and setting",
            ),
            (
                r#"{"host":"a.com","headers":[{"name":"A","prefix":"a\nb","setting":"s"}]}"#,
                "headers[0].prefix",
            ),
            (
                r#"{"host":"a.com","headers":[{"name":"A","secret":{"namespace":"n","name":"","key":"k"}}]}"#,
                "headers[0].secret",
            ),
            (
                r#"{"host":"a.com","scheme":"http","headers":[{"name":"A","setting":"s"}]}"#,
                "use https",
            ),
            (r#"{"host":"a.com","proxy":"b"}"#, "unknown field `proxy`"),
        ] {
            let error = parse(http).unwrap_err();
            assert!(error.contains(names), "{error} does not name {names}");
        }
    }

    #[test]
    fn a_secret_and_a_private_address_are_claims() {
        let description = parse(
            r#"{"host":"cloud.svc","scheme":"http","port":8080,"methods":["GET","POST"],"pathPrefix":"/v1","allowPrivate":true,
                "headers":[{"name":"Authorization","prefix":"Bearer ","secret":{"namespace":"a","name":"b","key":"c"}}]}"#,
        )
        .unwrap();
        let claims: Vec<String> = description.http[0].claims().collect();
        let place = "http://cloud.svc:8080/v1, also at private addresses";
        assert_eq!(
            claims,
            [
                format!("send GET to {place}"),
                format!("send POST to {place}"),
                format!("send Authorization from key c of Secret a/b with GET to {place}"),
                format!("send Authorization from key c of Secret a/b with POST to {place}"),
            ]
        );
    }
}
