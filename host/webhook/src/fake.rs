//! A cluster for tests, in memory: it keeps objects by path, with versions.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Method, Request, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};
use vmhost_cluster::Connection;

#[derive(Clone, Default)]
pub(crate) struct Cluster(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    objects: BTreeMap<String, Value>,
    version: u64,
    writes: Vec<String>,
}

impl Cluster {
    pub fn connection(&self) -> Connection {
        let cluster = self.clone();
        let serve = move |request: Request<Bytes>| -> BoxFuture<'static, Response<Bytes>> {
            let cluster = cluster.clone();
            // Requests that are in flight at the same time take turns.
            Box::pin(async move {
                tokio::task::yield_now().await;
                cluster.0.lock().answer(&request)
            })
        };
        Connection::local(serve, "a cluster in memory")
    }

    pub fn put(&self, path: &str, object: Value) {
        self.0.lock().store(path, object);
    }

    pub fn remove(&self, path: &str) -> Value {
        self.0.lock().objects.remove(path).unwrap()
    }

    pub fn get(&self, path: &str) -> Value {
        self.0.lock().objects[path].clone()
    }

    /// The writes since the last call, as method and path.
    pub fn writes(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().writes)
    }
}

impl Inner {
    fn store(&mut self, path: &str, mut object: Value) -> Response<Bytes> {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects.insert(path.to_owned(), object.clone());
        answer(200, &object)
    }

    fn answer(&mut self, request: &Request<Bytes>) -> Response<Bytes> {
        let path = request.uri().path().to_owned();
        if request.method() == Method::GET {
            return match self.objects.get(&path) {
                Some(object) => answer(200, object),
                None => refuse(404, "NotFound"),
            };
        }
        self.writes.push(format!("{} {path}", request.method()));
        let body: Value = serde_json::from_slice(request.body()).unwrap();
        if request.method() == Method::POST {
            let name = body["metadata"]["name"].as_str().unwrap();
            let path = format!("{path}/{name}");
            if self.objects.contains_key(&path) {
                return refuse(409, "AlreadyExists");
            }
            return self.store(&path, body);
        }
        let content_type = request.headers()["content-type"].to_str().unwrap();
        if content_type == "application/apply-patch+yaml" {
            return self.store(&path, body);
        }
        let Some(mut object) = self.objects.get(&path).cloned() else {
            return refuse(404, "NotFound");
        };
        if request.method() == Method::PUT {
            let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
            return match version(&object) == version(&body) {
                true => self.store(&path, body),
                false => refuse(409, "Conflict"),
            };
        }
        for operation in body.as_array().unwrap() {
            let pointer = operation["path"].as_str().unwrap();
            if operation["op"] == "test" {
                if object.pointer(pointer) != Some(&operation["value"]) {
                    return refuse(422, "Invalid");
                }
                continue;
            }
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            object.pointer_mut(parent).unwrap()[field] = operation["value"].clone();
        }
        self.store(&path, object)
    }
}

fn answer(code: u16, body: &Value) -> Response<Bytes> {
    let response = Response::builder().status(code);
    response.body(Bytes::from(body.to_string())).unwrap()
}

fn refuse(code: u16, reason: &str) -> Response<Bytes> {
    let status = json!({"kind": "Status", "code": code, "reason": reason, "message": reason});
    answer(code, &status)
}
