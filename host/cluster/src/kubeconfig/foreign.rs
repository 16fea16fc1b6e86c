//! Reads a kubeconfig that came out of a cluster: whoever may write the object that carries it is
//! not trusted with this machine. What would make the host run a program, read a file or talk to
//! another address than the server's is refused by the field's name, unless the operator allows the
//! field.
//!
//! This module owns which fields are read: a configuration is put together from these, so that a
//! field that it does not know has no effect. No text of it repeats a value, which may be a secret.

use std::collections::BTreeMap;
use std::net::IpAddr;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use http::Uri;
use kube::config::{AuthInfo, Cluster};
use secrecy::SecretString;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_yaml_ng::Value;

use super::{Configuration, configuration};
use crate::connect::error::ConnectError;
use crate::metadata::is_metadata;

/// The longest kubeconfig in bytes. One with certificates has 10 KiB; an object of etcd 1.5 MiB.
const LONGEST: usize = 256 << 10;

/// The fields that are refused unless the operator allows them.
pub const GUARDED_FIELDS: [&str; 8] = [
    "exec",
    "auth-provider",
    "insecure-skip-tls-verify",
    "proxy-url",
    "certificate-authority",
    "client-certificate",
    "client-key",
    "tokenFile",
];

type Fields = BTreeMap<String, Value>;

#[derive(Deserialize)]
struct File {
    clusters: Option<Vec<NamedCluster>>,
    users: Option<Vec<NamedUser>>,
    contexts: Option<Vec<NamedContext>>,
    #[serde(rename = "current-context")]
    current: Option<String>,
}

#[derive(Deserialize)]
struct NamedCluster {
    name: String,
    cluster: Option<Fields>,
}

#[derive(Deserialize)]
struct NamedUser {
    name: String,
    user: Option<Fields>,
}

#[derive(Deserialize)]
struct NamedContext {
    name: String,
    context: Option<Context>,
}

#[derive(Deserialize)]
struct Context {
    cluster: String,
    user: Option<String>,
    namespace: Option<String>,
}

/// Reads the current context of a kubeconfig, as YAML, JSON, or either of them in base64. `place`
/// names where it came from. `allowed` are the guarded fields that may be used.
pub(crate) fn read(
    text: &str,
    place: &str,
    allowed: &[String],
) -> Result<Configuration, ConnectError> {
    let fail = |detail: String| ConnectError::Configure {
        place: place.to_owned(),
        detail,
    };
    let text = plain(text).map_err(fail)?;
    let file: File = parse(&text).map_err(fail)?;
    let (cluster, user, namespace) = parts(file, allowed).map_err(fail)?;
    check_server(&cluster).map_err(fail)?;
    let mut found = configuration(place.to_owned(), cluster, user, namespace)?;
    found.foreign = true;
    Ok(found)
}

/// Returns an error if the server's URL is none, or names a cloud's metadata by its address. Names
/// are checked when they are resolved.
fn check_server(cluster: &Cluster) -> Result<(), String> {
    let url = cluster.server.as_deref().unwrap_or_default();
    let url = Uri::try_from(url).ok();
    let url = url.filter(|url| matches!(url.scheme_str(), Some("http" | "https")));
    let host = url.as_ref().and_then(Uri::host).unwrap_or_default();
    if host.is_empty() {
        return Err("its server is not a URL such as https://host:6443".to_owned());
    }
    let address = host.trim_start_matches('[').trim_end_matches(']');
    match address.parse::<IpAddr>().is_ok_and(is_metadata) {
        true => Err("its server has an address of a cloud's metadata".to_owned()),
        false => Ok(()),
    }
}

/// Returns the text itself: a `[]byte` field of a Go type is base64 in JSON.
fn plain(text: &str) -> Result<String, String> {
    if text.len() > LONGEST {
        return Err(format!("it is longer than {LONGEST} bytes"));
    }
    let is_base64 = !text.contains([':', '{']) && !text.trim().is_empty();
    if !is_base64 {
        return Ok(text.to_owned());
    }
    let packed: String = text.split_whitespace().collect();
    let bytes = BASE64_STANDARD.decode(packed).ok();
    bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| "it is neither a kubeconfig nor one in base64".to_owned())
}

fn parse(text: &str) -> Result<File, String> {
    let malformed = |line: usize, column: usize| {
        format!("it is not a kubeconfig: malformed at line {line}, column {column}")
    };
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).map_err(|error| malformed(error.line(), error.column()));
    }
    if text.chars().any(is_odd) {
        return Err("it has control characters".to_owned());
    }
    if text.split(['\n', '\r']).any(has_alias) {
        return Err("it uses anchors, aliases or tags of YAML, which can be made to fill the memory: write them out".to_owned());
    }
    serde_yaml_ng::from_str(text).map_err(|error| match error.location() {
        Some(at) => malformed(at.line(), at.column()),
        None => "it is not a kubeconfig".to_owned(),
    })
}

