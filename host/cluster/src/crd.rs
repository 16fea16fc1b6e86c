//! Installs CustomResourceDefinitions that a plugin carries, and waits until their kinds are
//! served.
//!
//! This module owns the safety of an install: no downgrade, no field taken from another manager, no
//! change at a second start. It must not know plugins; it receives only the name of a field manager
//! and a version.

use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::{Instant, sleep};
use vmhost_core::Gvk;

use crate::connect::Connection;
use crate::discovery::Resource;
use crate::error::Error;
use crate::object_path::ObjectPath;
use crate::status::{Status, StatusCause};

mod error;
mod version;

pub use error::CrdError;

/// The annotation with the version of the plugin that installed the definition.
pub const PLUGIN_VERSION: &str = "vmhost/plugin-version";

/// Maximum number of attempts of one install. Just after a definition is created, the server
/// updates its status two or three times.
const TRIES: u32 = 8;
/// First and maximum delay between two reads of a definition.
const LOOKS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// How long names must stay refused before the wait fails: right after an update the conditions
/// still describe the previous definition.
const NAMES_REFUSED: Duration = Duration::from_secs(2);

/// The result of an install.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Installed {
    /// The definition did not exist.
    Created,
    /// The definition changed.
    Updated,
    /// The definition was already as wanted.
    Unchanged,
}

/// Returns the name of a definition in the cluster, such as `databases.example.com`.
pub fn crd_name(definition: &Value) -> Result<&str, CrdError> {
    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
    let invalid = |detail: &str| CrdError::Invalid {
        name: name.to_owned(),
        detail: detail.to_owned(),
    };
    if definition["kind"] != "CustomResourceDefinition"
        || definition["apiVersion"] != "apiextensions.k8s.io/v1"
    {
        return Err(invalid(
            "apiVersion and kind must be apiextensions.k8s.io/v1 and CustomResourceDefinition",
        ));
    }
    if name.is_empty() {
        return Err(invalid("metadata.name is missing"));
    }
    if versions(definition).next().is_none() {
        return Err(invalid("spec.versions is missing"));
    }
    Ok(name)
}

/// Installs CustomResourceDefinitions, and writes nothing else. Cheap to clone.
#[derive(Clone)]
pub struct Definitions(Connection);

impl Connection {
    /// Returns the part that installs CustomResourceDefinitions.
    pub fn definitions(&self) -> Definitions {
        Definitions(self.clone())
    }
}

impl Definitions {
    /// Applies a CustomResourceDefinition server-side by `manager`, without force, with
    /// `plugin_version` in the annotation [`PLUGIN_VERSION`].
    ///
    /// A second call with the same definition changes nothing, not even the resource version.
    /// Labels, annotations and fields of other managers stay. Rejected are: a definition that a
    /// newer `plugin_version` installed (compared as semantic versions; anything else cannot be
    /// compared and passes), a definition that drops a version in `status.storedVersions`, and one
    /// that changes fields of another manager. Two hosts that install a definition *for the first
    /// time* at the same moment do not see each other: the later one wins.
    pub async fn install(
        &self,
        definition: &Value,
        manager: &str,
        plugin_version: &str,
    ) -> Result<Installed, CrdError> {
        let name = crd_name(definition)?;
        let mut wait = LOOKS.0;
        for _ in 1..TRIES {
            match self
                .install_once(name, definition, manager, plugin_version)
                .await
            {
                Err(CrdError::Apply {
                    source:
                        Error::Refused(Status {
                            code: 409 | 429, ..
                        }),
                    ..
                }) => {}
                done => return done,
            }
            sleep(wait).await;
            wait = (wait * 2).min(LOOKS.1);
        }
        self.install_once(name, definition, manager, plugin_version)
            .await
    }

    async fn install_once(
        &self,
        name: &str,
        definition: &Value,
        manager: &str,
        plugin_version: &str,
    ) -> Result<Installed, CrdError> {
        let present = self.read(name).await?;
        if let Some(present) = &present {
            check(name, present, definition, plugin_version)?;
        }
        let before = present.as_ref().map(resource_version);
        let body = body(name, definition, plugin_version, before);
        let resource = resource();
        let writer = self.0.writer();
        let applied = writer
            .apply(
                &ObjectPath::of_cluster(&resource, name),
                body.to_string(),
                manager,
                false,
            )
            .await;
        match applied {
            Ok(written) => Ok(match before {
                None => Installed::Created,
                Some(before) if before == written.version.to_string() => Installed::Unchanged,
                Some(_) => Installed::Updated,
            }),
            Err(Error::Refused(Status {
                code: 409, causes, ..
            })) if causes.iter().any(is_conflict) => Err(CrdError::Conflict {
                name: name.to_owned(),
                fields: conflicts(&causes),
            }),
            Err(source) => Err(CrdError::Apply {
                name: name.to_owned(),
                source,
            }),
        }
    }

