//! The question whether a request is allowed.
//!
//! Owns its form, how a request asks it (k8s.io/apiserver `pkg/endpoints/request`), and the words
//! of a refusal. Must not know how it is answered.

use axum::extract::Query;
use http::{Method, Uri};
use percent_encoding::percent_decode_str;
use serde_json::json;

use super::user::User;
use crate::request::truth;
use crate::status::ApiError;

/// What a user wants to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ask {
    pub verb: String,
    pub group: String,
    pub resource: String,
    pub subresource: String,
    /// Empty for everything outside of namespaces, and for all namespaces.
    pub namespace: String,
    pub name: String,
    /// The path of a request that is not for objects.
    pub path: Option<String>,
}

impl Ask {
    /// Returns what a request asks for.
    pub fn of(method: &Method, uri: &Uri) -> Ask {
        let path = percent_decode_str(uri.path()).decode_utf8_lossy();
        let trimmed = path.trim_matches('/');
        let parts: Vec<&str> = trimmed.split('/').collect();
        let (group, rest) = match parts.as_slice() {
            ["api", _, rest @ ..] if !rest.is_empty() => ("", rest),
            ["apis", group, _, rest @ ..] if !rest.is_empty() => (*group, rest),
            _ => {
                return Ask {
                    verb: method.as_str().to_lowercase(),
                    path: Some(path.to_string()),
                    ..Ask::default()
                };
            }
        };
        let mut ask = Ask {
            verb: verb(method).to_owned(),
            group: group.to_owned(),
            ..Ask::default()
        };
        let mut rest = rest;
        let mut is_prefix = false;
        if let ["watch" | "proxy", after @ ..] = rest
            && !after.is_empty()
        {
            ask.verb = rest.first().copied().unwrap_or_default().to_owned();
            rest = after;
            is_prefix = true;
        }
        if let ["namespaces", namespace, after @ ..] = rest {
            ask.namespace = (*namespace).to_owned();
            if !matches!(after, [] | ["status" | "finalize", ..]) {
                rest = after;
            }
        }
        let text = |at: usize| rest.get(at).copied().unwrap_or_default().to_owned();
        (ask.resource, ask.name) = (text(0), text(1));
        if !is_prefix {
            ask.subresource = text(2);
        }
        ask.choose_verb(uri);
        ask
    }

    /// A read without a name is a list or a watch, and a deletion without one is of a collection.
    fn choose_verb(&mut self, uri: &Uri) {
        if !self.name.is_empty() {
            return;
        }
        match self.verb.as_str() {
            "delete" => self.verb = "deletecollection".to_owned(),
            "get" => {
                let query = Query::<Vec<(String, String)>>::try_from_uri(uri);
                let pairs = query.map(|Query(pairs)| pairs).unwrap_or_default();
                let value = |wanted: &str| {
                    let found = pairs.iter().find(|(name, _)| name == wanted);
                    found.map(|(_, value)| value.as_str())
                };
                let watches = value("watch").is_some_and(truth);
                self.verb = if watches { "watch" } else { "list" }.to_owned();
                self.name = value("fieldSelector").and_then(named).unwrap_or_default();
            }
            _ => {}
        }
    }

    /// Returns the refusal of this question to a user.
    pub fn refusal(&self, user: &User, reason: &str) -> ApiError {
        let mut why = self.denial(user);
        for (plain, escaped) in [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")] {
            why = why.replace(plain, escaped);
        }
        if !reason.is_empty() {
            why = format!("{why}: {reason}");
        }
        let mut details = json!({});
        if self.path.is_none() {
            details["kind"] = json!(self.resource);
            for (field, text) in [("name", &self.name), ("group", &self.group)] {
                if !text.is_empty() {
                    details[field] = json!(text);
                }
            }
        }
        let what = match self.group.as_str() {
            "" => self.resource.clone(),
            group => format!("{}.{group}", self.resource),
        };
        let message = match (what.as_str(), self.name.as_str()) {
            ("", _) => format!("forbidden: {why}"),
            (what, "") => format!("{what} is forbidden: {why}"),
            (what, name) => format!("{what} {name:?} is forbidden: {why}"),
        };
        let mut error = ApiError::new(403, "Forbidden", message);
        error.details = Some(details);
        error
    }

