//! Writes: one request, one answer, one time-out.
//!
//! It owns paths, content types and what an answer says. It must not try anything twice nor decide what a refusal means: settle does. Every error can be
//! asked whether the request may have been carried out.

use std::time::Duration;

use bytes::Bytes;
use http::header::ACCEPT;
use http::{HeaderValue, Method};
use serde_json::{Map, Value, json};
use vmhost_core::{PatchType, Propagation, Snapshot};

use crate::api::{BoxError, CallError, query, request};
use crate::connect::Connection;
use crate::discovery::Resource;
use crate::text::{Wanted, ingest};

mod answer;

/// How long a write may take. Shorter than the time between the renew deadline (10 s) and the end of a lease (15 s), so that no write of a leader that
/// lost its lease lands later than the next leader's first.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(4);

/// What a request is about.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The kind's resource.
    pub resource: &'a Resource,
    /// The namespace; none for cluster-scoped kinds.
    pub namespace: Option<&'a str>,
    /// The name; none for a create whose name the server makes.
    pub name: Option<&'a str>,
    /// `status`, `scale`, ...; none: the object itself.
    pub subresource: Option<&'a str>,
}

/// Preconditions and manner of a delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Required `uid`.
    pub uid: Option<String>,
    /// Required `resourceVersion`.
    pub version: Option<String>,
    /// What happens to dependents; none: the kind's default.
    pub propagation: Option<Propagation>,
}

/// A write that was carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The object's version after it; 0 when the answer names none (gone, or a subresource that is no part of the object).
    pub version: u64,
    /// The object's uid; empty when the answer names none.
    pub uid: String,
    /// The object's name, which the server may have made.
    pub name: String,
    /// A delete after which nothing is left: the server answered a `Status`.
    pub gone: bool,
    /// The server's warnings, without their codes.
    pub warnings: Vec<String>,
    /// The answer: the object as it is now, of which a connection without whole answers asks for
    /// the metadata alone. UTF-8.
    pub body: Bytes,
}

/// One cause of a refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusCause {
    /// `FieldManagerConflict`, `FieldValueInvalid`, ...
    pub reason: String,
    /// For people.
    pub message: String,
    /// The field's path.
    pub field: String,
}

/// Why a write has no success to show. [`WriteError::maybe_applied`] says whether it may have happened all the same.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The server answered, and refused.
    #[error("the API server refused: {message} ({code} {reason})")]
    Status {
        /// HTTP status.
        code: u16,
        /// `Status.reason`; empty when it was no `Status`.
        reason: String,
        /// `Status.message`, or the first line of what a proxy said.
        message: String,
        /// `Status.details.causes`.
        causes: Vec<StatusCause>,
        /// How long the server asks to wait.
        retry_after: Option<Duration>,
    },
    /// No answer in time.
    #[error("no answer from the API server within {0:?}")]
    Timeout(Duration),
    /// The connection broke before the answer.
    #[error("the connection to the API server broke")]
    Network(#[source] BoxError),
    /// It never left: no connection, no credentials, or a name that cannot stand in a path.
    #[error("the request could not be sent")]
    NotSent(#[source] BoxError),
    /// It was carried out, but its answer cannot be read.
    #[error("the API server's answer is not what it should be: {0}")]
    Answer(String),
}

impl WriteError {
    /// Returns whether the server may have carried out the request. Then only a live read tells.
    pub fn maybe_applied(&self) -> bool {
        match self {
            // Its own word that it takes no request now, and of a method that it does not know. A
            // proxy's 503 has no reason.
            Self::Status { code: 501, .. } => false,
            Self::Status {
                code: 503, reason, ..
            } => reason != "ServiceUnavailable",
            Self::Status { code, .. } => *code >= 500,
            Self::Timeout(_) | Self::Network(_) | Self::Answer(_) => true,
            Self::NotSent(_) => false,
        }
    }

    /// How long the server asks to wait; zero: it does not.
    pub fn retry_after(&self) -> Duration {
        match self {
            Self::Status { retry_after, .. } => retry_after.unwrap_or_default(),
            _ => Duration::ZERO,
        }
    }
}

impl From<CallError> for WriteError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::NotSent(source) => Self::NotSent(source),
            CallError::Network(source) => Self::Network(source),
            CallError::Timeout(after) => Self::Timeout(after),
            CallError::TooLarge(limit) => Self::Answer(format!("longer than {limit} bytes")),
            CallError::Refused(refused) => Self::Status {
                code: refused.code,
                reason: refused.reason,
                message: refused.message,
                causes: refused
                    .causes
                    .into_iter()
                    .map(|cause| StatusCause {
                        reason: cause.reason,
                        message: cause.message,
                        field: cause.field,
                    })
                    .collect(),
                retry_after: refused.retry_after,
            },
        }
    }
}