/// Returns whether the parser might take this for the end of a line, or for nothing at all.
fn is_odd(sign: char) -> bool {
    (sign.is_control() && !matches!(sign, '\t' | '\n' | '\r'))
        || matches!(sign, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// Returns whether a line may have an anchor, an alias or a tag: a value that begins with its sign.
/// Quotes are not looked at, so that some harmless lines are refused too.
fn has_alias(line: &str) -> bool {
    let mut before = None;
    for sign in line.chars().filter(|sign| !sign.is_whitespace()) {
        let begins = before.is_none_or(|before| ":-[{,?".contains(before));
        if begins && matches!(sign, '&' | '*' | '!') {
            return true;
        }
        before = Some(sign);
    }
    false
}

/// Returns the cluster, the user and the namespace of the current context, or of the only one.
fn parts(file: File, allowed: &[String]) -> Result<(Cluster, AuthInfo, Option<String>), String> {
    let contexts = file.contexts.unwrap_or_default();
    let current = file.current.filter(|name| !name.is_empty());
    let found = match &current {
        Some(name) => contexts.iter().find(|of| of.name == *name),
        None => contexts.first().filter(|_| contexts.len() == 1),
    };
    let Some(context) = found.and_then(|of| of.context.as_ref()) else {
        return Err("its current-context names none of its contexts".to_owned());
    };
    let clusters = file.clusters.unwrap_or_default();
    let cluster = clusters
        .into_iter()
        .find(|of| of.name == context.cluster)
        .and_then(|of| of.cluster)
        .ok_or("its context names none of its clusters")?;
    let users = file.users.unwrap_or_default();
    let user = users
        .into_iter()
        .find(|of| Some(&of.name) == context.user.as_ref())
        .and_then(|of| of.user)
        .unwrap_or_default();
    guard("cluster", &cluster, allowed)?;
    guard("user", &user, allowed)?;
    Ok((
        cluster_of(cluster)?,
        user_of(user)?,
        context.namespace.clone(),
    ))
}

/// Returns an error if a guarded field is used that is not allowed.
fn guard(of: &str, fields: &Fields, allowed: &[String]) -> Result<(), String> {
    let is_used = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        _ => true,
    };
    let refused = fields.iter().find(|(name, value)| {
        GUARDED_FIELDS.contains(&name.as_str()) && is_used(value) && !allowed.contains(name)
    });
    match refused {
        None => Ok(()),
        Some((name, _)) => Err(format!(
            "its {of} uses the field {name}, which a kubeconfig out of a cluster may not: remove it, or start vmhost with --clusters-allow {name}"
        )),
    }
}

fn cluster_of(mut fields: Fields) -> Result<Cluster, String> {
    Ok(Cluster {
        server: take(&mut fields, "server")?,
        insecure_skip_tls_verify: take(&mut fields, "insecure-skip-tls-verify")?,
        certificate_authority: take(&mut fields, "certificate-authority")?,
        certificate_authority_data: take(&mut fields, "certificate-authority-data")?,
        proxy_url: take(&mut fields, "proxy-url")?,
        tls_server_name: take(&mut fields, "tls-server-name")?,
        ..Cluster::default()
    })
}

fn user_of(mut fields: Fields) -> Result<AuthInfo, String> {
    let mut secret = |name| {
        Ok::<_, String>(take(&mut fields, name)?.map(|text: String| SecretString::from(text)))
    };
    let (password, token) = (secret("password")?, secret("token")?);
    let client_key_data = secret("client-key-data")?;
    Ok(AuthInfo {
        username: take(&mut fields, "username")?,
        password,
        token,
        token_file: take(&mut fields, "tokenFile")?,
        client_certificate: take(&mut fields, "client-certificate")?,
        client_certificate_data: take(&mut fields, "client-certificate-data")?,
        client_key: take(&mut fields, "client-key")?,
        client_key_data,
        impersonate: take(&mut fields, "as")?,
        impersonate_uid: take(&mut fields, "as-uid")?,
        impersonate_groups: take(&mut fields, "as-groups")?,
        impersonate_user_extra: take(&mut fields, "as-user-extra")?,
        auth_provider: take(&mut fields, "auth-provider")?,
        exec: take(&mut fields, "exec")?,
        ..AuthInfo::default()
    })
}

/// Takes the value of a field; `None` if it is absent or null. The error does not repeat the value.
fn take<T: DeserializeOwned>(fields: &mut Fields, name: &str) -> Result<Option<T>, String> {
    match fields.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => serde_yaml_ng::from_value(value)
            .map(Some)
            .map_err(|_| format!("its field {name} has a value of another type")),
    }
}

#[cfg(test)]
mod tests;
