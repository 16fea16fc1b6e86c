//! Finds the resource that serves a kind. The result is cached, and forgotten when the API server
//! stops serving the path. This module must not know what is asked of the resource.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use vmhost_cluster::{Error, Reader, Resource, Status};
use vmhost_core::Gvk;

/// The resources of the kinds that writes and live reads have used.
pub struct Resources {
    reader: Reader,
    known: Mutex<HashMap<Gvk, Arc<Resource>>>,
}

impl Resources {
    /// An empty cache.
    pub fn new(reader: Reader) -> Self {
        Self {
            reader,
            known: Mutex::default(),
        }
    }

    /// The reader for requests to the API server.
    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Returns the resource of a kind.
    pub(crate) async fn find(&self, kind: &Gvk) -> Result<Arc<Resource>, Error> {
        if let Some(resource) = self.known.lock().get(kind) {
            return Ok(resource.clone());
        }
        match self.reader.resolve(kind).await {
            Ok(Some(resource)) => {
                let resource = Arc::new(resource);
                self.known.lock().insert(kind.clone(), resource.clone());
                Ok(resource)
            }
            Ok(None) => Err(Error::Refused(Status {
                code: 404,
                reason: "NotFound".into(),
                message: format!("the cluster does not serve {kind}"),
                ..Status::default()
            })),
            Err(error) => Err(error),
        }
    }

    /// Removes a kind from the cache, since its CRD may have changed.
    pub(crate) fn forget(&self, kind: &Gvk) {
        self.known.lock().remove(kind);
    }
}
