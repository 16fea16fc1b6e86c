//! One access that a plugin needs, and why. It must not know what needs it.

use vmhost_core::Gvk;

use crate::rights::access::Access;
use crate::rights::names::Name;

/// One needed access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The verb in RBAC's form.
    pub(crate) verb: &'static str,
    /// The kind.
    pub kind: Gvk,
    /// The subresource, such as `status` or `scale`. `None` for the object itself.
    pub(crate) subresource: Option<String>,
    /// The name of the only object. `None` for all objects.
    pub(crate) name: Option<String>,
    pub(crate) scope: Scope,
    /// The field of the description, or the flag, that needs it.
    pub(crate) why: String,
}

/// The namespaces of an access. Without meaning for a cluster-scoped kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All namespaces.
    All,
    /// These namespaces.
    Only(Vec<String>),
}

impl Need {
    /// The access for a kind of this name.
    pub(crate) fn access(&self, name: &Name) -> Access {
        Access {
            group: self.kind.group.clone(),
            resource: match &self.subresource {
                Some(subresource) => format!("{}/{subresource}", name.plural),
                None => name.plural.clone(),
            },
            name: self.name.clone(),
            verb: self.verb.to_owned(),
        }
    }

    /// Returns whether both are the same access, whatever needs it.
    pub(crate) fn same_access(&self, other: &Self) -> bool {
        let Self {
            verb,
            kind,
            subresource,
            name,
            scope,
            why: _,
        } = self;
        (verb, kind, subresource, name, scope)
            == (
                &other.verb,
                &other.kind,
                &other.subresource,
                &other.name,
                &other.scope,
            )
    }
}
