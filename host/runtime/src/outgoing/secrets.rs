//! Values of Secrets for headers, kept for a short time. No value is in an error. This module must
//! not know which header gets a value.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::time::Instant;
use vmhost_cluster::{ObjectPath, Reader};
use vmhost_core::{Gvk, HttpError, SecretKey, chain_line};

use crate::wake::resources::Resources;

/// How long a Secret counts after it was read: a new token is used that much later at most, and
/// right after an answer 401 or 403.
const KEPT: Duration = Duration::from_secs(30);

type Data = Arc<BTreeMap<String, String>>;

/// Reads Secrets.
pub(super) struct Secrets {
    resources: Resources,
    /// The `data` of each Secret, by namespace and name, with the time at which it was read. There
    /// are no more than descriptions name.
    kept: Mutex<HashMap<(String, String), (Instant, Data)>>,
}

/// The part of a Secret that is read.
#[derive(Deserialize)]
struct Secret {
    #[serde(default)]
    data: Option<BTreeMap<String, String>>,
}

impl Secrets {
    pub(super) fn new(reader: Reader) -> Self {
        Self {
            resources: Resources::new(reader),
            kept: Mutex::default(),
        }
    }

    /// Forgets the values of one Secret, so that they are read again.
    pub(super) fn forget(&self, secret: &SecretKey) {
        let place = (secret.namespace.clone(), secret.name.clone());
        self.kept.lock().remove(&place);
    }

    /// Returns one value.
    pub(super) async fn read(&self, secret: &SecretKey) -> Result<Vec<u8>, HttpError> {
        let SecretKey {
            namespace,
            name,
            key,
        } = secret;
        let failed = |why: &str| {
            HttpError::NotSent(format!(
                "Secret {namespace}/{name} {why}, which a header of the request is made of"
            ))
        };
        let data = match self.kept(namespace, name) {
            Some(data) => data,
            None => {
                let found = self.get(namespace, name).await;
                let found = found.map_err(|error| failed(&format!("cannot be read ({error})")))?;
                let data = found.ok_or_else(|| failed("does not exist"))?;
                let place = (namespace.clone(), name.clone());
                self.kept
                    .lock()
                    .insert(place, (Instant::now(), data.clone()));
                data
            }
        };
        let value = data
            .get(key)
            .ok_or_else(|| failed(&format!("has no key {key}")))?;
        let decoded = BASE64_STANDARD.decode(value);
        decoded.map_err(|_| failed(&format!("has a key {key} that is not base64")))
    }

    fn kept(&self, namespace: &str, name: &str) -> Option<Data> {
        let kept = self.kept.lock();
        let (read, data) = kept.get(&(namespace.to_owned(), name.to_owned()))?;
        (read.elapsed() < KEPT).then(|| data.clone())
    }

    async fn get(&self, namespace: &str, name: &str) -> Result<Option<Data>, String> {
        let resource = self.resources.find(&Gvk::new("", "v1", "Secret")).await;
        let resource = resource.map_err(|error| chain_line(&error))?;
        let path = ObjectPath {
            resource: &resource,
            namespace: Some(namespace),
            name: Some(name),
            subresource: None,
        };
        let found = self.resources.reader().get(&path).await;
        let Some(object) = found.map_err(|error| chain_line(&error))? else {
            return Ok(None);
        };
        // The error of serde could quote the text.
        let secret: Secret =
            serde_json::from_str(&object.text).map_err(|_| "it is malformed".to_owned())?;
        Ok(Some(Arc::new(secret.data.unwrap_or_default())))
    }
}
