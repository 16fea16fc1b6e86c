//! Tells whether an installation works, from what the API server shows: its Deployment and its
//! Lease. This module only reads, and must not ask a host.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};
use vmhost_cluster::{Error, ObjectPath, Reader};
use vmhost_core::Gvk;

/// The pause between two looks.
const PERIOD: Duration = Duration::from_secs(1);

/// What must work.
pub(super) struct Wanted<'a> {
    pub(super) namespace: &'a str,
    /// The name of the Deployment and of the Lease.
    pub(super) name: &'a str,
    /// Whether a leader is elected.
    pub(super) elects: bool,
}

#[derive(Deserialize)]
struct Deployment {
    metadata: DeploymentMetadata,
    spec: DeploymentSpec,
    #[serde(default)]
    status: DeploymentStatus,
}

#[derive(Deserialize)]
struct DeploymentMetadata {
    #[serde(default)]
    generation: i64,
}

#[derive(Deserialize)]
struct DeploymentSpec {
    #[serde(default)]
    replicas: i32,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DeploymentStatus {
    observed_generation: i64,
    available_replicas: i32,
    updated_replicas: i32,
}

#[derive(Deserialize)]
struct Lease {
    #[serde(default)]
    spec: LeaseSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LeaseSpec {
    holder_identity: Option<String>,
    lease_duration_seconds: Option<i64>,
    renew_time: Option<String>,
}

/// Waits until the installation works, and says how. After the limit the error says what is
/// missing.
pub(super) async fn until_works(
    reader: &Reader,
    wanted: &Wanted<'_>,
    limit: Duration,
) -> Result<String> {
    let start = Instant::now();
    loop {
        let missing = match look(reader, wanted).await {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(missing)) => missing,
            Err(error) if may_pass(&error) => format!("{error:#}"),
            Err(error) => return Err(error),
        };
        if start.elapsed() >= limit {
            bail!("{missing}, after {limit:?} (--timeout)");
        }
        sleep(PERIOD).await;
    }
}

/// Returns whether the API server may answer later: it was not reached, or is busy. The network of
/// a new pod may open only after the pod has started.
fn may_pass(error: &anyhow::Error) -> bool {
    match error.downcast_ref::<Error>() {
        Some(Error::NotSent(_) | Error::Network(_) | Error::Timeout(_)) => true,
        Some(error) => error.code().is_some_and(|code| code == 429 || code >= 500),
        None => false,
    }
}

/// Looks once. The inner error says what is missing.
async fn look(reader: &Reader, wanted: &Wanted<'_>) -> Result<Result<String, String>> {
    let Wanted {
        namespace, name, ..
    } = wanted;
    let kind = Gvk::new("apps", "v1", "Deployment");
    let deployment: Option<Deployment> = get(reader, &kind, wanted).await?;
    let Some(deployment) = deployment else {
        return Ok(Err(format!("there is no Deployment {namespace}/{name}")));
    };
    let available = match available(&deployment) {
        Ok(available) => available,
        Err(missing) => {
            return Ok(Err(format!("the Deployment {namespace}/{name} {missing}")));
        }
    };
    if !wanted.elects {
        return Ok(Ok(format!("{namespace}/{name} works: {available}")));
    }
    let kind = Gvk::new("coordination.k8s.io", "v1", "Lease");
    let lease: Option<Lease> = get(reader, &kind, wanted).await?;
    let Some(lease) = lease else {
        return Ok(Err(format!(
            "there is no Lease {namespace}/{name}: no host has stood for election"
        )));
    };
    Ok(match leader(&lease.spec, Timestamp::now()) {
        Some(leader) => Ok(format!(
            "{namespace}/{name} works: {available}, {leader} leads"
        )),
        None => Err(format!("no host holds the Lease {namespace}/{name}")),
    })
}

async fn get<T: DeserializeOwned>(
    reader: &Reader,
    kind: &Gvk,
    wanted: &Wanted<'_>,
) -> Result<Option<T>> {
    let about = || format!("cannot read {kind} {}/{}", wanted.namespace, wanted.name);
    let resource = reader.resolve(kind).await.with_context(about)?;
    let resource = resource.with_context(about)?;
    let path = ObjectPath {
        resource: &resource,
        namespace: Some(wanted.namespace),
        name: Some(wanted.name),
        subresource: None,
    };
    let Some(object) = reader.get(&path).await.with_context(about)? else {
        return Ok(None);
    };
    let read = serde_json::from_str(&object.text).with_context(about)?;
    Ok(Some(read))
}

/// Says how many replicas are available, or else what is missing.
fn available(deployment: &Deployment) -> Result<String, String> {
    let (wanted, status) = (deployment.spec.replicas, &deployment.status);
    if wanted < 1 {
        return Err("asks for no replica".to_owned());
    }
    if status.observed_generation < deployment.metadata.generation {
        return Err("has a change that its controller has not seen yet".to_owned());
    }
    let ready = status.available_replicas.min(status.updated_replicas);
    if ready < wanted {
        return Err(format!(
            "has {ready} of {wanted} replicas that are up to date and available"
        ));
    }
    Ok(format!("{ready} of {wanted} replicas are available"))
}

/// Returns the leader's identity. A Lease that was not renewed for twice its duration has no
/// leader: the clocks of two machines differ by less.
fn leader(lease: &LeaseSpec, now: Timestamp) -> Option<&str> {
    let holder = lease.holder_identity.as_deref()?;
    let lasts = SignedDuration::from_secs(lease.lease_duration_seconds?);
    let renewed: Timestamp = lease.renew_time.as_deref()?.parse().ok()?;
    let age = now.duration_since(renewed);
    (!holder.is_empty() && age < lasts.saturating_mul(2)).then_some(holder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployment_works_when_all_its_new_replicas_do() {
        let told = |generation: i64, replicas: i32, updated: i32| {
            let text = format!(
                r#"{{"metadata":{{"generation":2}},"spec":{{"replicas":{replicas}}},
                "status":{{"observedGeneration":{generation},"updatedReplicas":{updated},"availableReplicas":2}}}}"#
            );
            available(&serde_json::from_str(&text).unwrap())
        };
        assert_eq!(told(2, 2, 2).unwrap(), "2 of 2 replicas are available");
        assert!(told(1, 2, 2).unwrap_err().contains("not seen"));
        assert!(told(2, 3, 2).unwrap_err().contains("2 of 3"));
        assert!(told(2, 2, 1).unwrap_err().contains("1 of 2"));
        assert!(told(2, 0, 2).unwrap_err().contains("no replica"));
    }

    #[test]
    fn only_an_api_server_that_may_answer_later_is_asked_again() {
        let passes = |error: Error| may_pass(&anyhow::Error::new(error).context("a Deployment"));
        assert!(passes(Error::NotSent("connection refused".into())));
        assert!(passes(Error::Network("connection reset".into())));
        assert!(passes(Error::Timeout(PERIOD)));
        assert!(!passes(Error::Unreadable("no JSON".into())));
        assert!(!may_pass(&anyhow::anyhow!("there is no such kind")));
    }

    #[test]
    fn a_lease_that_nobody_renews_has_no_leader() {
        let lease = |holder: &str| -> LeaseSpec {
            let text = format!(
                r#"{{"holderIdentity":"{holder}","leaseDurationSeconds":15,"renewTime":"2026-11-23T10:00:00.000000Z"}}"#
            );
            serde_json::from_str(&text).unwrap()
        };
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let soon = at("2026-11-23T10:00:10Z");
        assert_eq!(leader(&lease("a"), soon), Some("a"));
        assert_eq!(leader(&lease(""), soon), None);
        assert_eq!(leader(&lease("a"), at("2026-11-23T10:00:31Z")), None);
        assert_eq!(leader(&LeaseSpec::default(), soon), None);
    }
}
