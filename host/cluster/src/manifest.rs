//! Applies manifests for `vmhost dev` and `vmhost install`, like a patient `kubectl apply
//! --server-side`.
//!
//! This module owns the waiting for CRDs. It must not read files or YAML: its callers pass JSON.

use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep};
use vmhost_core::{Gvk, ObjectHead};

use crate::connect::Connection;
use crate::discovery::Resource;
use crate::error::Error;
use crate::object_path::ObjectPath;
use crate::status::Status;
use crate::write::Written;

/// The field manager of the manifests of `vmhost dev`.
const MANAGER: &str = "vmhost-dev";
/// How long to wait for a kind to be served after its CRD, and for a CRD to be established; a real
/// server needs a second or two.
const PATIENCE: Duration = Duration::from_secs(30);
/// Interval of the checks.
const PERIOD: Duration = Duration::from_millis(200);
/// Group and kind of a CRD.
const CRD: (&str, &str) = ("apiextensions.k8s.io", "CustomResourceDefinition");

/// An applied manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifested {
    /// The object's kind.
    pub kind: Gvk,
    /// The object's namespace; `None` for cluster-scoped kinds.
    pub namespace: Option<String>,
    /// The object's name.
    pub name: String,
    /// The server's answer.
    pub written: Written,
}

/// Why a manifest could not be applied. Each text names the object.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The manifest is not a Kubernetes object.
    #[error("the manifest is not a Kubernetes object: {0}")]
    Head(String),
    /// The server does not know the kind.
    #[error("{object}: the cluster does not serve this kind; apply its CRD first")]
    NotServed {
        /// Kind and name.
        object: String,
    },
    /// The kind could not be looked up.
    #[error("{object}: cannot look up the kind")]
    Resolve {
        /// Kind and name.
        object: String,
        /// The cause.
        source: Error,
    },
    /// The server refused the object, or did not answer.
    #[error("cannot apply {object}")]
    Apply {
        /// Kind and name.
        object: String,
        /// The cause.
        source: Error,
    },
    /// A CRD was applied but is not served.
    #[error("{object}: not established after {PATIENCE:?}: {detail}")]
    NotEstablished {
        /// Kind and name.
        object: String,
        /// The message of its condition.
        detail: String,
    },
}

/// Applies objects of any kind, for commands that are given them. Cheap to clone.
#[derive(Clone)]
pub struct Manifests {
    connection: Connection,
    manager: &'static str,
}

impl Connection {
    /// Returns the part that applies manifests for `vmhost dev`.
    pub fn manifests(&self) -> Manifests {
        self.manifests_of(MANAGER)
    }

    /// Returns the part that applies manifests, by this field manager.
    pub fn manifests_of(&self, manager: &'static str) -> Manifests {
        Manifests {
            connection: self.clone(),
            manager,
        }
    }
}

impl Manifests {
    /// Applies one object server-side, with force. Waits for its kind to be served, and for a CRD
    /// to be established. A namespaced object without a namespace goes to the connection's default
    /// namespace.
    pub async fn apply(&self, manifest: &Value) -> Result<Manifested, ManifestError> {
        let text = manifest.to_string();
        let head = ObjectHead::parse(&text).map_err(ManifestError::Head)?;
        let Some(name) = head.metadata.name.clone().filter(|name| !name.is_empty()) else {
            return Err(ManifestError::Head("metadata.name is missing".into()));
        };
        let kind = head.gvk();
        let object = format!("{kind} {name}");
        let resource = self.served(&kind, &object).await?;
        let namespace = resource.namespaced.then(|| {
            head.metadata
                .namespace
                .unwrap_or_else(|| self.connection.default_namespace().to_owned())
        });
        let path = ObjectPath {
            resource: &resource,
            namespace: namespace.as_deref(),
            name: Some(&name),
            subresource: None,
        };
        let written =
            self.apply_patiently(&path, &text)
                .await
                .map_err(|source| ManifestError::Apply {
                    object: object.clone(),
                    source,
                })?;
        if (kind.group.as_str(), kind.kind.as_str()) == CRD {
            self.established(&path, &object).await?;
        }
        Ok(Manifested {
            kind,
            namespace,
            name,
            written,
        })
    }

    /// Returns the kind's resource. A new CRD takes a moment to be served.
    async fn served(&self, kind: &Gvk, object: &str) -> Result<Resource, ManifestError> {
        let (reader, start) = (self.connection.reader(), Instant::now());
        loop {
            match reader.resolve(kind).await {
                Ok(Some(resource)) => return Ok(resource),
                Ok(None) if start.elapsed() < PATIENCE => sleep(PERIOD).await,
                Ok(None) => {
                    return Err(ManifestError::NotServed {
                        object: object.to_owned(),
                    });
                }
                Err(source) => {
                    return Err(ManifestError::Resolve {
                        object: object.to_owned(),
                        source,
                    });
                }
            }
        }
    }

