//! Which resource serves a kind, and under which path.
//!
//! It owns the discovery documents of one group version. It must not cache: a kind may appear and vanish, and only its user knows when to ask again.

use std::time::Duration;

use serde::Deserialize;
use vmhost_core::Gvk;

use crate::api::{BoxError, CallError, encode};
use crate::connect::Connection;

/// How long a discovery document may take.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(10);

/// A kind that the cluster serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The kind.
    pub kind: Gvk,
    /// Its name in paths: `virtualmachines`.
    pub plural: String,
    /// Do its objects live in namespaces?
    pub namespaced: bool,
    /// `status`, `scale`, ...
    pub subresources: Vec<String>,
}

/// Why the cluster could not be asked. All of them are worth another try, but `Refused` with 401 or 403 only after somebody acted.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The server could not be reached.
    #[error("the API server cannot be reached")]
    Unreachable(#[source] BoxError),
    /// The answer did not come in time.
    #[error("the API server did not answer within {0:?}")]
    Timeout(Duration),
    /// The server said no.
    #[error("the API server refused: {message} ({code} {reason})")]
    Refused {
        /// HTTP status.
        code: u16,
        /// `Status.reason`; empty when it was no `Status`.
        reason: String,
        /// `Status.message`.
        message: String,
        /// How long the server asks to wait.
        retry_after: Option<Duration>,
    },
    /// The answer makes no sense.
    #[error("the API server's answer is not what it should be: {0}")]
    Answer(String),
}

impl From<CallError> for ClusterError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::NotSent(source) | CallError::Network(source) => Self::Unreachable(source),
            CallError::Timeout(after) => Self::Timeout(after),
            CallError::TooLarge(limit) => Self::Answer(format!("longer than {limit} bytes")),
            CallError::Refused(refused) => Self::Refused {
                code: refused.code,
                reason: refused.reason,
                message: refused.message,
                retry_after: refused.retry_after,
            },
        }
    }
}

#[derive(Deserialize)]
struct ApiResourceList {
    resources: Vec<ApiResource>,
}

#[derive(Deserialize)]
struct ApiResource {
    name: String,
    kind: String,
    namespaced: bool,
}

impl Connection {
    /// Which resource serves this kind; none: the cluster does not serve it (yet). The caller keeps the answer.
    pub async fn resolve(&self, kind: &Gvk) -> Result<Option<Resource>, ClusterError> {
        match self.fetch(&group_path(kind), DISCOVERY_TIMEOUT).await {
            Ok(body) => {
                let list: ApiResourceList = serde_json::from_slice(&body)
                    .map_err(|error| ClusterError::Answer(error.to_string()))?;
                Ok(pick(kind, &list.resources))
            }
            Err(CallError::Refused(refused)) if refused.code == 404 => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// `/api/v1` or `/apis/GROUP/VERSION`.
fn group_path(kind: &Gvk) -> String {
    let mut path = String::with_capacity(64);
    path.push_str(if kind.group.is_empty() {
        "/api/"
    } else {
        "/apis/"
    });
    if !kind.group.is_empty() {
        encode(&kind.group, &mut path);
        path.push('/');
    }
    encode(&kind.version, &mut path);
    path
}

fn pick(kind: &Gvk, resources: &[ApiResource]) -> Option<Resource> {
    let resource = resources
        .iter()
        .find(|resource| resource.kind == kind.kind && !resource.name.contains('/'))?;
    let subresources = resources
        .iter()
        .filter_map(|other| other.name.strip_prefix(&resource.name)?.strip_prefix('/'));
    Some(Resource {
        kind: kind.clone(),
        plural: resource.name.clone(),
        namespaced: resource.namespaced,
        subresources: subresources.map(ToOwned::to_owned).collect(),
    })
}

impl Resource {
    /// The path of its objects, of one object, of a subresource. A namespace of a kind that has none is left out.
    pub fn path(
        &self,
        namespace: Option<&str>,
        name: Option<&str>,
        subresource: Option<&str>,
    ) -> String {
        let mut path = group_path(&self.kind);
        if let Some(namespace) = namespace.filter(|_| self.namespaced) {
            path.push_str("/namespaces/");
            encode(namespace, &mut path);
        }
        for part in [Some(self.plural.as_str()), name, subresource]
            .into_iter()
            .flatten()
        {
            path.push('/');
            encode(part, &mut path);
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Fake, json, status};

    const APPS: &str = r#"{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[
        {"name":"deployments","singularName":"","namespaced":true,"kind":"Deployment","verbs":["get"]},
        {"name":"deployments/scale","singularName":"","namespaced":true,"group":"autoscaling","version":"v1","kind":"Scale","verbs":["get"]},
        {"name":"deployments/status","singularName":"","namespaced":true,"kind":"Deployment","verbs":["get"]}]}"#;

    #[tokio::test]
    async fn a_kind_is_found_or_not_served() {
        let fake = Fake::new(|request| match request.uri().path() {
            "/apis/apps/v1" => json(200, APPS),
            "/api/v1" => status(403, "Forbidden", "no"),
            _ => status(
                404,
                "NotFound",
                "the server could not find the requested resource",
            ),
        });
        let found = fake
            .connection()
            .resolve(&Gvk::new("apps", "v1", "Deployment"))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            (found.plural.as_str(), found.namespaced),
            ("deployments", true)
        );
        assert_eq!(found.subresources, ["scale", "status"]);
        assert_eq!(
            fake.connection()
                .resolve(&Gvk::new("apps", "v1", "Scale"))
                .await
                .unwrap(),
            None
        );
        assert_eq!(
            fake.connection()
                .resolve(&Gvk::new("x.io", "v1", "Vm"))
                .await
                .unwrap(),
            None
        );
        let error = fake
            .connection()
            .resolve(&Gvk::new("", "v1", "Pod"))
            .await
            .unwrap_err();
        assert!(matches!(error, ClusterError::Refused { code: 403, .. }));
    }

    #[test]
    fn paths_keep_names_in_their_place() {
        let mut resource = Resource {
            kind: Gvk::new("", "v1", "Pod"),
            plural: "pods".into(),
            namespaced: true,
            subresources: Vec::new(),
        };
        assert_eq!(resource.path(None, None, None), "/api/v1/pods");
        assert_eq!(
            resource.path(Some("a"), Some("b"), Some("status")),
            "/api/v1/namespaces/a/pods/b/status"
        );
        assert_eq!(
            resource.path(Some("a"), Some("../secrets/x?y"), None),
            "/api/v1/namespaces/a/pods/..%2Fsecrets%2Fx%3Fy"
        );
        resource.namespaced = false;
        assert_eq!(
            resource.path(Some("a"), Some("system:x"), None),
            "/api/v1/pods/system:x"
        );
    }
}
