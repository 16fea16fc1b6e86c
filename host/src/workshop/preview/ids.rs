//! Names objects so that the version of their kind makes no difference. This module must not know
//! what an object contains.

use std::fmt;

use vmhost_apiserver::Changed;
use vmhost_core::{Gvk, ObjectKey, ObjectName};

/// Names one object in the cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Id {
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) name: ObjectName,
}

impl Id {
    pub(super) fn of(key: &ObjectKey) -> Self {
        Self {
            group: key.kind.group.clone(),
            kind: key.kind.kind.clone(),
            name: key.name.clone(),
        }
    }

    /// Returns whether this is an object of the kind, in any version.
    pub(super) fn is_of(&self, kind: &Gvk) -> bool {
        self.group == kind.group && self.kind == kind.kind
    }
}

impl From<Changed> for Id {
    fn from(changed: Changed) -> Self {
        Self {
            name: ObjectName::new(Some(&changed.namespace), &changed.name),
            group: changed.group,
            kind: changed.kind,
        }
    }
}

/// Formats as `Deployment default/x`.
impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}
