//! The server's semantics, tested as a client but without a socket.

mod access;
mod admission;
mod builtin;
mod certificates;
mod custom;
mod discovery;
mod front;
mod fuzz;
mod garbage;
mod kept;
mod lists;
mod mutations;
mod objects;
mod overlay;
mod ownership;
mod patches;
mod protobuf;
mod strategies;
mod watches;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::access::credentials::{Access, Peer};
use crate::front::{Front, Gate, router};
use crate::state::State;

pub(crate) const VMS: &str = "/apis/cloud.waibizi.com/v1/namespaces/default/virtualmachines";
pub(crate) const ALL_VMS: &str = "/apis/cloud.waibizi.com/v1/virtualmachines";
pub(crate) const CMS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(crate) const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/// A cluster and its client.
pub(crate) struct Cluster {
    pub state: Arc<State>,
    router: Router,
    pub stop: CancellationToken,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub code: u16,
    pub headers: HeaderMap,
    pub text: String,
    pub body: Value,
}

impl Answer {
    pub fn ok(self) -> Value {
        assert!(self.code < 300, "{} {}", self.code, self.text);
        self.body
    }

    /// Checks the code and reason of a refusal, whose message must contain `part`.
    pub fn refused(&self, code: u16, reason: &str, part: &str) {
        assert_eq!(
            (self.code, self.body["reason"].as_str().unwrap_or_default()),
            (code, reason),
            "{}",
            self.text
        );
        assert_eq!(self.body["kind"], "Status");
        assert_eq!(self.body["code"], code);
        let message = self.body["message"].as_str().unwrap_or_default();
        assert!(message.contains(part), "{message}");
    }
}

impl Cluster {
    pub fn new() -> Cluster {
        Cluster::of(State::new(), false)
    }

    pub fn of(state: Arc<State>, rbac: bool) -> Cluster {
        let stop = CancellationToken::new();
        let front = Front {
            state: state.clone(),
            address: "127.0.0.1:1".into(),
            stop: stop.clone(),
        };
        let access = Access::new(&state, Some("secret".to_owned()), rbac).unwrap();
        let gate = Gate {
            front,
            access: Arc::new(access),
            peer: Arc::new(Peer::Unknown),
        };
        Cluster {
            state,
            router: router(gate),
            stop,
        }
    }

    /// Creates a cluster that serves virtual machines.
    pub async fn with_vms() -> Cluster {
        let cluster = Cluster::new();
        cluster.post(CRDS, &definition()).await.ok();
        cluster
    }

    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(http::HeaderName, &str)],
        body: &str,
    ) -> Answer {
        let response = self.start(method, path, headers, body).await;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let body = serde_json::from_str(&text).unwrap_or_default();
        Answer {
            code: parts.status.as_u16(),
            headers: parts.headers,
            text,
            body,
        }
    }

    async fn start(
        &self,
        method: &str,
        path: &str,
        headers: &[(http::HeaderName, &str)],
        body: &str,
    ) -> http::Response<Body> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(USER_AGENT, "tester/1.0 (x)");
        if !headers.iter().any(|(name, _)| name == AUTHORIZATION) {
            request = request.header(AUTHORIZATION, "Bearer secret");
        }
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        self.router
            .clone()
            .oneshot(request.body(Body::from(body.to_owned())).unwrap())
            .await
            .unwrap()
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "").await
    }

    pub async fn get_as(&self, path: &str, accept: &str) -> Answer {
        self.send("GET", path, &[(ACCEPT, accept)], "").await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, &[], &body.to_string()).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send(
            "PUT",
            path,
            &[(CONTENT_TYPE, "application/json")],
            &body.to_string(),
        )
        .await
    }

    pub async fn delete(&self, path: &str, body: &Value) -> Answer {
        self.send("DELETE", path, &[], &body.to_string()).await
    }

    pub async fn patch(&self, path: &str, kind: &str, body: &Value) -> Answer {
        let media = match kind {
            "apply" => "application/apply-patch+yaml".to_owned(),
            kind => format!("application/{kind}+json"),
        };
        self.send("PATCH", path, &[(CONTENT_TYPE, &media)], &body.to_string())
            .await
    }

    pub async fn merge(&self, path: &str, body: &Value) -> Answer {
        self.patch(path, "merge-patch", body).await
    }

    /// Opens a watch.
    pub async fn watch(&self, path: &str, accept: &str) -> Lines {
        let response = self.start("GET", path, &[(ACCEPT, accept)], "").await;
        assert_eq!(response.status(), 200);
        Lines {
            body: response.into_body(),
            rest: Vec::new(),
        }
    }
}

/// The lines of a watch.
pub(crate) struct Lines {
    body: Body,
    rest: Vec<u8>,
}

impl Lines {
    /// Returns the next event; `None` at the end.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = tokio::time::timeout(Duration::from_secs(10), self.body.frame());
            let frame = frame.await.expect("an event in time")?.unwrap();
            self.rest.extend(frame.into_data().unwrap());
        }
    }

    /// Returns the next event as its type and the object's name.
    pub async fn brief(&mut self) -> String {
        match self.next().await {
            Some(event) => format!(
                "{} {}",
                event["type"].as_str().unwrap(),
                event["object"]["metadata"]["name"].as_str().unwrap_or("-"),
            ),
            None => "end".to_owned(),
        }
    }
}

pub(crate) fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "virtualmachines.cloud.waibizi.com" },
        "spec": {
            "group": "cloud.waibizi.com",
            "scope": "Namespaced",
            "names": { "kind": "VirtualMachine", "plural": "virtualmachines", "shortNames": ["vm"] },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {
                            "type": "object",
                            "properties": {
                                "memory": { "type": "integer" },
                                "status": { "type": "string" },
                                "size": { "type": "string", "default": "small" },
                                "replicas": { "type": "integer" },
                            },
                        },
                        "status": {
                            "type": "object",
                            "properties": { "phase": { "type": "string" }, "replicas": { "type": "integer" } },
                        },
                    },
                } },
                "additionalPrinterColumns": [
                    { "name": "Status", "type": "string", "jsonPath": ".spec.status" },
                    { "name": "Memory", "type": "integer", "jsonPath": ".spec.memory" },
                    { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
                ],
            }],
        },
    })
}

/// Returns the definition with status and scale subresources.
pub(crate) fn definition_with_subresources() -> Value {
    let mut definition = definition();
    definition["spec"]["versions"][0]["subresources"] = json!({
        "status": {},
        "scale": { "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas" },
    });
    definition
}

pub(crate) fn vm(name: &str) -> Value {
    json!({
        "apiVersion": "cloud.waibizi.com/v1",
        "kind": "VirtualMachine",
        "metadata": { "name": name },
        "spec": { "memory": 4096, "status": "creating" },
    })
}

pub(crate) fn cm(name: &str, value: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "a": value } })
}

pub(crate) fn version_of(object: &Value) -> String {
    object["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .to_owned()
}
