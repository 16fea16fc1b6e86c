//! Leases (`coordination.k8s.io/v1`): read, created and replaced, each write guarded by the version
//! that was read.
//!
//! This module owns their wire form, which is client-go's, so that `kubectl get leases` and other
//! candidates can read them. It must not know which host leads nor read a clock; the election does.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use vmhost_core::Gvk;

use crate::api::request;
use crate::connect::Connection;
use crate::discovery::Resource;
use crate::error::Error;

const API_VERSION: &str = "coordination.k8s.io/v1";

/// The content of a Lease. Candidates only check whether it changes, because its times come from
/// its writer's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LeaseRecord {
    /// The leader's identity; empty if the lease was released.
    #[serde(deserialize_with = "or_default")]
    pub holder_identity: String,
    /// How long a candidate waits after the last observed change.
    #[serde(deserialize_with = "or_default")]
    pub lease_duration_seconds: u32,
    /// When the leader acquired the lease.
    #[serde(with = "micro_time")]
    pub acquire_time: Option<Timestamp>,
    /// When the leader last renewed the lease.
    #[serde(with = "micro_time")]
    pub renew_time: Option<Timestamp>,
    /// Number of changes of the holder.
    #[serde(deserialize_with = "or_default")]
    pub lease_transitions: u32,
}

/// A Lease as it was read or written; a replacement requires this version.
#[derive(Clone, Debug)]
pub struct Lease {
    /// The content.
    pub record: LeaseRecord,
    /// The metadata, which preserves other clients' labels and annotations.
    metadata: Value,
}

impl Lease {
    /// The Lease's uid.
    pub fn uid(&self) -> Option<&str> {
        self.metadata["uid"].as_str()
    }
}

/// Reads and writes Leases, and nothing else. Cheap to clone.
#[derive(Clone)]
pub struct Leases(Connection);

impl Connection {
    /// Returns the part that reads and writes Leases.
    pub fn leases(&self) -> Leases {
        Leases(self.clone())
    }
}

impl Leases {
    /// The connection's default namespace.
    pub fn default_namespace(&self) -> &str {
        self.0.default_namespace()
    }

