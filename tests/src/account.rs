//! Service accounts of a test's cluster: their tokens, and what the API server lets them do.
//!
//! Must not know what runs as an account.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::example::User;
use crate::wait::eventually;

/// The path of roles and bindings.
pub const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// A service account.
#[derive(Clone, Debug)]
pub struct Account {
    namespace: String,
    name: String,
}

impl Account {
    /// Names an account, which need not exist.
    pub fn of(namespace: &str, name: &str) -> Account {
        Account {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Creates an account, which has no rights.
    pub async fn create(user: &User, namespace: &str, name: &str) -> Result<Account> {
        let account = Account::of(namespace, name);
        let object = json!({ "metadata": { "name": name } });
        user.create(&account.collection(), &object).await?;
        Ok(account)
    }

    /// Returns the namespace of the account.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the name of the user that the account is for access control.
    pub fn user_name(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }

    /// Asks the API server for a token.
    pub async fn token(&self, user: &User) -> Result<String> {
        let path = format!("{}/{}/token", self.collection(), self.name);
        let answer = user.create(&path, &json!({ "spec": {} })).await?;
        let token = answer.pointer("/status/token").and_then(Value::as_str);
        let token = token.with_context(|| format!("{path}: the answer has no token"))?;
        Ok(token.to_owned())
    }

    /// Waits until the API server knows that the account has a right, or no longer has it: the
    /// `spec` of a SubjectAccessReview names the right.
    pub async fn until_allowed(&self, user: &User, right: &Value, allowed: bool) -> Result<()> {
        let mut review = json!({ "spec": right });
        review["spec"]["user"] = self.user_name().into();
        let what = format!("{} is allowed {right}: {allowed}", self.user_name());
        eventually(&what, async || {
            let answer = user.create(REVIEWS, &review).await?;
            let is_allowed = answer["status"]["allowed"] == true;
            Ok((is_allowed == allowed).then_some(()))
        })
        .await
    }

    fn collection(&self) -> String {
        format!("/api/v1/namespaces/{}/serviceaccounts", self.namespace)
    }
}
