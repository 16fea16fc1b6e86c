//! Finds the resource that serves a kind, and its path.
//!
//! This module owns the discovery documents of one group version. It must not cache: a kind may
//! appear and vanish, and only the caller knows when to ask again.

use std::time::Duration;

use serde::Deserialize;
use vmhost_core::Gvk;

use crate::api::encode;
use crate::error::Error;
use crate::reader::Reader;

mod served;

/// Timeout of a discovery document.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout of an OpenAPI document, which a server may have to put together first.
const SCHEMAS_TIMEOUT: Duration = Duration::from_secs(30);

/// A kind that the cluster serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The kind.
    pub kind: Gvk,
    /// The name in URL paths: `virtualmachines`.
    pub plural: String,
    /// Whether objects are namespaced.
    pub namespaced: bool,
    /// `status`, `scale`, ...
    pub subresources: Vec<String>,
}

/// How users call a kind that the cluster serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindNames {
    /// The name in URL paths: `virtualmachines`.
    pub plural: String,
    /// The name of one object: `virtualmachine`. Empty if the server tells none.
    pub singular: String,
    /// Short names: `vm`.
    pub short: Vec<String>,
    /// Whether objects are namespaced.
    pub namespaced: bool,
}

#[derive(Deserialize)]
struct ApiResourceList {
    resources: Vec<ApiResource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ApiResource {
    name: String,
    kind: String,
    namespaced: bool,
    #[serde(default)]
    singular_name: String,
    #[serde(default)]
    short_names: Vec<String>,
}

impl Reader {
    /// Returns the resource that serves this kind; `None` if the cluster does not serve it (yet).
    /// The caller caches the answer.
    pub async fn resolve(&self, kind: &Gvk) -> Result<Option<Resource>, Error> {
        let found = self.resolve_named(kind).await?;
        Ok(found.map(|(resource, _)| resource))
    }

    /// Like [`Reader::resolve`], with the names by which users call the kind.
    pub(crate) async fn resolve_named(
        &self,
        kind: &Gvk,
    ) -> Result<Option<(Resource, KindNames)>, Error> {
        let path = group_path(kind);
        match self.fetch(&path, None, DISCOVERY_TIMEOUT).await {
            Ok(body) => {
                let list: ApiResourceList = serde_json::from_slice(&body)
                    .map_err(|error| Error::Unreadable(error.to_string()))?;
                Ok(pick(kind, &list.resources))
            }
            Err(error) if error.code() == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the OpenAPI document of a kind's group and version, with the schemas of all its
    /// kinds; `None` if the server has none.
    pub async fn schemas(&self, kind: &Gvk) -> Result<Option<serde_json::Value>, Error> {
        let path = format!("/openapi/v3{}", group_path(kind));
        match self.fetch(&path, None, SCHEMAS_TIMEOUT).await {
            Ok(body) => serde_json::from_slice(&body)
                .map(Some)
                .map_err(|error| Error::Unreadable(error.to_string())),
            Err(error) if error.code() == Some(404) => Ok(None),
            Err(error) => Err(error),
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

fn pick(kind: &Gvk, resources: &[ApiResource]) -> Option<(Resource, KindNames)> {
    let resource = resources
        .iter()
        .find(|resource| resource.kind == kind.kind && !resource.name.contains('/'))?;
    let subresources = resources
        .iter()
        .filter_map(|other| other.name.strip_prefix(&resource.name)?.strip_prefix('/'));
    let names = KindNames {
        plural: resource.name.clone(),
        singular: resource.singular_name.clone(),
        short: resource.short_names.clone(),
        namespaced: resource.namespaced,
    };
    let resource = Resource {
        kind: kind.clone(),
        plural: resource.name.clone(),
        namespaced: resource.namespaced,
        subresources: subresources.map(ToOwned::to_owned).collect(),
    };
    Some((resource, names))
}

impl Resource {
    /// Returns the path of the objects, of one object, or of a subresource. The namespace is left
    /// out for a cluster-scoped kind.
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
        {"name":"deployments","singularName":"deployment","shortNames":["deploy"],"namespaced":true,"kind":"Deployment","verbs":["get"]},
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
            .reader()
            .resolve(&Gvk::new("apps", "v1", "Deployment"))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            (found.plural.as_str(), found.namespaced),
            ("deployments", true)
        );
        assert_eq!(found.subresources, ["scale", "status"]);
        let (_, names) = fake
            .connection()
            .reader()
            .resolve_named(&Gvk::new("apps", "v1", "Deployment"))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            (names.singular.as_str(), names.short),
            ("deployment", vec!["deploy".to_owned()])
        );
        assert_eq!(
            fake.connection()
                .reader()
                .resolve(&Gvk::new("apps", "v1", "Scale"))
                .await
                .unwrap(),
            None
        );
        assert_eq!(
            fake.connection()
                .reader()
                .resolve(&Gvk::new("x.io", "v1", "Vm"))
                .await
                .unwrap(),
            None
        );
        let error = fake
            .connection()
            .reader()
            .resolve(&Gvk::new("", "v1", "Pod"))
            .await
            .unwrap_err();
        assert_eq!(error.code(), Some(403));
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
