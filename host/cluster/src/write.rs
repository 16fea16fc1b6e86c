//! Writes: one request, one answer, one timeout.
//!
//! This module owns paths, content types and the parsing of answers. It must not retry, nor decide
//! what a refusal means; the settle step does. Every error tells whether the request may have been
//! carried out.

use bytes::Bytes;
use http::header::ACCEPT;
use http::{HeaderValue, Method};
use serde_json::{Map, Value, json};
use vmhost_core::{PatchType, Propagation};

use crate::api::{query, request};
use crate::connect::Connection;
use crate::direct::IMPERSONATE_USER;
use crate::error::Error;
use crate::object_path::ObjectPath;

mod answer;

pub use answer::Written;

/// Preconditions and propagation of a delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Required `uid`.
    pub uid: Option<String>,
    /// Required `resourceVersion`.
    pub version: Option<String>,
    /// What happens to dependents; `None` for the kind's default.
    pub propagation: Option<Propagation>,
}

/// Writes objects. It has no method that reads. Cheap to clone.
#[derive(Clone)]
pub struct Writer {
    connection: Connection,
    /// Whether writes ask for the whole object in the answer.
    whole_answers: bool,
    /// Whether the server carries nothing out, and only answers as if it had.
    dry_run: bool,
    /// The user that writes are sent as. `None` for the host's own.
    user: Option<HeaderValue>,
}

impl Connection {
    /// Returns the part that writes objects.
    pub fn writer(&self) -> Writer {
        Writer {
            connection: self.clone(),
            whole_answers: false,
            dry_run: false,
            user: None,
        }
    }
}

impl Writer {
    /// Returns this writer, whose writes are answered with the whole object instead of only its
    /// metadata.
    #[must_use]
    pub fn with_whole_answers(mut self) -> Self {
        self.whole_answers = true;
        self
    }

    /// Makes every write of this writer a dry run: the server checks it, admission included, and
    /// answers with the object as the write would leave it.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    /// Returns this writer, whose writes are sent as another user: the server checks that user's
    /// rights, and the host's right to impersonate it. Fails if the name cannot be sent.
    pub fn acting_as(mut self, user: &str) -> Result<Self, Error> {
        let name = HeaderValue::from_str(user);
        self.user = Some(name.map_err(|error| Error::NotSent(error.into()))?);
        Ok(self)
    }

    /// Applies `body` server-side as `manager`. An object that does not exist is created, unless
    /// the body contains a uid.
    pub async fn apply(
        &self,
        path: &ObjectPath<'_>,
        body: impl Into<Bytes>,
        manager: &str,
        force: bool,
    ) -> Result<Written, Error> {
        // The body is JSON, which is YAML; servers before 1.32 do not know `apply-patch+json`.
        let force = if force { "true" } else { "false" };
        let parameters = [("fieldManager", manager), ("force", force)];
        self.write(
            Method::PATCH,
            path,
            &parameters,
            "application/apply-patch+yaml",
            body.into(),
        )
        .await
    }

    /// Sends a JSON merge patch or JSON patch of an existing object.
    pub async fn patch(
        &self,
        path: &ObjectPath<'_>,
        kind: PatchType,
        body: impl Into<Bytes>,
        manager: &str,
    ) -> Result<Written, Error> {
        let content_type = match kind {
            PatchType::Merge => "application/merge-patch+json",
            PatchType::Json => "application/json-patch+json",
        };
        self.write(
            Method::PATCH,
            path,
            &[("fieldManager", manager)],
            content_type,
            body.into(),
        )
        .await
    }

    /// Creates an object, or a subresource that can be created (`eviction`, `token`). The name is
    /// in the body.
    pub async fn create(
        &self,
        path: &ObjectPath<'_>,
        body: impl Into<Bytes>,
        manager: &str,
    ) -> Result<Written, Error> {
        let path = if path.subresource.is_some() {
            *path
        } else {
            ObjectPath {
                name: None,
                ..*path
            }
        };
        self.write(
            Method::POST,
            &path,
            &[("fieldManager", manager)],
            "application/json",
            body.into(),
        )
        .await
    }

    /// Replaces an object as a whole, guarded by the version in the body.
    pub async fn replace(
        &self,
        path: &ObjectPath<'_>,
        body: impl Into<Bytes>,
        manager: &str,
    ) -> Result<Written, Error> {
        self.write(
            Method::PUT,
            path,
            &[("fieldManager", manager)],
            "application/json",
            body.into(),
        )
        .await
    }

    /// Deletes an object.
    pub async fn delete(
        &self,
        path: &ObjectPath<'_>,
        options: &DeleteOptions,
    ) -> Result<Written, Error> {
        let mut body = json!({"kind": "DeleteOptions", "apiVersion": "v1"});
        let mut preconditions = Map::new();
        for (name, value) in [("uid", &options.uid), ("resourceVersion", &options.version)] {
            if let Some(value) = value {
                preconditions.insert(name.to_owned(), Value::from(value.as_str()));
            }
        }
        if !preconditions.is_empty() {
            body["preconditions"] = Value::Object(preconditions);
        }
        if let Some(propagation) = options.propagation {
            body["propagationPolicy"] = Value::from(propagation.as_str());
        }
        if self.dry_run {
            // With a body, the server does not read these options from the query.
            body["dryRun"] = json!(["All"]);
        }
        self.write(
            Method::DELETE,
            path,
            &[],
            "application/json",
            body.to_string().into(),
        )
        .await
    }

    async fn write(
        &self,
        method: Method,
        path: &ObjectPath<'_>,
        parameters: &[(&str, &str)],
        content_type: &'static str,
        body: Bytes,
    ) -> Result<Written, Error> {
        let mut url = path.encoded()? + &query(parameters);
        if self.dry_run {
            url.push(if parameters.is_empty() { '?' } else { '&' });
            url.push_str("dryRun=All");
        }
        let connection = &self.connection;
        let narrow =
            !self.whole_answers && connection.answers_narrowly() && has_metadata(&method, path);
        let mut request = request(method, &url, Some(content_type), body)?;
        if narrow {
            let accept = HeaderValue::from_static(METADATA);
            request.headers_mut().insert(ACCEPT, accept);
        }
        if let Some(user) = &self.user {
            // The server adds the groups of a service account itself.
            request.headers_mut().insert(IMPERSONATE_USER, user.clone());
        }
        match connection.call(request, connection.write_timeout()).await {
            Ok((headers, body)) => answer::read(&headers, body),
            Err(Error::Refused(refused)) if narrow && refused.code == 406 => {
                connection.answer_whole();
                Err(Error::Unreadable(refused.message))
            }
            Err(error) => Err(error),
        }
    }
}

/// The `Accept` header of a write: only metadata is read from the answer. A server without that
/// format sends whole objects.
const METADATA: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// Returns whether the answer is an object, so that metadata can be requested. The answer to a
/// delete may be a `Status`, that of a subresource anything.
fn has_metadata(method: &Method, path: &ObjectPath<'_>) -> bool {
    method != Method::DELETE && matches!(path.subresource, None | Some("status"))
}

#[cfg(test)]
mod tests;
