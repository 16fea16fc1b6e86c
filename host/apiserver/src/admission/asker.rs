//! What expressions learn about access: what the author of a request, or a service account, may do.
//!
//! Owns the way from the question of an expression to the roles of the cluster. Must not know
//! expressions, or what a role allows.

use vmhost_rules::{Authorizer, Check, Decision};

use super::review::Review;
use crate::access::ask::Ask;
use crate::access::credentials::Author;
use crate::access::rbac::decide;
use crate::access::user::{User, service_account, service_account_groups};
use crate::state::{Inner, State};

/// Where the roles are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Roles<'c> {
    /// In a cluster whose lock is held.
    Locked(&'c Inner),
    /// In a cluster whose lock is taken for each question.
    Free(&'c State),
}

/// Answers the questions of expressions about one request.
#[derive(Debug)]
pub(super) struct Asker<'c> {
    roles: Roles<'c>,
    /// The author of the request; `None`: the server itself, which may do everything.
    author: Option<&'c Author>,
    resource: Check,
}

impl<'c> Asker<'c> {
    pub fn of(roles: Roles<'c>, author: Option<&'c Author>, review: &Review) -> Asker<'c> {
        let resource = Check {
            group: review.resource.group.clone(),
            resource: review.resource.name.clone(),
            subresource: review.subresource.clone(),
            namespace: review.namespace.clone(),
            name: review.name.clone(),
            ..Check::default()
        };
        Asker {
            roles,
            author,
            resource,
        }
    }
}

impl Authorizer for Asker<'_> {
    fn decide(&self, check: &Check) -> Decision {
        let Some(author) = self.author else {
            return Decision {
                allowed: true,
                reason: String::new(),
            };
        };
        let author = match &check.account {
            Some((namespace, name)) => Author {
                user: User {
                    name: service_account(namespace, name),
                    groups: service_account_groups(namespace),
                    ..User::default()
                },
                access: author.access.clone(),
            },
            None => author.clone(),
        };
        let ask = ask(check);
        let decision = match self.roles {
            Roles::Locked(inner) => decide(inner, &author, &ask),
            Roles::Free(state) => state.read(|inner| decide(inner, &author, &ask)),
        };
        Decision {
            allowed: decision.allowed,
            reason: decision.reason,
        }
    }

    fn request_resource(&self) -> Check {
        self.resource.clone()
    }
}

fn ask(check: &Check) -> Ask {
    let Check {
        account: _,
        path,
        group,
        resource,
        subresource,
        namespace,
        name,
        verb,
    } = check.clone();
    Ask {
        verb,
        group,
        resource,
        subresource,
        namespace,
        name,
        path,
    }
}
