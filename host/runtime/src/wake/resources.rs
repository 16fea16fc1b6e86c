//! Which resource serves a kind: asked once, forgotten when the API server does not know the path any more.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use vmhost_cluster::{Error, Reader, Resource, Status};
use vmhost_core::Gvk;

/// The kinds that writes and live reads have met.
pub struct Resources {
    reader: Reader,
    known: Mutex<HashMap<Gvk, Arc<Resource>>>,
}

impl Resources {
    /// None is known yet.
    pub fn new(reader: Reader) -> Self {
        Self {
            reader,
            known: Mutex::default(),
        }
    }

    /// What they were asked for with.
    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// The resource of a kind.
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

    /// Ask again next time: a CRD may have changed.
    pub(crate) fn forget(&self, kind: &Gvk) {
        self.known.lock().remove(kind);
    }
}