impl Connection {
    /// Server-side apply of `body` under the name of `manager`. An object that does not exist is created, unless the body carries a uid.
    pub async fn apply(
        &self,
        target: &Target<'_>,
        body: impl Into<Bytes>,
        manager: &str,
        force: bool,
    ) -> Result<Written, WriteError> {
        // The body is JSON, which is YAML; servers before 1.32 know no `apply-patch+json`.
        let force = if force { "true" } else { "false" };
        let parameters = [("fieldManager", manager), ("force", force)];
        self.write(
            Method::PATCH,
            target,
            &parameters,
            "application/apply-patch+yaml",
            body.into(),
        )
        .await
    }

    /// JSON merge patch or JSON patch of an object that exists.
    pub async fn patch(
        &self,
        target: &Target<'_>,
        kind: PatchType,
        body: impl Into<Bytes>,
        manager: &str,
    ) -> Result<Written, WriteError> {
        let content_type = match kind {
            PatchType::Merge => "application/merge-patch+json",
            PatchType::Json => "application/json-patch+json",
        };
        self.write(
            Method::PATCH,
            target,
            &[("fieldManager", manager)],
            content_type,
            body.into(),
        )
        .await
    }

    /// Creates an object, or a subresource that is created (`eviction`, `token`). The name is the body's.
    pub async fn create(
        &self,
        target: &Target<'_>,
        body: impl Into<Bytes>,
        manager: &str,
    ) -> Result<Written, WriteError> {
        let target = if target.subresource.is_some() {
            *target
        } else {
            Target {
                name: None,
                ..*target
            }
        };
        self.write(
            Method::POST,
            &target,
            &[("fieldManager", manager)],
            "application/json",
            body.into(),
        )
        .await
    }

    /// Replaces an object as a whole. The version in the body guards it.
    pub async fn replace(
        &self,
        target: &Target<'_>,
        body: impl Into<Bytes>,
        manager: &str,
    ) -> Result<Written, WriteError> {
        self.write(
            Method::PUT,
            target,
            &[("fieldManager", manager)],
            "application/json",
            body.into(),
        )
        .await
    }

    /// Deletes an object.
    pub async fn delete(
        &self,
        target: &Target<'_>,
        options: &DeleteOptions,
    ) -> Result<Written, WriteError> {
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
        self.write(
            Method::DELETE,
            target,
            &[],
            "application/json",
            body.to_string().into(),
        )
        .await
    }

    /// Reads an object from the server itself, not from a store. None: there is none (404).
    pub async fn get(&self, target: &Target<'_>) -> Result<Option<Snapshot>, WriteError> {
        let body = match self.fetch(&path(target)?, self.write_timeout()).await {
            Ok(body) => body,
            Err(CallError::Refused(refused)) if refused.code == 404 => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let text =
            std::str::from_utf8(&body).map_err(|error| WriteError::Answer(error.to_string()))?;
        let object = ingest(text.trim(), &target.resource.kind, &Wanted::All);
        object
            .map(Some)
            .map_err(|error| WriteError::Answer(crate::api::chain(&error)))
    }

    async fn write(
        &self,
        method: Method,
        target: &Target<'_>,
        parameters: &[(&str, &str)],
        content_type: &'static str,
        body: Bytes,
    ) -> Result<Written, WriteError> {
        let path = path(target)? + &query(parameters);
        let narrow = self.answers_narrowly() && has_metadata(&method, target);
        let mut request = request(method, &path, Some(content_type), body)?;
        if narrow {
            let accept = HeaderValue::from_static(METADATA);
            request.headers_mut().insert(ACCEPT, accept);
        }
        match self.call(request, self.write_timeout()).await {
            Ok((headers, body)) => answer::read(&headers, body),
            Err(CallError::Refused(refused)) if narrow && refused.code == 406 => {
                self.answer_whole();
                Err(WriteError::Answer(refused.message))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// What is accepted in answer to a write: all that is read of it is metadata. Whole objects from a server that has no such thing.
const METADATA: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// Is the answer an object, of which metadata can be asked for? A delete's may be a `Status`, a subresource's anything.
fn has_metadata(method: &Method, target: &Target<'_>) -> bool {
    method != Method::DELETE && matches!(target.subresource, None | Some("status"))
}

/// The path of a target whose names can stand in one: a name made of dots would be walked up by whoever cleans paths on the way.
fn path(target: &Target<'_>) -> Result<String, WriteError> {
    for part in [target.namespace, target.name, target.subresource]
        .into_iter()
        .flatten()
    {
        if part.is_empty() || part == "." || part == ".." || part.contains(['/', '%']) {
            return Err(WriteError::NotSent(
                format!("{part:?} cannot be a name").into(),
            ));
        }
    }
    Ok(target
        .resource
        .path(target.namespace, target.name, target.subresource))
}

#[cfg(test)]
mod tests;
