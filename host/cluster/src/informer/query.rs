//! The paths of an informer's requests, and the parsing of the answers. This module must not know
//! when a request is sent.

use std::borrow::Cow;

use serde::Deserialize;

use super::spec::WatchSpec;
use crate::api::query;
use crate::discovery::Resource;
use crate::text::{BadJson, Scanner};

/// Objects per page, as in client-go.
const PAGE: &str = "500";

/// The annotation of the bookmark that ends a streaming list.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// The `Accept` header for metadata only, as in client-go's metadata client; a server without that
/// format sends whole objects.
const METADATA: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
pub(super) const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// Returns the `Accept` header of a watch.
pub(super) fn accept_watch(spec: &WatchSpec) -> Option<&'static str> {
    spec.wanted.is_metadata().then_some(METADATA)
}

/// Returns the `Accept` header of a list.
pub(super) fn accept_list(spec: &WatchSpec) -> Option<&'static str> {
    spec.wanted.is_metadata().then_some(METADATA_LIST)
}

/// The start of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// With a list: all objects first.
    List,
    /// After this version.
    Version(u64),
}

pub(super) fn watch_path(
    spec: &WatchSpec,
    resource: &Resource,
    from: From,
    seconds: u64,
) -> String {
    let (seconds, version) = (
        seconds.to_string(),
        if let From::Version(version) = from {
            version.to_string()
        } else {
            String::new()
        },
    );
    let mut pairs = vec![
        ("watch", "true"),
        ("allowWatchBookmarks", "true"),
        ("timeoutSeconds", seconds.as_str()),
    ];
    match from {
        // Without a version: at least as new as the moment of the request.
        From::List => pairs.extend([
            ("sendInitialEvents", "true"),
            ("resourceVersionMatch", "NotOlderThan"),
        ]),
        From::Version(_) => pairs.push(("resourceVersion", &version)),
    }
    path(spec, resource, pairs)
}

/// Builds the path of a consistent list of one object, for its version alone. The selectors are
/// left out, so that the server does not scan the whole kind for a matching object. Only the name
/// of a single object stays, because RBAC may allow nothing else.
pub(super) fn newest_path(spec: &WatchSpec, resource: &Resource) -> String {
    let one = spec.field_selector.as_deref();
    let one = one.filter(|selector| selector.starts_with("metadata.name="));
    let mut pairs = vec![("limit", "1")];
    pairs.extend(one.map(|selector| ("fieldSelector", selector)));
    resource.path(spec.namespace.as_deref(), None, None) + &query(&pairs)
}

/// Builds the path of a page of a consistent list (without a version, so the server reads the
/// newest). `whole` means without a limit.
pub(super) fn list_path(
    spec: &WatchSpec,
    resource: &Resource,
    next: Option<&str>,
    whole: bool,
) -> String {
    let mut pairs = Vec::new();
    if !whole {
        pairs.push(("limit", PAGE));
    }
    if let Some(next) = next {
        pairs.push(("continue", next));
    }
    path(spec, resource, pairs)
}

fn path<'a>(
    spec: &'a WatchSpec,
    resource: &Resource,
    mut pairs: Vec<(&'static str, &'a str)>,
) -> String {
    for (name, value) in [
        ("labelSelector", &spec.label_selector),
        ("fieldSelector", &spec.field_selector),
    ] {
        if let Some(value) = value.as_deref().filter(|value| !value.is_empty()) {
            pairs.push((name, value));
        }
    }
    resource.path(spec.namespace.as_deref(), None, None) + &query(&pairs)
}

/// Splits a line into type and object. A line in Kubernetes' format is split without being parsed;
/// the parser of the object detects malformed text.
pub(super) fn event(line: &str) -> Result<(Cow<'_, str>, &str), BadJson> {
    if let Some(rest) = line.strip_prefix("{\"type\":\"")
        && let Some((kind, rest)) = rest.split_once('"')
        && let Some(object) = rest
            .strip_prefix(",\"object\":")
            .and_then(|rest| rest.strip_suffix('}'))
        && matches!(
            kind,
            "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR"
        )
        && object.starts_with('{')
        && object.ends_with('}')
    {
        return Ok((Cow::Borrowed(kind), object));
    }
    let mut scanner = Scanner::new(line);
    scanner.open_object()?;
    let (mut kind, mut object, mut first) = (None, None, true);
    while let Some(member) = scanner.member(first)? {
        first = false;
        if member.key.says("type") {
            kind = Some(scanner.string()?.read()?);
        } else if member.key.says("object") {
            object = Some(scanner.value()?);
        } else {
            scanner.skip()?;
        }
    }
    scanner.end()?;
    match kind.zip(object) {
        Some(event) => Ok(event),
        None => scanner.expected("type and object"),
    }
}

/// A parsed bookmark.
pub(super) struct Bookmark {
    pub version: Option<u64>,
    pub ends_list: bool,
}

pub(super) fn bookmark(object: &str) -> Result<Bookmark, serde_json::Error> {
    #[derive(Deserialize)]
    struct Object {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        #[serde(default)]
        resource_version: String,
        annotations: Option<std::collections::BTreeMap<String, String>>,
    }
    let Object { metadata } = serde_json::from_str(object)?;
    let ends_list = metadata.annotations.is_some_and(|all| {
        all.get(INITIAL_EVENTS_END)
            .is_some_and(|value| value == "true")
    });
    Ok(Bookmark {
        version: metadata.resource_version.parse().ok(),
        ends_list,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmhost_core::Gvk;

    #[test]
    fn the_newest_version_is_asked_for_without_a_search() {
        let resource = Resource {
            kind: Gvk::new("x.io", "v1", "Vm"),
            plural: "vms".into(),
            namespaced: true,
            subresources: Vec::new(),
        };
        for (fields, query) in [
            (None, "limit=1"),
            (Some("spec.node=a"), "limit=1"),
            (
                Some("metadata.name=a"),
                "limit=1&fieldSelector=metadata.name%3Da",
            ),
        ] {
            let spec = WatchSpec {
                namespace: Some("n".into()),
                label_selector: Some("a=b".into()),
                field_selector: fields.map(str::to_owned),
                ..WatchSpec::of(resource.kind.clone())
            };
            let path = newest_path(&spec, &resource);
            assert_eq!(path, format!("/apis/x.io/v1/namespaces/n/vms?{query}"));
        }
    }

    #[test]
    fn a_line_is_cut_apart_in_either_order() {
        let object = r#"{"metadata":{"name":"}\""}}"#;
        for line in [
            format!(r#"{{"type":"ADDED","object":{object}}}"#),
            format!(r#"{{ "object": {object} , "type":"ADDED"}}"#),
            format!(r#"{{"type":"ADDED","object":{object},"x":{{}} }}"#),
        ] {
            let (kind, found) = event(&line).unwrap();
            assert_eq!((&*kind, found), ("ADDED", object), "{line}");
        }
        assert!(event(r#"{"type":"ADDED"}"#).is_err() && event("nonsense").is_err());
    }
}
