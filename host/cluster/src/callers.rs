//! Who a caller of this host is, and what the caller may do: one `TokenReview`, and one
//! `SubjectAccessReview` about a path.
//!
//! This module owns the wire form of both questions. It must not know what is served at the path,
//! nor cache an answer. No error contains a token.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::access::{Access, REVIEWS_OF_OTHERS, review};
use crate::connect::Connection;
use crate::error::Error;

const TOKENS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

/// A user as the API server knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Caller {
    /// The name: `system:serviceaccount:monitoring:prometheus`.
    #[serde(rename = "username")]
    pub name: String,
    /// The uid; often empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// What else the authenticator knows.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
struct TokenReview {
    status: TokenStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenStatus {
    authenticated: bool,
    user: Caller,
}

/// Asks about callers of this host, and can do nothing else. Cheap to clone.
#[derive(Clone)]
pub struct CallerReviews(Connection);

impl Connection {
    /// Returns the part that asks about callers.
    pub fn caller_reviews(&self) -> CallerReviews {
        CallerReviews(self.clone())
    }
}

impl CallerReviews {
    /// Asks whose token this is. Returns `None` if the API server does not accept it. Needs the
    /// right to create `tokenreviews`.
    pub async fn who(&self, token: &str) -> Result<Option<Caller>, Error> {
        let question = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": { "token": token },
        });
        let body = review(&self.0, TOKENS, &question).await?;
        // The server's answer repeats the token, and the parser's error could quote it.
        let TokenReview { status } = serde_json::from_slice(&body)
            .map_err(|_| Error::Unreadable("invalid TokenReview".to_owned()))?;
        let is_known = status.authenticated && !status.user.name.is_empty();
        Ok(is_known.then_some(status.user))
    }

    /// Asks whether the caller may use a path that is no object: `get` of `/metrics`. Needs the
    /// right to create `subjectaccessreviews`.
    pub async fn may(&self, caller: &Caller, verb: &str, path: &str) -> Result<Access, Error> {
        let Caller {
            name,
            uid,
            groups,
            extra,
        } = caller;
        let question = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": name,
                "uid": uid,
                "groups": groups,
                "extra": extra,
                "nonResourceAttributes": { "verb": verb, "path": path },
            },
        });
        Access::read(&review(&self.0, REVIEWS_OF_OTHERS, &question).await?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::fake::{Fake, json, status};

    #[tokio::test]
    async fn a_token_is_of_a_user_or_of_nobody() {
        let fake = Fake::script([
            json(
                201,
                r#"{"status":{"authenticated":true,"user":{"username":"u","uid":"1","groups":["g"],"extra":{"k":["v"]}}}}"#,
            ),
            json(
                201,
                r#"{"status":{"user":{},"error":"invalid bearer token"}}"#,
            ),
            json(201, r#"{"status":{"authenticated":true,"user":{}}}"#),
            status(403, "Forbidden", "no reviews for you"),
        ]);
        let reviews = fake.connection().caller_reviews();
        let caller = reviews.who("secret").await.unwrap().unwrap();
        assert_eq!((caller.name.as_str(), caller.groups.len()), ("u", 1));
        assert_eq!(reviews.who("other").await.unwrap(), None);
        assert_eq!(reviews.who("nameless").await.unwrap(), None);
        assert_eq!(reviews.who("x").await.unwrap_err().code(), Some(403));
        let seen = &fake.seen()[0];
        assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", TOKENS));
        let sent: Value = serde_json::from_str(&seen.body).unwrap();
        assert_eq!(sent["spec"], serde_json::json!({ "token": "secret" }));
    }

    #[tokio::test]
    async fn a_caller_is_asked_about_with_all_that_is_known() {
        let fake = Fake::script([
            json(201, r#"{"status":{"allowed":true,"reason":"RBAC"}}"#),
            json(
                201,
                r#"{"status":{"allowed":false,"evaluationError":"no role"}}"#,
            ),
            json(201, "{}"),
        ]);
        let reviews = fake.connection().caller_reviews();
        let caller = Caller {
            name: "u".to_owned(),
            groups: vec!["g".to_owned()],
            ..Caller::default()
        };
        let allowed = reviews.may(&caller, "get", "/metrics").await.unwrap();
        assert!(allowed.allowed && allowed.reason == "RBAC");
        let denied = reviews.may(&caller, "get", "/metrics").await.unwrap();
        assert!(!denied.allowed && denied.reason == "no role");
        let nonsense = reviews.may(&caller, "get", "/metrics").await;
        assert!(matches!(nonsense, Err(Error::Unreadable(_))));
        let sent: Value = serde_json::from_str(&fake.seen()[0].body).unwrap();
        assert_eq!(sent["spec"]["user"], "u");
        assert_eq!(sent["spec"]["groups"][0], "g");
        assert_eq!(
            sent["spec"]["nonResourceAttributes"],
            serde_json::json!({ "verb": "get", "path": "/metrics" })
        );
    }
}
