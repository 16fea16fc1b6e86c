//! Requests in the name of another user (`kubectl --as`).
//!
//! Owns the headers that ask for it, and the rights that it needs: `impersonate`, or since
//! Kubernetes 1.36 the narrower `impersonate:MODE` together with `impersonate-on:MODE:VERB`
//! (k8s.io/apiserver `pkg/endpoints/filters/impersonation`). Must not know how rights are granted.
//!
//! The mode for a service account that acts as its own node is left out.

use std::collections::BTreeMap;

use http::HeaderMap;
use percent_encoding::percent_decode_str;

use super::ask::Ask;
use super::credentials::Author;
use super::rbac::decide;
use super::user::{
    ANONYMOUS, AUTHENTICATED, MASTERS, NODES, UNAUTHENTICATED, User, as_service_account,
    service_account_groups,
};
use crate::state::Inner;
use crate::status::ApiError;

const AUTHENTICATION: &str = "authentication.k8s.io";
const EXTRA: &str = "impersonate-extra-";
const NODE: &str = "system:node:";

/// Returns whether a request names another user.
pub(crate) fn is_asked(headers: &HeaderMap) -> bool {
    let is_one = |name: &http::HeaderName| name.as_str().starts_with("impersonate-");
    headers.keys().any(is_one)
}

/// Returns the author that a request acts as.
pub(crate) fn acting(
    inner: &Inner,
    author: Author,
    headers: &HeaderMap,
    ask: &Ask,
) -> Result<Author, ApiError> {
    let Some(wanted) = wanted(headers)? else {
        return Ok(author);
    };
    let mut first = None;
    for mode in ["arbitrary-node", "serviceaccount", "user-info", ""] {
        if !fits(mode, &wanted) {
            continue;
        }
        match become_user(inner, &author, mode, &wanted, ask) {
            Ok(user) => {
                return Ok(Author {
                    user,
                    access: author.access.clone(),
                });
            }
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or_else(|| ApiError::internal("all impersonation modes failed")))
}

/// Returns the user that the headers ask for.
fn wanted(headers: &HeaderMap) -> Result<Option<User>, ApiError> {
    let texts = |name: &str| {
        let values = headers.get_all(name).iter();
        // A name need not be ASCII. Without it the request would be one of its sender.
        let texts = values.map(|value| String::from_utf8_lossy(value.as_bytes()));
        texts.map(|text| text.into_owned()).collect::<Vec<String>>()
    };
    let first = |name: &str| texts(name).into_iter().next().unwrap_or_default();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in headers.keys() {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            let decoded = percent_decode_str(key).decode_utf8();
            let key = decoded.map_or_else(|_| key.to_owned(), |key| key.into_owned());
            extra.insert(key, texts(name.as_str()));
        }
    }
    let user = User {
        name: first("impersonate-user"),
        uid: first("impersonate-uid"),
        groups: texts("impersonate-group"),
        extra,
    };
    if !user.name.is_empty() {
        return Ok(Some(user));
    }
    if user == User::default() {
        return Ok(None);
    }
    let groups = match user.groups.as_slice() {
        [] => "[]string(nil)".to_owned(),
        groups => format!("[]string{}", in_braces(groups)),
    };
    let extra: Vec<String> = user
        .extra
        .iter()
        .map(|(key, values)| format!("{key:?}:[]string{}", in_braces(values)))
        .collect();
    let extra = match extra.as_slice() {
        [] => "map[string][]string(nil)".to_owned(),
        extra => format!("map[string][]string{{{}}}", extra.join(", ")),
    };
    // In the words of Go, as a real server has it.
    Err(ApiError::bad_request(format!(
        "requested &user.DefaultInfo{{Name:\"\", UID:{:?}, Groups:{groups}, Extra:{extra}}} without impersonating a user name",
        user.uid
    )))
}

fn in_braces(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("{{{}}}", texts.join(", "))
}

/// Returns whether a mode can give this user. The mode without a name is the one that needs the
/// right to `impersonate`.
fn fits(mode: &str, wanted: &User) -> bool {
    let is_plain = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
    let is_account = as_service_account(&wanted.name).is_some();
    let is_node = wanted.name.starts_with(NODE);
    match mode {
        "arbitrary-node" => is_plain && is_node,
        "serviceaccount" => is_plain && is_account,
        "user-info" => !is_node && !is_account,
        _ => true,
    }
}

