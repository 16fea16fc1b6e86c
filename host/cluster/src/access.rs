//! What this host's own credentials, or another user's, may do: one `SelfSubjectAccessReview` or
//! `SubjectAccessReview` per question.
//!
//! This module owns the wire form of the question, and how any review is sent. It must not know why
//! a caller asks, nor cache an answer: permissions change while the host runs.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::api::request;
use crate::connect::Connection;
use crate::error::Error;

/// Timeout of one review. The server answers from memory; a webhook authorizer may need seconds.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(10);

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// Where rights of another user are asked for.
pub(crate) const REVIEWS_OF_OTHERS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// An action that this host may want to take. An absent part means all: without a namespace every
/// namespace (or a cluster-scoped kind), without a name every object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessQuestion<'a> {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, ...
    pub verb: &'a str,
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The plural, as in URL paths: `pods`.
    pub resource: &'a str,
    /// `status`, `scale`, ...; `None` for the object itself.
    pub subresource: Option<&'a str>,
    /// `None` for all namespaces.
    pub namespace: Option<&'a str>,
    /// `None` for all objects.
    pub name: Option<&'a str>,
}

/// The server's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Whether the action is allowed.
    pub allowed: bool,
    /// The authorizer's reason; often empty. Includes the errors of authorizers that failed.
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

/// Asks what this host or another user may do, and can do nothing else. Cheap to clone.
#[derive(Clone)]
pub struct AccessReviews(Connection);

impl Connection {
    /// Returns the part that asks what this host or another user may do.
    pub fn access_reviews(&self) -> AccessReviews {
        AccessReviews(self.clone())
    }
}

impl AccessReviews {
    /// Asks whether this host's own credentials allow an action. Creates nothing in the cluster,
    /// and every authenticated user may ask (`system:basic-user`).
    pub async fn ask(&self, question: &AccessQuestion<'_>) -> Result<Access, Error> {
        Access::read(&review(&self.0, REVIEWS, &question.body()).await?)
    }

    /// Asks whether another user may take an action: `groups` are the user's. Needs the right to
    /// create `subjectaccessreviews`.
    pub async fn ask_about(
        &self,
        user: &str,
        groups: &[String],
        question: &AccessQuestion<'_>,
    ) -> Result<Access, Error> {
        let mut body = question.body();
        body["kind"] = "SubjectAccessReview".into();
        body["spec"]["user"] = user.into();
        body["spec"]["groups"] = json!(groups);
        Access::read(&review(&self.0, REVIEWS_OF_OTHERS, &body).await?)
    }
}

impl Access {
    /// Reads the answer to an access review.
    pub(crate) fn read(body: &[u8]) -> Result<Self, Error> {
        let Review { status } = serde_json::from_slice(body)
            .map_err(|error| Error::Unreadable(format!("invalid access review: {error}")))?;
        let reason = [status.reason, status.evaluation_error]
            .into_iter()
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join("; ");
        Ok(Self {
            allowed: status.allowed,
            reason,
        })
    }
}

/// Sends a review of any kind. Returns the body of the answer.
pub(crate) async fn review(
    connection: &Connection,
    path: &str,
    review: &Value,
) -> Result<Bytes, Error> {
    let body = Bytes::from(review.to_string());
    let request = request(Method::POST, path, Some("application/json"), body)?;
    let (_, body) = connection.call(request, REVIEW_TIMEOUT).await?;
    Ok(body)
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
        let reviews = fake.connection().access_reviews();
        for (allowed, reason) in [
            (true, "RBAC: allowed"),
            (false, "no; role \"x\" not found"),
            (false, ""),
        ] {
            let access = reviews.ask(&QUESTION).await.unwrap();
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
    async fn another_users_rights_are_asked_for_by_name() {
        let fake = Fake::script([json(201, r#"{"status":{"allowed":true}}"#)]);
        let reviews = fake.connection().access_reviews();
        let groups = ["system:serviceaccounts".to_owned()];
        let access = reviews.ask_about("system:serviceaccount:a:b", &groups, &QUESTION);
        assert!(access.await.unwrap().allowed);
        let seen = &fake.seen()[0];
        assert_eq!(seen.path, REVIEWS_OF_OTHERS);
        let sent: Value = serde_json::from_str(&seen.body).unwrap();
        assert_eq!(sent["kind"], "SubjectAccessReview");
        assert_eq!(sent["spec"]["user"], "system:serviceaccount:a:b");
        assert_eq!(sent["spec"]["groups"], json!(["system:serviceaccounts"]));
        assert_eq!(sent["spec"]["resourceAttributes"]["verb"], "patch");
    }

    #[tokio::test]
    async fn no_answer_is_no_permission() {
        let refused = Fake::new(|_| status(403, "Forbidden", "no reviews for you"));
        let error = refused.connection().access_reviews().ask(&QUESTION).await;
        assert_eq!(error.unwrap_err().code(), Some(403));
        let nonsense = Fake::new(|_| json(201, r#"{"kind":"SelfSubjectAccessReview"}"#));
        let error = nonsense.connection().access_reviews().ask(&QUESTION).await;
        assert!(matches!(error, Err(Error::Unreadable(_))));
    }
}
