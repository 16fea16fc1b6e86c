//! A stand-in for the host in a policy's native tests: objects to read, settings, and the logged
//! lines (like controller-runtime's fake client).
//!
//! It carries out no effects: a test checks the effects of the [`Outcome`](crate::Outcome).

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::bindings::vmhost::plugin::cluster::{Page, Query, ReadError};
use crate::bindings::vmhost::plugin::log::Level;
use crate::bindings::vmhost::plugin::types::{Gvk, ObjectKey};

/// The host of a policy that a test calls within [`TestHost::run`].
#[derive(Clone, Debug, Default)]
pub struct TestHost {
    objects: Vec<Value>,
    settings: BTreeMap<String, String>,
    responses: Vec<http::Given>,
    lines: Vec<String>,
}

thread_local! {
    static CURRENT: RefCell<Option<TestHost>> = const { RefCell::new(None) };
}

impl TestHost {
    /// Returns an empty cluster without settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an object that cached and live reads find; with `apiVersion`, `kind` and
    /// `metadata.name`.
    pub fn object(mut self, object: Value) -> Self {
        self.objects.push(object);
        self
    }

    /// Adds a setting of the operator.
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.insert(name.into(), value.into());
        self
    }

    /// Answers a request with this method and URL. Equal requests are answered in order, the last
    /// answer stays. Each request is a line, as `http: METHOD URL BODY`; one without an answer is
    /// not sent.
    pub fn http(mut self, method: &str, url: &str, status: u16, body: impl Into<Vec<u8>>) -> Self {
        self.responses
            .push(http::Given::new(method, url, status, body.into()));
        self
    }

    /// Calls `policy` with this host. Returns its result and the lines that it logged, as
    /// `info: text`.
    pub fn run<R>(self, policy: impl FnOnce() -> R) -> (R, Vec<String>) {
        let before = CURRENT.replace(Some(self));
        let result = policy();
        let lines = CURRENT.replace(before).unwrap_or_default().lines;
        (result, lines)
    }
}

pub(crate) fn log(level: Level, message: &str) {
    let level = match level {
        Level::Trace => "trace",
        Level::Debug => "debug",
        Level::Info => "info",
        Level::Warn => "warn",
        Level::Error => "error",
    };
    CURRENT.with_borrow_mut(|host| {
        if let Some(host) = host {
            host.lines.push(format!("{level}: {message}"));
        }
    });
}

pub(crate) mod http {
    use crate::http::HttpError;
    use crate::http_bindings::vmhost::http::http::{Request, Response};

    /// An answer that a test gives.
    #[derive(Clone, Debug)]
    pub(crate) struct Given {
        method: String,
        url: String,
        response: Response,
    }

    impl Given {
        pub(crate) fn new(method: &str, url: &str, status: u16, body: Vec<u8>) -> Self {
            Self {
                method: method.into(),
                url: url.into(),
                response: Response {
                    status,
                    headers: Vec::new(),
                    body,
                },
            }
        }
    }

    pub(crate) fn send(request: &Request) -> Result<Response, HttpError> {
        let not_sent = |why: &str| HttpError::NotSent(why.into());
        super::CURRENT.with_borrow_mut(|host| {
            let Some(host) = host else {
                let why = "there is no host in a native test; call the policy within testing::TestHost::run";
                return Err(not_sent(why));
            };
            let body = String::from_utf8_lossy(&request.body);
            let line = format!("http: {} {} {body}", request.method, request.url);
            host.lines.push(line.trim_end().to_owned());
            let is_it = |given: &Given| given.method == request.method && given.url == request.url;
            let mut places = (0..host.responses.len()).filter(|at| is_it(&host.responses[*at]));
            let (first, more) = (places.next(), places.next().is_some());
            match first {
                Some(at) if more => Ok(host.responses.remove(at).response),
                Some(at) => Ok(host.responses[at].response.clone()),
                None => Err(not_sent("the test gives no answer to it")),
            }
        })
    }
}

pub(crate) mod config {
    pub(crate) fn get(name: &str) -> Option<String> {
        super::CURRENT.with_borrow(|host| host.as_ref()?.settings.get(name).cloned())
    }
}

pub(crate) mod cluster {
    use super::*;

    pub(crate) fn get(key: &ObjectKey) -> Result<Option<String>, ReadError> {
        with_objects(|objects| {
            let found = objects.iter().find(|object| {
                is_of(object, &key.kind)
                    && text(object, "/metadata/name") == key.name
                    && namespace(object) == key.namespace.as_deref()
            });
            Ok(found.map(Value::to_string))
        })
    }

    pub(crate) fn get_live(key: &ObjectKey) -> Result<Option<String>, ReadError> {
        get(key)
    }

    pub(crate) fn list(query: &Query) -> Result<Page, ReadError> {
        if query.index.is_some() {
            return Err(ReadError::Invalid("the test host has no indexes".into()));
        }
        with_objects(|objects| {
            let mut found = Vec::new();
            for object in objects {
                if is_listed(object, query)? {
                    found.push(object);
                }
            }
            found.sort_by_key(|object| (namespace(object), text(object, "/metadata/name")));
            Ok(page(&found, query))
        })
    }

    pub(crate) fn list_live(query: &Query) -> Result<Page, ReadError> {
        list(query)
    }
}

fn with_objects<T>(read: impl FnOnce(&[Value]) -> Result<T, ReadError>) -> Result<T, ReadError> {
    CURRENT.with_borrow(|host| match host {
        Some(host) => read(&host.objects),
        None => Err(ReadError::Unavailable(
            "there is no host in a native test; call the policy within testing::TestHost::run"
                .into(),
        )),
    })
}

