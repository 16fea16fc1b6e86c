//! Which resource serves a kind: asked once, forgotten when the API server does not know the path any more.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vmhost_cluster::{ClusterError, Connection, Resource, WriteError};
use vmhost_core::Gvk;

/// The kinds that writes and live reads have met.
pub struct Resources {
    connection: Connection,
    known: Mutex<HashMap<Gvk, Arc<Resource>>>,
}

impl Resources {
    /// None is known yet.
    pub fn new(connection: Connection) -> Self {
        Self {
            connection,
            known: Mutex::default(),
        }
    }

    /// The connection that they were asked for on.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The resource of a kind.
    pub async fn find(&self, kind: &Gvk) -> Result<Arc<Resource>, WriteError> {
        if let Some(resource) = self.lock().get(kind) {
            return Ok(resource.clone());
        }
        match self.connection.resolve(kind).await {
            Ok(Some(resource)) => {
                let resource = Arc::new(resource);
                self.lock().insert(kind.clone(), resource.clone());
                Ok(resource)
            }
            Ok(None) => Err(WriteError::Status {
                code: 404,
                reason: "NotFound".into(),
                message: format!("the cluster does not serve {kind}"),
                causes: Vec::new(),
                retry_after: None,
            }),
            Err(error) => Err(refused(error)),
        }
    }

    /// Ask again next time: a CRD may have changed.
    pub fn forget(&self, kind: &Gvk) {
        self.lock().remove(kind);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Gvk, Arc<Resource>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question that failed, as the write or read fails for which it was asked.
pub fn refused(error: ClusterError) -> WriteError {
    match error {
        ClusterError::Refused {
            code,
            reason,
            message,
            retry_after,
        } => WriteError::Status {
            code,
            reason,
            message,
            causes: Vec::new(),
            retry_after,
        },
        error => WriteError::NotSent(Box::new(error)),
    }
}