    /// Waits until a definition's kind is served (its condition `Established`), polling with a
    /// growing delay. Temporary failures (no answer, 5xx) are retried within `timeout`; names that
    /// another definition holds, a definition that is gone or is being deleted, and missing
    /// permissions fail at once.
    pub async fn wait_established(&self, name: &str, timeout: Duration) -> Result<(), CrdError> {
        let start = Instant::now();
        let mut wait = LOOKS.0;
        let mut refused_since = None;
        loop {
            let looked = self.read(name).await;
            let detail = match looked {
                Ok(None) => return Err(CrdError::Gone(name.to_owned())),
                Ok(Some(definition)) if is_deleting(&definition) => {
                    return Err(CrdError::Terminating(name.to_owned()));
                }
                Ok(Some(definition)) => {
                    if condition(&definition, "Established")
                        .is_some_and(|found| found["status"] == "True")
                    {
                        return Ok(());
                    }
                    let refused = condition(&definition, "NamesAccepted")
                        .filter(|found| found["status"] == "False");
                    refused_since = refused.map(|_| refused_since.unwrap_or_else(Instant::now));
                    let detail = said(refused.or_else(|| condition(&definition, "Established")));
                    if refused_since.is_some_and(|since| since.elapsed() >= NAMES_REFUSED) {
                        return Err(CrdError::NamesRefused {
                            name: name.to_owned(),
                            detail,
                        });
                    }
                    detail
                }
                Err(error) if error.may_pass() => error.to_string(),
                Err(error) => return Err(error),
            };
            if start.elapsed() >= timeout {
                return Err(CrdError::NotEstablished {
                    name: name.to_owned(),
                    after: timeout,
                    detail,
                });
            }
            sleep(wait.min(timeout.saturating_sub(start.elapsed()))).await;
            wait = (wait * 2).min(LOOKS.1);
        }
    }

    async fn read(&self, name: &str) -> Result<Option<Value>, CrdError> {
        let failed = |source: Error| CrdError::Read {
            name: name.to_owned(),
            source,
        };
        let path = resource().path(None, Some(name), None);
        match self.0.fetch(&path, self.0.write_timeout()).await {
            Ok(body) => serde_json::from_slice(&body)
                .map(Some)
                .map_err(|error| failed(Error::Unreadable(error.to_string()))),
            Err(error) if error.code() == Some(404) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }
}

/// Checks that this definition may replace the present one.
fn check(
    name: &str,
    present: &Value,
    wanted: &Value,
    plugin_version: &str,
) -> Result<(), CrdError> {
    if is_deleting(present) {
        return Err(CrdError::Terminating(name.to_owned()));
    }
    let installed = present["metadata"]["annotations"][PLUGIN_VERSION].as_str();
    if let Some(installed) = installed
        && version::compare(installed, plugin_version) == Some(std::cmp::Ordering::Greater)
    {
        return Err(CrdError::Newer {
            name: name.to_owned(),
            installed: installed.to_owned(),
            wanted: plugin_version.to_owned(),
        });
    }
    let dropped: Vec<&str> = present["status"]["storedVersions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|stored| versions(wanted).all(|version| version != *stored))
        .collect();
    if dropped.is_empty() {
        return Ok(());
    }
    Err(CrdError::DropsStored {
        name: name.to_owned(),
        versions: dropped.join(", "),
    })
}

/// Builds the applied object. Of the metadata it keeps only what the author controls, so that a
/// plugin can also carry a definition that was read from a cluster.
fn body(name: &str, definition: &Value, plugin_version: &str, version: Option<&str>) -> Value {
    let mut metadata = Map::new();
    metadata.insert("name".into(), name.into());
    if let Some(labels) = definition["metadata"].get("labels") {
        metadata.insert("labels".into(), labels.clone());
    }
    let mut annotations = definition["metadata"]["annotations"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    annotations.insert(PLUGIN_VERSION.into(), plugin_version.into());
    metadata.insert("annotations".into(), annotations.into());
    if let Some(version) = version {
        // The write applies only to the version that was checked, so a newer plugin that writes in
        // between is detected.
        metadata.insert("resourceVersion".into(), version.into());
    }
    serde_json::json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": definition["spec"],
    })
}

fn resource() -> Resource {
    Resource {
        kind: Gvk::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
        plural: "customresourcedefinitions".into(),
        namespaced: false,
        subresources: Vec::new(),
    }
}

fn versions(definition: &Value) -> impl Iterator<Item = &str> {
    definition["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|version| version["name"].as_str())
}

fn resource_version(definition: &Value) -> &str {
    definition["metadata"]["resourceVersion"]
        .as_str()
        .unwrap_or_default()
}

fn is_deleting(definition: &Value) -> bool {
    definition["metadata"]["deletionTimestamp"].is_string()
}

fn condition<'a>(definition: &'a Value, kind: &str) -> Option<&'a Value> {
    definition["status"]["conditions"]
        .as_array()?
        .iter()
        .find(|condition| condition["type"] == kind)
}

/// Formats a condition as `KindConflict: "Database" is already in use`.
fn said(condition: Option<&Value>) -> String {
    let Some(condition) = condition else {
        return "no conditions yet".to_owned();
    };
    let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    format!("{}: {}", text("reason"), text("message"))
}

fn is_conflict(cause: &StatusCause) -> bool {
    cause.reason == "FieldManagerConflict"
}

/// Lists the conflicts, each as `.spec.names.shortNames (conflict with "kubectl")`.
fn conflicts(causes: &[StatusCause]) -> String {
    causes
        .iter()
        .filter(|cause| is_conflict(cause))
        .map(|cause| format!("{} ({})", cause.field, cause.message))
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests;
