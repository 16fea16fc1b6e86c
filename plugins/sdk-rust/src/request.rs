//! Reads a request.

use serde::de::DeserializeOwned;

use crate::bindings::vmhost::plugin::types::{ObjectKey, Request};
use crate::description::Kind;
use crate::error::{Error, Result};

impl Request {
    /// Returns the object as a type of the policy's own, with only the fields that it needs; `None`
    /// if the object is gone.
    pub fn object<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        read(self.object.as_deref())
    }

    /// Returns the object as of this key's last turn that succeeded, for a controller with
    /// [`previous`](crate::Controller::previous).
    pub fn previous<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        read(self.previous.as_deref())
    }

    /// Returns a request for native tests.
    pub fn of(controller: &str, key: ObjectKey, object: Option<&str>) -> Self {
        Self {
            controller: controller.into(),
            key,
            object: object.map(Into::into),
            previous: None,
            deleting: false,
            attempt: 0,
            last: None,
        }
    }
}

fn read<T: DeserializeOwned>(text: Option<&str>) -> Result<Option<T>> {
    text.map(serde_json::from_str)
        .transpose()
        .map_err(|error| Error::new(format!("the object cannot be read: {error}")))
}

impl ObjectKey {
    /// Names an object; the namespace is `None` for a cluster-scoped kind.
    pub fn of(kind: &Kind, namespace: Option<&str>, name: &str) -> Self {
        Self {
            kind: kind.gvk(),
            namespace: namespace.map(Into::into),
            name: name.into(),
        }
    }
}
