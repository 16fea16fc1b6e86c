//! Leases (`coordination.k8s.io/v1`): read, created, replaced, each guarded by the version that was read.
//!
//! It owns their wire form, which is client-go's, so that `kubectl get leases` and other candidates read it. It must not know who leads nor look at a clock:
//! the election is elsewhere.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use vmhost_core::Gvk;

use crate::api::{CallError, request};
use crate::connect::Connection;
use crate::discovery::Resource;
use crate::write::WriteError;

const API_VERSION: &str = "coordination.k8s.io/v1";

/// What a Lease says about who leads. Candidates look only whether it changes: its times are those of its writer's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LeaseRecord {
    /// Who leads; empty: nobody, it was given back.
    #[serde(deserialize_with = "or_default")]
    pub holder_identity: String,
    /// How long a candidate waits after it has seen the last change.
    #[serde(deserialize_with = "or_default")]
    pub lease_duration_seconds: u32,
    /// Since when it leads.
    #[serde(with = "micro_time")]
    pub acquire_time: Option<Timestamp>,
    /// When it renewed last.
    #[serde(with = "micro_time")]
    pub renew_time: Option<Timestamp>,
    /// How often the holder changed.
    #[serde(deserialize_with = "or_default")]
    pub lease_transitions: u32,
}

/// A Lease as it was read or written: replacing it asks for this version.
#[derive(Clone, Debug)]
pub struct Lease {
    /// What it says.
    pub record: LeaseRecord,
    /// Kept for labels and annotations that others put on it.
    metadata: Value,
}

impl Connection {
    /// Reads a Lease; none: there is none. `limit` is this request's time-out.
    pub async fn get_lease(
        &self,
        namespace: &str,
        name: &str,
        limit: Duration,
    ) -> Result<Option<Lease>, WriteError> {
        let path = resource().path(Some(namespace), Some(name), None);
        match self.fetch(&path, limit).await {
            Ok(body) => read(&body).map(Some),
            Err(CallError::Refused(refused)) if refused.code == 404 => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a Lease. 409 `AlreadyExists`: somebody was faster.
    pub async fn create_lease(
        &self,
        namespace: &str,
        name: &str,
        record: &LeaseRecord,
        limit: Duration,
    ) -> Result<Lease, WriteError> {
        let path = resource().path(Some(namespace), None, None);
        let metadata = json!({ "namespace": namespace, "name": name });
        self.send_lease(Method::POST, &path, &metadata, record, limit)
            .await
    }

    /// Replaces what a Lease says, if it is still the one that was read. 409 `Conflict`: somebody was faster.
    pub async fn replace_lease(
        &self,
        lease: &Lease,
        record: &LeaseRecord,
        limit: Duration,
    ) -> Result<Lease, WriteError> {
        let part = |name: &str| lease.metadata[name].as_str().unwrap_or_default();
        let path = resource().path(Some(part("namespace")), Some(part("name")), None);
        self.send_lease(Method::PUT, &path, &lease.metadata, record, limit)
            .await
    }

    async fn send_lease(
        &self,
        method: Method,
        path: &str,
        metadata: &Value,
        record: &LeaseRecord,
        limit: Duration,
    ) -> Result<Lease, WriteError> {
        let body = json!({ "apiVersion": API_VERSION, "kind": "Lease", "metadata": metadata, "spec": record });
        let body = Bytes::from(body.to_string());
        let request = request(method, path, Some("application/json"), body)?;
        let (_, body) = self.call(request, limit).await?;
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

fn read(body: &[u8]) -> Result<Lease, WriteError> {
    #[derive(Deserialize)]
    struct Object {
        metadata: Value,
        #[serde(default)]
        spec: Option<LeaseRecord>,
    }
    let mut object: Object = serde_json::from_slice(body)
        .map_err(|error| WriteError::Answer(format!("a Lease is not valid: {error}")))?;
    if object.metadata["resourceVersion"].as_str().is_none() {
        return Err(WriteError::Answer("a Lease has no resourceVersion".into()));
    }
    if let Some(metadata) = object.metadata.as_object_mut() {
        // The server keeps them by itself, and they are the longer half of the body.
        metadata.remove("managedFields");
    }
    Ok(Lease {
        record: object.spec.unwrap_or_default(),
        metadata: object.metadata,
    })
}

/// A member that is null is as one that is not there.
fn or_default<'de, D: serde::Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Kubernetes' MicroTime: always six digits behind the dot, always UTC.
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

    /// What cannot be read is none: nobody decides by these times.
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
        let connection = fake.connection();
        let none = connection.get_lease("n", "vmhost", LIMIT).await.unwrap();
        assert!(none.is_none());
        let record = LeaseRecord {
            holder_identity: String::new(),
            lease_duration_seconds: 1,
            acquire_time: "2026-01-02T03:04:05Z".parse().ok(),
            renew_time: "2026-01-02T03:04:05.1234567Z".parse().ok(),
            lease_transitions: 3,
        };
        connection
            .create_lease("n", "vmhost", &record, LIMIT)
            .await
            .unwrap();
        let lease = connection.get_lease("n", "vmhost", LIMIT).await.unwrap();
        let lease = lease.unwrap();
        assert_eq!(lease.record.holder_identity, "h");
        assert_eq!(lease.record.lease_transitions, 0, "null is as absent");
        let refused = connection.replace_lease(&lease, &record, LIMIT).await;
        assert!(matches!(refused, Err(WriteError::Status { code: 409, .. })));

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