    fn denial(&self, user: &User) -> String {
        let (name, verb) = (&user.name, &self.verb);
        if let Some(path) = &self.path {
            return format!("User {name:?} cannot {verb} path {path:?}");
        }
        let resource = self.qualified();
        let group = &self.group;
        let place = match self.namespace.as_str() {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {namespace:?}"),
        };
        format!("User {name:?} cannot {verb} resource {resource:?} in API group {group:?} {place}")
    }

    /// Returns the resource with its subresource, as rules name it.
    pub fn qualified(&self) -> String {
        match self.subresource.as_str() {
            "" => self.resource.clone(),
            subresource => format!("{}/{subresource}", self.resource),
        }
    }
}

fn verb(method: &Method) -> &'static str {
    match *method {
        Method::POST => "create",
        Method::GET | Method::HEAD => "get",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "",
    }
}

/// Returns the only name that a field selector matches.
fn named(selector: &str) -> Option<String> {
    let name = selector.split(',').find_map(|term| {
        let value = term.trim().strip_prefix("metadata.name=")?;
        Some(value.strip_prefix('=').unwrap_or(value))
    })?;
    let is_name = !matches!(name, "" | "." | "..") && !name.contains(['/', '%']);
    is_name.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(method: Method, uri: &str) -> String {
        let ask = Ask::of(&method, &uri.parse().unwrap());
        match &ask.path {
            Some(path) => format!("{} {path}", ask.verb),
            None => {
                let (resource, name) = (ask.qualified(), &ask.name);
                format!(
                    "{} {resource}.{} {}/{name}",
                    ask.verb, ask.group, ask.namespace
                )
            }
        }
    }

    #[test]
    fn requests_ask_as_those_to_a_real_server() {
        let pods = "/api/v1/namespaces/n/pods";
        for (method, uri, expected) in [
            (Method::GET, "/version", "get /version"),
            (Method::GET, "/api/v1", "get /api/v1"),
            (Method::POST, "/apis/apps/v1/", "post /apis/apps/v1/"),
            (Method::GET, "/api/v1/pods", "list pods. /"),
            (Method::GET, "/api/v1/pods?watch=1", "watch pods. /"),
            (Method::GET, "/api/v1/pods?watch=False", "list pods. /"),
            (
                Method::GET,
                "/api/v1/pods?watch=yes&watch=false",
                "watch pods. /",
            ),
            (Method::GET, "/api/v1/namespaces", "list namespaces. /"),
            (Method::GET, "/api/v1/namespaces/n", "get namespaces. n/n"),
            (
                Method::PUT,
                "/api/v1/namespaces/n/finalize",
                "update namespaces/finalize. n/n",
            ),
            (Method::HEAD, "/api/v1/namespaces/n/pods/p", "get pods. n/p"),
            (
                Method::POST,
                "/api/v1/namespaces/n/pods/p/eviction",
                "create pods/eviction. n/p",
            ),
            (Method::DELETE, pods, "deletecollection pods. n/"),
            (
                Method::PATCH,
                "/apis/g.io/v1/vms/a%3Ab/status",
                "patch vms/status.g.io /a:b",
            ),
            (
                Method::GET,
                "/api/v1/pods?fieldSelector=metadata.name%3Dp",
                "list pods. /p",
            ),
            (
                Method::GET,
                "/api/v1/pods?fieldSelector=a%3D1,metadata.name%3D%3Dp",
                "list pods. /p",
            ),
            (
                Method::GET,
                "/api/v1/pods?fieldSelector=metadata.name!%3Dp",
                "list pods. /",
            ),
        ] {
            assert_eq!(ask(method, uri), expected, "{uri}");
        }
    }

    #[test]
    fn refusals_are_worded_as_those_of_a_real_server() {
        let alice = User::known("alice", Vec::new());
        let refused = |method, uri: &str| {
            let ask = Ask::of(&method, &uri.parse().unwrap());
            ask.refusal(&alice, "").message
        };
        assert_eq!(
            refused(Method::GET, "/metrics"),
            r#"forbidden: User "alice" cannot get path "/metrics""#
        );
        assert_eq!(
            refused(
                Method::GET,
                "/apis/apps/v1/namespaces/n/deployments/d/scale"
            ),
            r#"deployments.apps "d" is forbidden: User "alice" cannot get resource "deployments/scale" in API group "apps" in the namespace "n""#
        );
        assert_eq!(
            refused(Method::GET, "/api/v1/nodes"),
            r#"nodes is forbidden: User "alice" cannot list resource "nodes" in API group "" at the cluster scope"#
        );
    }
}