fn become_user(
    inner: &Inner,
    author: &Author,
    mode: &str,
    wanted: &User,
    ask: &Ask,
) -> Result<User, ApiError> {
    let is_narrow = !mode.is_empty();
    let verb = match is_narrow {
        true => format!("impersonate:{mode}"),
        false => "impersonate".to_owned(),
    };
    let may = |ask: &Ask| {
        let decision = decide(inner, author, ask);
        match decision.allowed {
            true => Ok(()),
            false => Err(ask.refusal(&author.user, &decision.reason)),
        }
    };
    if is_narrow {
        may(&Ask {
            verb: format!("impersonate-on:{mode}:{}", ask.verb),
            ..ask.clone()
        })?;
    }
    let of = |group: &str, resource: &str, name: &str| Ask {
        verb: verb.clone(),
        group: group.to_owned(),
        resource: resource.to_owned(),
        name: name.to_owned(),
        ..Ask::default()
    };
    let group = if is_narrow { AUTHENTICATION } else { "" };
    let mut user = wanted.clone();
    let mut who = of(group, "users", &wanted.name);
    if let Some(node) = wanted.name.strip_prefix(NODE).filter(|_| is_narrow) {
        who = of(group, "nodes", node);
        user.groups = vec![NODES.to_owned()];
    }
    if let Some((namespace, name)) = as_service_account(&wanted.name) {
        who = of(group, "serviceaccounts", name);
        who.namespace = namespace.to_owned();
        if wanted.groups.is_empty() {
            user.groups = service_account_groups(namespace);
        }
    }
    may(&who)?;
    if !wanted.uid.is_empty() {
        may(&of(AUTHENTICATION, "uids", &wanted.uid))?;
    }
    for name in &wanted.groups {
        let groups = of(group, "groups", name);
        if is_narrow && (name.is_empty() || name == MASTERS) {
            let what = match name.as_str() {
                "" => "empty string",
                name => name,
            };
            let why = format!("impersonating the {what} group is not allowed");
            return Err(groups.refusal(&author.user, &why));
        }
        may(&groups)?;
    }
    for (key, values) in &wanted.extra {
        for value in values {
            let mut extra = of(AUTHENTICATION, "userextras", value);
            extra.subresource.clone_from(key);
            may(&extra)?;
        }
    }
    let everyone = match user.name == ANONYMOUS {
        true => Some(UNAUTHENTICATED),
        false if user.is_in(UNAUTHENTICATED) => None,
        false => Some(AUTHENTICATED),
    };
    if let Some(group) = everyone.filter(|group| !user.is_in(group)) {
        user.groups.push(group.to_owned());
    }
    Ok(user)
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| {
            let name = HeaderName::from_static(name);
            (name, HeaderValue::from_static(value))
        });
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(name, value);
        }
        map
    }

    #[test]
    fn the_headers_describe_a_user() {
        assert_eq!(wanted(&headers(&[])).unwrap(), None);
        let user = wanted(&headers(&[
            ("impersonate-user", "alice"),
            ("impersonate-group", "devs"),
            ("impersonate-group", "ops"),
            ("impersonate-extra-acme.com%2fteam", "a"),
        ]))
        .unwrap()
        .unwrap();
        assert_eq!(user.name, "alice");
        assert_eq!(user.groups, ["devs", "ops"]);
        assert_eq!(user.extra["acme.com/team"], ["a"]);
        let mut foreign = headers(&[]);
        let name = HeaderValue::from_bytes("jürgen".as_bytes()).unwrap();
        foreign.insert("impersonate-user", name);
        assert_eq!(wanted(&foreign).unwrap().unwrap().name, "jürgen");
        let nobody = wanted(&headers(&[("impersonate-group", "devs")]));
        let error = nobody.unwrap_err();
        assert_eq!(error.code, 400);
        assert_eq!(
            error.message,
            r#"requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"devs"}, Extra:map[string][]string(nil)} without impersonating a user name"#
        );
    }
}
