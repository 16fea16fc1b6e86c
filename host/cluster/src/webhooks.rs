//! What serving webhooks needs of the cluster: one Secret, and the objects that register webhooks.
//!
//! This module owns their wire form and paths. It must not know certificates, nor what stands in
//! the Secret; it repeats no request and decides nothing from an answer.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use vmhost_core::{Gvk, PatchType};

use crate::api::request;
use crate::connect::Connection;
use crate::discovery::Resource;
use crate::error::Error;
use crate::object_path::ObjectPath;
use crate::write::Written;

/// The field manager of what the host writes to register its webhooks.
const MANAGER: &str = "vmhost";

/// The content of a Secret, as it was read or written. It has no `Debug`, so that no log shows it.
#[derive(Clone)]
pub struct SecretContent {
    /// The values, decoded.
    pub data: BTreeMap<String, Vec<u8>>,
    /// With the version that a replacement requires, and other clients' labels and annotations.
    metadata: Value,
    /// A Secret's type cannot be changed.
    kind: String,
}

/// Reads, creates and replaces one Secret, and nothing else. Cheap to clone.
#[derive(Clone)]
pub struct OneSecret {
    connection: Connection,
    namespace: String,
    name: String,
}

/// A kind of object that registers webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WebhookObject {
    /// `ValidatingWebhookConfiguration`.
    Validating,
    /// `MutatingWebhookConfiguration`.
    Mutating,
    /// `CustomResourceDefinition`, for its conversion.
    Definition,
}

/// Reads and changes the objects that register webhooks, and nothing else. Cheap to clone.
#[derive(Clone)]
pub struct WebhookObjects(Connection);

impl Connection {
    /// Returns the part that reads and writes the Secret of this name.
    pub fn secret(&self, namespace: &str, name: &str) -> OneSecret {
        OneSecret {
            connection: self.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Returns the part that reads and changes the objects that register webhooks.
    pub fn webhook_objects(&self) -> WebhookObjects {
        WebhookObjects(self.clone())
    }
}

impl OneSecret {
    /// Returns `NAMESPACE/NAME`, for messages.
    pub fn describe(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// Reads the Secret; `None` if it does not exist.
    pub async fn get(&self) -> Result<Option<SecretContent>, Error> {
        let path = self.path(Some(&self.name))?;
        let connection = &self.connection;
        match connection.fetch(&path, connection.write_timeout()).await {
            Ok(body) => read(&body).map(Some),
            Err(error) if error.code() == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates the Secret. Fails with 409 `AlreadyExists` if another host was faster.
    pub async fn create(&self, data: &BTreeMap<String, Vec<u8>>) -> Result<SecretContent, Error> {
        let metadata = json!({ "namespace": self.namespace, "name": self.name });
        let path = self.path(None)?;
        self.send(Method::POST, &path, &metadata, "Opaque", data)
            .await
    }

    /// Replaces the values, if the Secret has not changed since it was read. Fails with 409
    /// `Conflict` if another client was faster.
    pub async fn replace(
        &self,
        read: &SecretContent,
        data: &BTreeMap<String, Vec<u8>>,
    ) -> Result<SecretContent, Error> {
        let path = self.path(Some(&self.name))?;
        self.send(Method::PUT, &path, &read.metadata, &read.kind, data)
            .await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        metadata: &Value,
        kind: &str,
        data: &BTreeMap<String, Vec<u8>>,
    ) -> Result<SecretContent, Error> {
        let data: Map<String, Value> = data
            .iter()
            .map(|(name, value)| (name.clone(), Value::from(STANDARD.encode(value))))
            .collect();
        let body = json!({
            "apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": metadata, "data": data,
        });
        let body = Bytes::from(body.to_string());
        let request = request(method, path, Some("application/json"), body)?;
        let limit = self.connection.write_timeout();
        let (_, body) = self.connection.call(request, limit).await?;
        read(&body)
    }

    fn path(&self, name: Option<&str>) -> Result<String, Error> {
        let resource = Resource {
            kind: Gvk::new("", "v1", "Secret"),
            plural: "secrets".to_owned(),
            namespaced: true,
            subresources: Vec::new(),
        };
        let path = ObjectPath {
            resource: &resource,
            namespace: Some(&self.namespace),
            name,
            subresource: None,
        };
        path.encoded()
    }
}

impl WebhookObjects {
    /// Reads an object; `None` if it does not exist.
    pub async fn get(&self, kind: WebhookObject, name: &str) -> Result<Option<Value>, Error> {
        let resource = kind.resource();
        let path = ObjectPath::of_cluster(&resource, name).encoded()?;
        match self.0.fetch(&path, self.0.write_timeout()).await {
            Ok(body) => serde_json::from_slice(&body)
                .map(Some)
                .map_err(|error| Error::Unreadable(format!("{}: {error}", resource.kind))),
            Err(error) if error.code() == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a JSON patch of an existing object.
    pub async fn patch(
        &self,
        kind: WebhookObject,
        name: &str,
        operations: &Value,
    ) -> Result<Written, Error> {
        let resource = kind.resource();
        let body = operations.to_string();
        let writer = self.0.writer();
        writer
            .patch(
                &ObjectPath::of_cluster(&resource, name),
                PatchType::Json,
                body,
                MANAGER,
            )
            .await
    }

    /// Applies an object server-side, by force: the host owns what it registers.
    pub async fn apply(
        &self,
        kind: WebhookObject,
        name: &str,
        body: &Value,
    ) -> Result<Written, Error> {
        let resource = kind.resource();
        let body = body.to_string();
        let writer = self.0.writer();
        writer
            .apply(
                &ObjectPath::of_cluster(&resource, name),
                body,
                MANAGER,
                true,
            )
            .await
    }
}

impl WebhookObject {
    /// The kind's name.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Validating => "ValidatingWebhookConfiguration",
            Self::Mutating => "MutatingWebhookConfiguration",
            Self::Definition => "CustomResourceDefinition",
        }
    }

    fn resource(self) -> Resource {
        let (group, plural) = match self {
            Self::Validating => (
                "admissionregistration.k8s.io",
                "validatingwebhookconfigurations",
            ),
            Self::Mutating => (
                "admissionregistration.k8s.io",
                "mutatingwebhookconfigurations",
            ),
            Self::Definition => ("apiextensions.k8s.io", "customresourcedefinitions"),
        };
        Resource {
            kind: Gvk::new(group, "v1", self.kind()),
            plural: plural.to_owned(),
            namespaced: false,
            subresources: Vec::new(),
        }
    }
}

fn read(body: &[u8]) -> Result<SecretContent, Error> {
    #[derive(Deserialize)]
    struct Object {
        metadata: Value,
        #[serde(default, rename = "type")]
        kind: Option<String>,
        #[serde(default)]
        data: Option<BTreeMap<String, String>>,
    }
    // The error's text may quote what it read.
    let mut object: Object = serde_json::from_slice(body)
        .map_err(|_| Error::Unreadable("the answer is no Secret".to_owned()))?;
    if let Some(metadata) = object.metadata.as_object_mut() {
        metadata.remove("managedFields");
    }
    let mut data = BTreeMap::new();
    for (name, value) in object.data.unwrap_or_default() {
        let value = STANDARD
            .decode(&value)
            .map_err(|_| Error::Unreadable(format!("key {name:?} of a Secret is not base64")))?;
        data.insert(name, value);
    }
    Ok(SecretContent {
        data,
        metadata: object.metadata,
        kind: object.kind.unwrap_or_else(|| "Opaque".to_owned()),
    })
}

#[cfg(test)]
mod tests;