    /// Applies an object, with retries: just after a CRD is established its storage may not be
    /// ready, which gives 404 or 429 for a moment.
    async fn apply_patiently(&self, path: &ObjectPath<'_>, text: &str) -> Result<Written, Error> {
        let (writer, start) = (self.connection.writer(), Instant::now());
        loop {
            match writer
                .apply(path, text.to_owned(), self.manager, true)
                .await
            {
                Err(Error::Refused(Status {
                    code: 404 | 429,
                    retry_after,
                    ..
                })) if start.elapsed() < PATIENCE / 3 => {
                    sleep(retry_after.unwrap_or(PERIOD)).await;
                }
                other => return other,
            }
        }
    }

    async fn established(&self, path: &ObjectPath<'_>, object: &str) -> Result<(), ManifestError> {
        let url = path.resource.path(None, path.name, None);
        let start = Instant::now();
        loop {
            let apply = |source| ManifestError::Apply {
                object: object.to_owned(),
                source,
            };
            let body = self
                .connection
                .fetch(&url, self.connection.write_timeout())
                .await;
            let body = body.map_err(apply)?;
            let crd: Value = serde_json::from_slice(&body)
                .map_err(|error| apply(Error::Unreadable(error.to_string())))?;
            if condition(&crd, "Established").is_some_and(|condition| condition["status"] == "True")
            {
                return Ok(());
            }
            if start.elapsed() >= PATIENCE {
                let refused =
                    condition(&crd, "NamesAccepted").or_else(|| condition(&crd, "Established"));
                let detail = refused
                    .and_then(|condition| condition["message"].as_str())
                    .unwrap_or("no conditions")
                    .to_owned();
                return Err(ManifestError::NotEstablished {
                    object: object.to_owned(),
                    detail,
                });
            }
            sleep(PERIOD).await;
        }
    }
}

fn condition<'a>(crd: &'a Value, kind: &str) -> Option<&'a Value> {
    crd["status"]["conditions"]
        .as_array()?
        .iter()
        .find(|condition| condition["type"] == kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Fake, json, status};
    use parking_lot::Mutex;

    const GROUP: &str = r#"{"resources":[{"name":"customresourcedefinitions","namespaced":false,"kind":"CustomResourceDefinition"}]}"#;

    fn crd(established: &str) -> String {
        format!(
            r#"{{"metadata":{{"name":"c","uid":"u","resourceVersion":"3"}},"status":{{"conditions":[{{"type":"Established","status":"{established}"}}]}}}}"#
        )
    }

    #[tokio::test(start_paused = true)]
    async fn a_crd_is_waited_for() {
        let fake = Fake::script([
            json(200, GROUP),
            status(429, "TooManyRequests", "storage is (re)initializing"),
            json(200, &crd("False")),
            json(200, &crd("False")),
            json(200, &crd("True")),
        ]);
        let manifest = serde_json::json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "c"}});
        let done = fake
            .connection()
            .manifests()
            .apply(&manifest)
            .await
            .unwrap();
        assert_eq!(
            (done.name.as_str(), done.namespace, done.written.version),
            ("c", None, 3)
        );
        assert_eq!(fake.seen()[1].query, "fieldManager=vmhost-dev&force=true");
    }

    #[tokio::test(start_paused = true)]
    async fn a_kind_may_come_late_or_never() {
        let tries = Mutex::new(0);
        let fake = Fake::new(move |request| {
            let mut tries = tries.lock();
            *tries += 1;
            match request.uri().path() {
                "/apis/x.io/v1" if *tries > 3 => json(
                    200,
                    r#"{"resources":[{"name":"vms","namespaced":true,"kind":"Vm"}]}"#,
                ),
                "/apis/x.io/v1/namespaces/default/vms/a" => json(201, &crd("")),
                _ => status(404, "NotFound", "no"),
            }
        });
        let manifest = |kind: &str| serde_json::json!({"apiVersion": "x.io/v1", "kind": kind, "metadata": {"name": "a"}});
        let done = fake
            .connection()
            .manifests()
            .apply(&manifest("Vm"))
            .await
            .unwrap();
        assert_eq!(done.namespace.as_deref(), Some("default"));
        let error = fake
            .connection()
            .manifests()
            .apply(&manifest("Nothing"))
            .await
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "Nothing.v1.x.io a: the cluster does not serve this kind; apply its CRD first"
        );
        assert!(
            fake.connection()
                .manifests()
                .apply(&Value::Null)
                .await
                .is_err()
        );
    }
}
