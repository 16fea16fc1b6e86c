//! What this host's own credentials may do: one `SelfSubjectAccessReview` for one question.
//!
//! It owns the question's wire form. It must not know why somebody asks, nor keep an answer: rights change while the host runs.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::api::request;
use crate::connect::Connection;
use crate::discovery::ClusterError;

/// How long one review may take. It is answered from the server's memory; a webhook authorizer may need seconds.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(10);

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// May this host do that? Absent parts mean all: no namespace is every namespace (or a cluster-scoped kind), no name is every object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessQuestion<'a> {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, ...
    pub verb: &'a str,
    /// The API group; empty: the core one.
    pub group: &'a str,
    /// The plural, as it stands in paths: `pods`.
    pub resource: &'a str,
    /// `status`, `scale`, ...; none: the object itself.
    pub subresource: Option<&'a str>,
    /// None: all namespaces.
    pub namespace: Option<&'a str>,
    /// None: all objects.
    pub name: Option<&'a str>,
}

/// What the server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// May it?
    pub allowed: bool,
    /// Why, in the authorizer's words; often empty. Where a part of the authorizers failed, what they said.
    pub reason: String,
}

#[derive(Deserialize)]
struct Review {
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    allowed: bool,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    evaluation_error: String,
}

impl Connection {
    /// Asks whether this host's own credentials may do something. Creates nothing in the cluster, and every authenticated user may ask
    /// (`system:basic-user`).
    pub async fn access_review(
        &self,
        question: &AccessQuestion<'_>,
    ) -> Result<Access, ClusterError> {
        let body = Bytes::from(question.body().to_string());
        let request = request(Method::POST, REVIEWS, Some("application/json"), body)?;
        let (_, body) = self.call(request, REVIEW_TIMEOUT).await?;
        let Review { status } = serde_json::from_slice(&body).map_err(|error| {
            ClusterError::Answer(format!("a SelfSubjectAccessReview is not valid: {error}"))
        })?;
        let reason = [status.reason, status.evaluation_error]
            .into_iter()
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join("; ");
        Ok(Access {
            allowed: status.allowed,
            reason,
        })
    }
}

impl AccessQuestion<'_> {
    fn body(&self) -> Value {
        let attributes: Map<String, Value> = [
            ("verb", Some(self.verb)),
            ("group", Some(self.group)),
            ("resource", Some(self.resource)),
            ("subresource", self.subresource),
            ("namespace", self.namespace),
            ("name", self.name),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.into())))
        .collect();
        json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": { "resourceAttributes": attributes },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Fake, json, status};

    const QUESTION: AccessQuestion<'_> = AccessQuestion {
        verb: "patch",
        group: "apps",
        resource: "deployments",
        subresource: Some("scale"),
        namespace: Some("a"),
        name: None,
    };

    #[tokio::test]
    async fn the_question_is_asked_and_the_answer_read() {
        let fake = Fake::script([
            json(
                201,
                r#"{"kind":"SelfSubjectAccessReview","status":{"allowed":true,"reason":"RBAC: allowed"}}"#,
            ),
            json(
                201,
                r#"{"status":{"allowed":false,"reason":"no","evaluationError":"role \"x\" not found"}}"#,
            ),
            json(201, r#"{"status":{"allowed":false}}"#),
        ]);
        let connection = fake.connection();
        for (allowed, reason) in [
            (true, "RBAC: allowed"),
            (false, "no; role \"x\" not found"),
            (false, ""),
        ] {
            let access = connection.access_review(&QUESTION).await.unwrap();
            assert_eq!(
                access,
                Access {
                    allowed,
                    reason: reason.into()
                }
            );
        }
        let seen = &fake.seen()[0];
        assert_eq!(
            (seen.method.as_str(), seen.path.as_str()),
            ("POST", REVIEWS)
        );
        let sent: Value = serde_json::from_str(&seen.body).unwrap();
        assert_eq!(
            sent["spec"],
            json!({"resourceAttributes": {"verb": "patch", "group": "apps", "resource": "deployments", "subresource": "scale", "namespace": "a"}})
        );
    }

    #[tokio::test]
    async fn no_answer_is_no_permission() {
        let refused = Fake::new(|_| status(403, "Forbidden", "no reviews for you"));
        let error = refused.connection().access_review(&QUESTION).await;
        assert!(matches!(
            error,
            Err(ClusterError::Refused { code: 403, .. })
        ));
        let nonsense = Fake::new(|_| json(201, r#"{"kind":"SelfSubjectAccessReview"}"#));
        let error = nonsense.connection().access_review(&QUESTION).await;
        assert!(matches!(error, Err(ClusterError::Answer(_))));
    }
}
