//! What expressions ask about access: `authorizer.group('').resource('pods').check('get')`.
//!
//! Owns the form of such a question, and of its answer. Follows k8s.io/apiserver
//! `pkg/cel/library/authz.go`. Must not know expressions, or how it is decided.

use std::fmt::Debug;

/// The types of the library, in the order in which a question is put together.
pub(crate) const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";
pub(crate) const PATH: &str = "kubernetes.authorization.PathCheck";
pub(crate) const GROUP: &str = "kubernetes.authorization.GroupCheck";
pub(crate) const RESOURCE: &str = "kubernetes.authorization.ResourceCheck";
pub(crate) const DECISION: &str = "kubernetes.authorization.Decision";

/// Answers the questions of expressions about one request.
pub trait Authorizer: Debug {
    /// Returns whether something is allowed.
    fn decide(&self, check: &Check) -> Decision;

    /// Returns what the request is about, without a verb: `authorizer.requestResource`.
    fn request_resource(&self) -> Check;
}

/// The question whether something is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Check {
    /// The namespace and the name of the service account that would do it; `None`: the author of
    /// the request.
    pub account: Option<(String, String)>,
    /// The path of a request that is not for objects.
    pub path: Option<String>,
    /// The group of the resource.
    pub group: String,
    /// The resource.
    pub resource: String,
    /// Empty for the object itself.
    pub subresource: String,
    /// Empty for all namespaces.
    pub namespace: String,
    /// Empty for all objects.
    pub name: String,
    /// What would be done.
    pub verb: String,
}

/// The answer to a [`Check`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether it is allowed.
    pub allowed: bool,
    /// Why, for people; empty if there is nothing to say.
    pub reason: String,
}

/// A question that an expression puts together.
#[derive(Clone, Debug)]
pub(crate) struct Asking<'a> {
    /// The type of the value: how far the question is.
    pub kind: &'static str,
    pub check: Check,
    pub by: &'a dyn Authorizer,
}

impl<'a> Asking<'a> {
    /// Returns how many bytes its texts have.
    pub fn size(&self) -> usize {
        let Check {
            account,
            path,
            group,
            resource,
            subresource,
            namespace,
            name,
            verb,
        } = &self.check;
        let account = account
            .iter()
            .flat_map(|(namespace, name)| [namespace, name]);
        let parts = [group, resource, subresource, namespace, name, verb];
        let texts = account.chain(path).chain(parts);
        texts.map(String::len).sum()
    }

    /// Returns the value of `authorizer`.
    pub fn of(by: &'a dyn Authorizer) -> Asking<'a> {
        let kind = AUTHORIZER;
        let check = Check::default();
        Asking { kind, check, by }
    }

    /// Returns the value of `authorizer.requestResource`.
    pub fn about_request(by: &'a dyn Authorizer) -> Asking<'a> {
        let kind = RESOURCE;
        let check = by.request_resource();
        Asking { kind, check, by }
    }
}
