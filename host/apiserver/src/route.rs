//! The path of a request, parsed once.
//!
//! Owns the grammar of API paths. Must not know which resources exist.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// The destination of a path.
#[derive(Debug, PartialEq)]
pub(crate) enum Route {
    Root,
    Health,
    Version,
    Api,
    Apis,
    Group(String),
    GroupVersion(String, String),
    OpenapiV2,
    OpenapiV3,
    OpenapiV3Of(String, String),
    Resource(ResourcePath),
    Unknown,
}

/// A path to objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ResourcePath {
    pub group: String,
    pub version: String,
    pub namespace: Option<String>,
    pub plural: String,
    pub name: Option<String>,
    pub subresource: Option<String>,
}

/// Parses a path; ignores slashes at its end. What may be at a path is asked of its text
/// (`access::ask`), so that a path that could be read in two ways leads nowhere.
pub(crate) fn route(path: &str) -> Route {
    let path = path.strip_prefix('/').unwrap_or(path);
    let path = path.trim_end_matches('/');
    if path.is_empty() {
        return Route::Root;
    }
    let parts: Vec<Cow<'_, str>> = path
        .split('/')
        .map(|part| percent_decode_str(part).decode_utf8_lossy())
        .collect();
    if parts
        .iter()
        .any(|part| part.is_empty() || part.contains('/'))
    {
        return Route::Unknown;
    }
    let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
    match parts.as_slice() {
        ["healthz" | "livez" | "readyz", ..] => Route::Health,
        ["version"] => Route::Version,
        ["api"] => Route::Api,
        ["apis"] => Route::Apis,
        ["openapi", "v2"] => Route::OpenapiV2,
        ["openapi", "v3"] => Route::OpenapiV3,
        ["openapi", "v3", "api", version] => {
            Route::OpenapiV3Of(String::new(), (*version).to_owned())
        }
        ["openapi", "v3", "apis", group, version] => {
            Route::OpenapiV3Of((*group).to_owned(), (*version).to_owned())
        }
        ["api", version] => Route::GroupVersion(String::new(), (*version).to_owned()),
        ["apis", group] => Route::Group((*group).to_owned()),
        ["apis", group, version] => Route::GroupVersion((*group).to_owned(), (*version).to_owned()),
        ["api", version, rest @ ..] => resource("", version, rest),
        ["apis", group, version, rest @ ..] => resource(group, version, rest),
        _ => Route::Unknown,
    }
}

fn resource(group: &str, version: &str, rest: &[&str]) -> Route {
    let (namespace, rest) = match rest {
        // The namespace object itself, and its subresources.
        ["namespaces", _] | ["namespaces", _, "status" | "finalize"] if group.is_empty() => {
            (None, rest)
        }
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => {
            (Some((*namespace).to_owned()), rest)
        }
        rest => (None, rest),
    };
    let owned = |at: usize| rest.get(at).map(|s| (*s).to_owned());
    match owned(0) {
        // What follows `proxy` is a path of the other side.
        Some(plural) if rest.len() <= 3 || rest.get(2) == Some(&"proxy") => {
            Route::Resource(ResourcePath {
                group: group.to_owned(),
                version: version.to_owned(),
                namespace,
                plural,
                name: owned(1),
                subresource: owned(2),
            })
        }
        _ => Route::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> (String, Option<String>, Option<String>, Option<String>) {
        match route(text) {
            Route::Resource(p) => (p.plural, p.namespace, p.name, p.subresource),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn paths_are_read_as_a_real_server_reads_them() {
        let some = |s: &str| Some(s.to_owned());
        assert_eq!(
            path("/api/v1/namespaces/x"),
            ("namespaces".into(), None, some("x"), None)
        );
        assert_eq!(
            path("/api/v1/namespaces/x/status"),
            ("namespaces".into(), None, some("x"), some("status"))
        );
        assert_eq!(
            path("/api/v1/namespaces/x/pods/"),
            ("pods".into(), some("x"), None, None)
        );
        assert_eq!(
            path("/apis/g/v1/vms/a%3Ab/status"),
            ("vms".into(), None, some("a:b"), some("status"))
        );
        assert_eq!(
            path("/apis/g/v1/namespaces/n/vms/a/scale"),
            ("vms".into(), some("n"), some("a"), some("scale"))
        );
        assert_eq!(route("/apis/"), Route::Apis);
        assert_eq!(
            route("/apis/g/v1/namespaces/n/vms/a/scale/more"),
            Route::Unknown
        );
        assert_eq!(route("/metrics"), Route::Unknown);
        assert_eq!(route("/"), Route::Root);
        for odd in [
            "//api/v1/pods",
            "/api//v1/pods",
            "/apis//rbac.authorization.k8s.io/v1/clusterroles",
            "/api/v1/namespaces/n//secrets",
            "/api/v1/namespaces/n%2Fpods/secrets",
        ] {
            assert_eq!(route(odd), Route::Unknown, "{odd}");
        }
    }
}