fn page(found: &[&Value], query: &Query) -> Page {
    let start: usize = query
        .continue_
        .as_deref()
        .and_then(|token| token.parse().ok())
        .unwrap_or_default();
    let limit = match query.limit {
        0 => 500,
        limit => limit as usize,
    };
    let objects = found.iter().skip(start).take(limit);
    let objects = objects.map(|object| match query.metadata_only {
        true => json!({ "apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": object["metadata"] }).to_string(),
        false => object.to_string(),
    });
    Page {
        objects: objects.collect(),
        continue_: (start + limit < found.len()).then(|| (start + limit).to_string()),
    }
}

fn is_listed(object: &Value, query: &Query) -> Result<bool, ReadError> {
    let in_namespace = query.namespace.is_none() || query.namespace.as_deref() == namespace(object);
    let owned = query.owner.as_deref().is_none_or(|uid| {
        let owners = object.pointer("/metadata/ownerReferences");
        let mut owners = owners.and_then(Value::as_array).into_iter().flatten();
        owners.any(|owner| owner["uid"] == uid)
    });
    let labelled = match &query.label_selector {
        Some(selector) => has_labels(object, selector)?,
        None => true,
    };
    Ok(is_of(object, &query.kind) && in_namespace && owned && labelled)
}

/// Supports `a=b,c=d,e`, which is enough for tests.
fn has_labels(object: &Value, selector: &str) -> Result<bool, ReadError> {
    for term in selector.split(',') {
        if term.contains(['!', '(']) {
            let reason = format!("the test host knows a=b and a only, not {term:?}");
            return Err(ReadError::Invalid(reason));
        }
        let (key, value) = match term.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (term, None),
        };
        let have = object["metadata"]["labels"][key].as_str();
        if have.is_none() || value.is_some() && have != value {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_of(object: &Value, kind: &Gvk) -> bool {
    let api_version = match kind.group.as_str() {
        "" => kind.version.clone(),
        group => format!("{group}/{}", kind.version),
    };
    text(object, "/apiVersion") == api_version && text(object, "/kind") == kind.kind
}

fn namespace(object: &Value) -> Option<&str> {
    object
        .pointer("/metadata/namespace")
        .and_then(Value::as_str)
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cluster, Kind, setting};

    const POD: Kind = Kind::core("v1", "Pod");

    fn pod(namespace: &str, name: &str, label: &str, owner: &str) -> Value {
        json!({ "apiVersion": "v1", "kind": "Pod", "spec": { "nodeName": "n" }, "metadata": {
            "name": name, "namespace": namespace, "labels": { "app": label }, "ownerReferences": [{ "uid": owner }] } })
    }

    fn host() -> TestHost {
        TestHost::new()
            .object(pod("b", "one", "web", "u-1"))
            .object(pod("a", "two", "web", "u-2"))
            .object(pod("a", "one", "db", "u-1"))
            .setting("colour", "red")
    }

    fn names(found: &[Value]) -> Vec<String> {
        let name = |pod: &Value| {
            format!(
                "{}/{}",
                text(pod, "/metadata/namespace"),
                text(pod, "/metadata/name")
            )
        };
        found.iter().map(name).collect()
    }

    #[test]
    fn one_object_is_found_by_its_key() {
        host().run(|| {
            let found: Option<Value> = Cluster::get(&POD, Some("b"), "one").unwrap();
            assert_eq!(found.unwrap()["metadata"]["labels"]["app"], "web");
            assert!(
                Cluster::get::<Value>(&POD, Some("b"), "two")
                    .unwrap()
                    .is_none()
            );
            assert!(
                Cluster::get_live::<Value>(&POD, None, "one")
                    .unwrap()
                    .is_none()
            );
        });
    }

    #[test]
    fn lists_hold_all_pages_in_order() {
        host().run(|| {
            let all: Vec<Value> = Cluster::list(Query::of(&POD).limit(1)).unwrap();
            assert_eq!(names(&all), ["a/one", "a/two", "b/one"]);
            assert_eq!(Cluster::count(Query::of(&POD).limit(2)).unwrap(), 3);
            let web: Vec<Value> =
                Cluster::list(Query::of(&POD).label_selector("app=web").namespace("a")).unwrap();
            assert_eq!(names(&web), ["a/two"]);
            let owned: Vec<Value> = Cluster::list_owned(&POD, None, "u-1").unwrap();
            assert_eq!(names(&owned), ["a/one", "b/one"]);
            let metadata: Vec<Value> = Cluster::list_live(Query::of(&POD).metadata_only()).unwrap();
            assert!(metadata.iter().all(|pod| pod.get("spec").is_none()));
        });
    }

    #[test]
    fn settings_are_given_and_lines_are_kept() {
        let (colour, lines) = host().run(|| {
            crate::info!("hello {}", 7);
            setting("colour")
        });
        assert_eq!(colour.as_deref(), Some("red"));
        assert_eq!(lines, ["info: hello 7"]);
        assert_eq!(
            setting("colour"),
            None,
            "outside of the run there is no host"
        );
    }

    #[test]
    fn a_read_that_fails_names_the_object_and_the_reason() {
        let error = Cluster::get::<Value>(&POD, Some("a"), "one")
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("Pod a/one cannot be read live: there is no host"),
            "{error}"
        );
        let (error, _) = host().run(|| {
            Cluster::get::<u32>(&POD, Some("a"), "one")
                .unwrap_err()
                .to_string()
        });
        assert!(error.starts_with("Pod a/one cannot be read: "), "{error}");
        let (error, _) = host().run(|| {
            Cluster::list::<Value>(Query::of(&POD).index("node", "n"))
                .unwrap_err()
                .to_string()
        });
        assert_eq!(
            error,
            "the list of Pod cannot be read: the test host has no indexes"
        );
    }
}
