//! One access in the form of RBAC and access reviews, and the right to it in a namespace. Plain
//! data.

use std::fmt;

use vmhost_cluster::AccessQuestion;

/// One access in RBAC's form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Access {
    pub(crate) group: String,
    /// The plural, with the subresource.
    pub(crate) resource: String,
    /// The name of one object. `None` for all objects.
    pub(crate) name: Option<String>,
    pub(crate) verb: String,
}

/// An access in one namespace or in the whole cluster: the subject of one access review.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Right {
    pub(crate) access: Access,
    /// The namespace. `None` for all namespaces, or for a cluster-scoped kind.
    pub(crate) namespace: Option<String>,
    /// The user that has to have the right. `None` for the host itself.
    pub(crate) user: Option<User>,
}

/// A user as access control knows it, such as a service account.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) groups: Vec<String>,
}

/// The rights that a request needs, in the order in which the API server checks them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Required {
    /// All of these rights are needed. Empty if they are unknown.
    pub(crate) rights: Vec<Right>,
    /// The object that the request names. A right may be granted for this object alone.
    pub(crate) name: Option<String>,
}

impl Access {
    /// The resource as kubectl writes it: `apps.example.com/status`.
    pub(crate) fn qualified(&self) -> String {
        if self.group.is_empty() {
            return self.resource.clone();
        }
        match self.resource.split_once('/') {
            Some((plural, subresource)) => format!("{plural}.{}/{subresource}", self.group),
            None => format!("{}.{}", self.resource, self.group),
        }
    }
}

impl Right {
    /// The question of an access review. With `name`, it is only about the object of this name.
    pub(crate) fn question<'a>(&'a self, name: Option<&'a str>) -> AccessQuestion<'a> {
        let access = &self.access;
        let (resource, subresource) = match access.resource.split_once('/') {
            Some((resource, subresource)) => (resource, Some(subresource)),
            None => (access.resource.as_str(), None),
        };
        AccessQuestion {
            verb: &access.verb,
            group: &access.group,
            resource,
            subresource,
            namespace: self.namespace.as_deref(),
            name: access.name.as_deref().or(name),
        }
    }
}

/// `patch apps.example.com/status in namespace a`. Ends with ` as USER` if that is not the host.
impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.access.verb, self.access.qualified())?;
        if let Some(name) = &self.access.name {
            write!(f, " {name}")?;
        }
        if let Some(namespace) = &self.namespace {
            write!(f, " in namespace {namespace}")?;
        }
        match &self.user {
            Some(user) => write!(f, " as {}", user.name),
            None => Ok(()),
        }
    }
}

/// The rights that a new generation lacks: a sentence, and a table with the rules that would grant
/// them.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MissingRights(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_is_asked_for_and_shown() {
        let right = |resource: &str, group: &str, name: Option<&str>, namespace: Option<&str>| {
            let access = Access {
                group: group.into(),
                resource: resource.into(),
                name: name.map(Into::into),
                verb: "patch".into(),
            };
            Right {
                access,
                namespace: namespace.map(Into::into),
                user: None,
            }
        };
        let status = right("apps/status", "example.com", None, Some("a"));
        assert_eq!(
            status.to_string(),
            "patch apps.example.com/status in namespace a"
        );
        let question = status.question(Some("x"));
        assert_eq!(
            (question.resource, question.subresource, question.name),
            ("apps", Some("status"), Some("x"))
        );
        let one = right("leases", "", Some("vmhost"), None);
        assert_eq!(one.to_string(), "patch leases vmhost");
        assert_eq!(one.question(Some("x")).name, Some("vmhost"));
        let own = Right {
            user: Some(User {
                name: "system:serviceaccount:a:b".to_owned(),
                groups: Vec::new(),
            }),
            ..one
        };
        assert_eq!(
            own.to_string(),
            "patch leases vmhost as system:serviceaccount:a:b"
        );
    }
}