    /// Reads a Lease; `None` if it does not exist. `limit` is the request's timeout.
    pub async fn get(
        &self,
        namespace: &str,
        name: &str,
        limit: Duration,
    ) -> Result<Option<Lease>, Error> {
        let path = resource().path(Some(namespace), Some(name), None);
        match self.0.fetch(&path, limit).await {
            Ok(body) => read(&body).map(Some),
            Err(error) if error.code() == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates a Lease. Fails with 409 `AlreadyExists` if another candidate was faster.
    pub async fn create(
        &self,
        namespace: &str,
        name: &str,
        record: &LeaseRecord,
        limit: Duration,
    ) -> Result<Lease, Error> {
        let path = resource().path(Some(namespace), None, None);
        let metadata = json!({ "namespace": namespace, "name": name });
        self.send(Method::POST, &path, &metadata, record, limit)
            .await
    }

    /// Replaces the content of a Lease, if it has not changed since it was read. Fails with 409
    /// `Conflict` if another candidate was faster.
    pub async fn replace(
        &self,
        lease: &Lease,
        record: &LeaseRecord,
        limit: Duration,
    ) -> Result<Lease, Error> {
        let part = |name: &str| lease.metadata[name].as_str().unwrap_or_default();
        let path = resource().path(Some(part("namespace")), Some(part("name")), None);
        self.send(Method::PUT, &path, &lease.metadata, record, limit)
            .await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        metadata: &Value,
        record: &LeaseRecord,
        limit: Duration,
    ) -> Result<Lease, Error> {
        let body = json!({ "apiVersion": API_VERSION, "kind": "Lease", "metadata": metadata, "spec": record });
        let body = Bytes::from(body.to_string());
        let request = request(method, path, Some("application/json"), body)?;
        let (_, body) = self.0.call(request, limit).await?;
        read(&body)
    }
}

fn resource() -> Resource {
    Resource {
        kind: Gvk::new("coordination.k8s.io", "v1", "Lease"),
        plural: "leases".into(),
        namespaced: true,
        subresources: Vec::new(),
    }
}

fn read(body: &[u8]) -> Result<Lease, Error> {
    #[derive(Deserialize)]
    struct Object {
        metadata: Value,
        #[serde(default)]
        spec: Option<LeaseRecord>,
    }
    let mut object: Object = serde_json::from_slice(body)
        .map_err(|error| Error::Unreadable(format!("invalid Lease: {error}")))?;
    if object.metadata["resourceVersion"].as_str().is_none() {
        return Err(Error::Unreadable("a Lease has no resourceVersion".into()));
    }
    if let Some(metadata) = object.metadata.as_object_mut() {
        // The server keeps them itself, and they are the longer half of the body.
        metadata.remove("managedFields");
    }
    Ok(Lease {
        record: object.spec.unwrap_or_default(),
        metadata: object.metadata,
    })
}

/// Reads null as an absent member.
fn or_default<'de, D: serde::Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Kubernetes' MicroTime: always six digits after the dot, always UTC.
mod micro_time {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        time: &Option<Timestamp>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => serializer.collect_str(&time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ")),
            None => serializer.serialize_none(),
        }
    }

    /// Reads an unparsable time as `None`, because no decision depends on these times.
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Timestamp>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        Ok(text.and_then(|text| text.parse().ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Fake, json, status};

    const LIMIT: Duration = Duration::from_secs(5);
    const LEASE: &str = r#"{"kind":"Lease","metadata":{"name":"vmhost","namespace":"n","uid":"u","resourceVersion":"7","labels":{"a":"b"},"managedFields":[{}]},
        "spec":{"holderIdentity":"h","leaseDurationSeconds":15,"acquireTime":"2026-01-02T03:04:05.000006Z","renewTime":"2026-01-02T03:04:07.5Z","leaseTransitions":null,"strategy":"x"}}"#;

    #[tokio::test]
    async fn a_lease_goes_out_as_client_go_writes_it() {
        let fake = Fake::script([
            status(404, "NotFound", "no"),
            json(201, LEASE),
            json(200, LEASE),
            status(409, "Conflict", "changed"),
        ]);
        let leases = fake.connection().leases();
        let none = leases.get("n", "vmhost", LIMIT).await.unwrap();
        assert!(none.is_none());
        let record = LeaseRecord {
            holder_identity: String::new(),
            lease_duration_seconds: 1,
            acquire_time: "2026-01-02T03:04:05Z".parse().ok(),
            renew_time: "2026-01-02T03:04:05.1234567Z".parse().ok(),
            lease_transitions: 3,
        };
        leases.create("n", "vmhost", &record, LIMIT).await.unwrap();
        let lease = leases.get("n", "vmhost", LIMIT).await.unwrap();
        let lease = lease.unwrap();
        assert_eq!(lease.record.holder_identity, "h");
        assert_eq!(lease.record.lease_transitions, 0, "null is as absent");
        assert_eq!(lease.uid(), Some("u"));
        let refused = leases.replace(&lease, &record, LIMIT).await;
        assert_eq!(refused.unwrap_err().code(), Some(409));

        let seen = fake.seen();
        let all = "/apis/coordination.k8s.io/v1/namespaces/n/leases";
        let sent: Vec<_> = seen
            .iter()
            .map(|s| (s.method.as_str(), s.path.as_str()))
            .collect();
        let one = format!("{all}/vmhost");
        assert_eq!(
            sent,
            [
                ("GET", &*one),
                ("POST", all),
                ("GET", &*one),
                ("PUT", &*one)
            ]
        );
        let body: Value = serde_json::from_str(&seen[3].body).unwrap();
        assert_eq!(
            body["spec"],
            json!({"holderIdentity": "", "leaseDurationSeconds": 1, "acquireTime": "2026-01-02T03:04:05.000000Z",
                "renewTime": "2026-01-02T03:04:05.123456Z", "leaseTransitions": 3})
        );
        assert_eq!(
            body["metadata"],
            json!({"name": "vmhost", "namespace": "n", "uid": "u", "resourceVersion": "7", "labels": {"a": "b"}}),
            "guarded by its version, and others' labels stay"
        );
    }

    #[test]
    fn odd_leases_are_read_as_far_as_they_go() {
        let empty = read(br#"{"metadata":{"resourceVersion":"1"}}"#).unwrap();
        assert_eq!(empty.record, LeaseRecord::default());
        let odd = read(br#"{"metadata":{"resourceVersion":"1"},"spec":{"holderIdentity":null,"renewTime":"yesterday"}}"#);
        assert_eq!(odd.unwrap().record, LeaseRecord::default());
        assert!(read(b"{}").is_err() && read(br#"{"metadata":{}}"#).is_err());
    }
}
