//! The path of a request for one object.

use crate::discovery::Resource;
use crate::error::Error;

/// The object, or the subresource, that a request is for.
#[derive(Clone, Copy, Debug)]
pub struct ObjectPath<'a> {
    /// The kind's resource.
    pub resource: &'a Resource,
    /// The namespace; `None` for cluster-scoped kinds.
    pub namespace: Option<&'a str>,
    /// The name; `None` for a create whose name the server generates.
    pub name: Option<&'a str>,
    /// `status`, `scale`, ...; `None` for the object itself.
    pub subresource: Option<&'a str>,
}

impl<'a> ObjectPath<'a> {
    /// Returns the path of a cluster-scoped object itself.
    pub(crate) fn of_cluster(resource: &'a Resource, name: &'a str) -> ObjectPath<'a> {
        ObjectPath {
            resource,
            namespace: None,
            name: Some(name),
            subresource: None,
        }
    }

    /// Returns the URL path. Rejects names that are not valid there: a proxy that normalises paths
    /// would resolve a name made of dots.
    pub(crate) fn encoded(&self) -> Result<String, Error> {
        for part in [self.namespace, self.name, self.subresource]
            .into_iter()
            .flatten()
        {
            if part.is_empty() || part == "." || part == ".." || part.contains(['/', '%']) {
                return Err(Error::NotSent(
                    format!("{part:?} is not a valid name").into(),
                ));
            }
        }
        Ok(self
            .resource
            .path(self.namespace, self.name, self.subresource))
    }
}
