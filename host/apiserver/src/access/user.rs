//! Users, as the server knows them.
//!
//! Owns the names of the groups that Kubernetes gives meaning to. Must not know credentials or
//! roles.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Members may do everything.
pub(crate) const MASTERS: &str = "system:masters";
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";
pub(crate) const ANONYMOUS: &str = "system:anonymous";
pub(crate) const NODES: &str = "system:nodes";
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// A user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct User {
    pub name: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Returns the user of a request without credentials.
    pub fn anonymous() -> User {
        User {
            name: ANONYMOUS.to_owned(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            ..User::default()
        }
    }

    /// Returns a user who showed credentials that name these groups.
    pub fn known(name: &str, mut groups: Vec<String>) -> User {
        if !groups.iter().any(|group| group == AUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        User {
            name: name.to_owned(),
            groups,
            ..User::default()
        }
    }

    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|of| of == group)
    }

    /// Returns the user as the `UserInfo` of Kubernetes' documents.
    pub fn info(&self) -> Value {
        let mut info = json!({ "username": self.name });
        if !self.uid.is_empty() {
            info["uid"] = json!(self.uid);
        }
        if !self.groups.is_empty() {
            info["groups"] = json!(self.groups);
        }
        if !self.extra.is_empty() {
            info["extra"] = json!(self.extra);
        }
        info
    }
}

/// Returns the name of a service account's user.
pub(crate) fn service_account(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT}{namespace}:{name}")
}

/// Returns the groups of the service accounts in a namespace.
pub(crate) fn service_account_groups(namespace: &str) -> Vec<String> {
    vec![
        "system:serviceaccounts".to_owned(),
        format!("system:serviceaccounts:{namespace}"),
    ]
}

/// Returns namespace and name, if this is the user of a service account.
pub(crate) fn as_service_account(name: &str) -> Option<(&str, &str)> {
    let (namespace, name) = name.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')?;
    let is_plain = |text: &str| !text.is_empty() && !text.contains(':');
    (is_plain(namespace) && is_plain(name)).then_some((namespace, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_accounts_are_recognised_by_their_users_names() {
        let name = service_account("default", "robot");
        assert_eq!(as_service_account(&name), Some(("default", "robot")));
        for other in [
            "alice",
            "system:serviceaccount:a",
            "system:serviceaccount:a:b:c",
        ] {
            assert_eq!(as_service_account(other), None, "{other}");
        }
    }

    #[test]
    fn who_shows_credentials_is_authenticated() {
        let user = User::known("alice", vec!["devs".to_owned()]);
        assert_eq!(user.groups, ["devs", AUTHENTICATED]);
        assert_eq!(User::known("bob", user.groups.clone()).groups, user.groups);
        assert!(!User::anonymous().is_in(AUTHENTICATED));
    }
}
