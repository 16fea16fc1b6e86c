//! Connections to clusters besides the host's own, and how such a connection changes while stores
//! and watches run on it.
//!
//! This module owns where such a connection leads, and which of two kubeconfigs are trusted: files
//! of this machine are, text that came out of a cluster is not (`kubeconfig::foreign`). It must not
//! know where the cluster was found.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use crate::connect::error::{ConnectError, ConnectOptions};
use crate::connect::{Connection, connect_to};
use crate::error::Error;
use crate::kubeconfig::{self, Configuration, Places, foreign};

/// The object whose uid tells clusters apart: each cluster has its own, for as long as it lives.
const KUBE_SYSTEM: &str = "/api/v1/namespaces/kube-system";

/// Timeout of reading that object.
const ID_TIMEOUT: Duration = Duration::from_secs(10);

/// Where another cluster is.
#[derive(Clone, PartialEq, Eq)]
pub enum Target {
    /// A context of kubeconfig files of this machine.
    Files(ConnectOptions),
    /// A kubeconfig that came out of a cluster.
    Text(ForeignText),
}

/// A kubeconfig that came out of a cluster.
#[derive(Clone, PartialEq, Eq)]
pub struct ForeignText {
    /// The text: YAML, JSON, or either of them in base64.
    pub text: Arc<str>,
    /// Where it came from, for messages.
    pub place: String,
    /// The guarded fields that the operator allows, of [`crate::GUARDED_FIELDS`].
    pub allowed: Arc<[String]>,
}

/// Formats where it came from, and no secret.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files(options) => options.fmt(f),
            Self::Text(foreign) => f.write_str(&foreign.place),
        }
    }
}

impl Target {
    fn configuration(&self) -> Result<Configuration, ConnectError> {
        match self {
            Self::Files(options) => kubeconfig::load(options, &Places::of_process()),
            Self::Text(from) => foreign::read(&from.text, &from.place, &from.allowed),
        }
    }

    /// Connects, as [`crate::connect`] does. The connection can be changed later.
    pub async fn connect(&self) -> Result<Connection, ConnectError> {
        connect_to(self.configuration()?, true).await
    }
}

impl Connection {
    /// Sends requests as this target says from now on. Stores and watches on this connection go on;
    /// if the server has another address, watches are taken up there where they are. The caller
    /// knows that it is the same cluster.
    pub async fn change(&self, target: &Target) -> Result<(), ConnectError> {
        self.replace(target.configuration()?).await
    }

    /// Returns what tells this cluster from others; `None` if these credentials may not read it.
    pub async fn cluster_id(&self) -> Result<Option<String>, Error> {
        #[derive(Deserialize)]
        struct Object {
            metadata: Metadata,
        }
        #[derive(Deserialize)]
        struct Metadata {
            uid: String,
        }
        let body = match self.fetch_small(KUBE_SYSTEM, ID_TIMEOUT).await {
            Ok(body) => body,
            Err(error) if matches!(error.code(), Some(403 | 404)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let object: Object =
            serde_json::from_slice(&body).map_err(|error| Error::Unreadable(error.to_string()))?;
        Ok(Some(object.metadata.uid).filter(|uid| !uid.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Fake, json, status};

    #[tokio::test]
    async fn a_cluster_is_known_by_its_kube_system() {
        let fake = Fake::new(|request| match request.uri().path() {
            KUBE_SYSTEM => json(200, r#"{"metadata":{"name":"kube-system","uid":"u-1"}}"#),
            _ => status(404, "NotFound", "no"),
        });
        let id = fake.connection().cluster_id().await.unwrap();
        assert_eq!(id.as_deref(), Some("u-1"));
        let closed = Fake::new(|_| status(403, "Forbidden", "no"));
        assert_eq!(closed.connection().cluster_id().await.unwrap(), None);
        let refused = Fake::new(|_| status(401, "Unauthorized", "no"));
        let error = refused.connection().cluster_id().await.unwrap_err();
        assert_eq!(error.code(), Some(401));
    }

    #[tokio::test]
    async fn an_endless_answer_is_not_read_to_its_end() {
        let long = format!("{{\"metadata\":{{\"uid\":\"{}\"}}}}", "x".repeat(2 << 20));
        let fake = Fake::new(move |_| json(200, &long));
        let error = fake.connection().cluster_id().await.unwrap_err();
        assert!(matches!(error, Error::TooLarge(_)), "{error}");
    }

    #[test]
    fn a_target_shows_no_secret() {
        let target = Target::Text(ForeignText {
            text: "token: s3cret".into(),
            place: "Cluster east".into(),
            allowed: Arc::default(),
        });
        assert_eq!(format!("{target:?}"), "Cluster east");
    }
}
