//! Installs a CustomResourceDefinition that a plugin carries, and waits until its kind is served.
//!
//! It owns what must not happen on the way: no downgrade, no field taken from somebody else, no change at a second start. It must not know plugins: a manager's
//! name and a version are all that it is told.

use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::{Instant, sleep};
use vmhost_core::Gvk;

use crate::api::CallError;
use crate::connect::Connection;
use crate::discovery::Resource;
use crate::write::{StatusCause, Target, WriteError};

mod error;
mod version;

pub use error::CrdError;

/// The annotation that carries the version of the plugin which installed the definition.
pub const PLUGIN_VERSION: &str = "vmhost/plugin-version";

/// Tries of one install. Just after a definition was made, the server writes its status two or three times.
const TRIES: u32 = 8;
/// First and longest time between two looks at a definition.
const LOOKS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// How long refused names must stay refused: right after an update the conditions are still those of the definition before.
const NAMES_REFUSED: Duration = Duration::from_secs(2);

/// What an install has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Installed {
    /// There was none.
    Created,
    /// It was another one.
    Updated,
    /// Nothing: it is there as it should be.
    Unchanged,
}

/// The name of a definition, as it stands in the cluster: `databases.example.com`.
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
            "it is not of apiVersion apiextensions.k8s.io/v1 and kind CustomResourceDefinition",
        ));
    }
    if name.is_empty() {
        return Err(invalid("it has no metadata.name"));
    }
    if versions(definition).next().is_none() {
        return Err(invalid("it has no spec.versions"));
    }
    Ok(name)
}

impl Connection {
    /// Server-side apply of a CustomResourceDefinition by `manager`, without force, with `plugin_version` in the annotation [`PLUGIN_VERSION`].
    ///
    /// A second call with the same definition changes nothing, the resource version included. Labels, annotations and fields of others stay. Refused are: a
    /// definition that a newer `plugin_version` has installed (compared as semantic versions; what is none cannot be compared and passes), one that drops a
    /// version of `status.storedVersions`, and one that changes fields of another manager. Two hosts that install a definition *for the first time* in the same
    /// moment do not see each other: there the later one wins.
    pub async fn install_crd(
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
                        WriteError::Status {
                            code: 409 | 429, ..
                        },
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
        let present = self.crd(name).await?;
        if let Some(present) = &present {
            check(name, present, definition, plugin_version)?;
        }
        let before = present.as_ref().map(resource_version);
        let body = body(name, definition, plugin_version, before);
        let resource = resource();
        let applied = self
            .apply(&target(&resource, name), body.to_string(), manager, false)
            .await;
        match applied {
            Ok(written) => Ok(match before {
                None => Installed::Created,
                Some(before) if before == written.version.to_string() => Installed::Unchanged,
                Some(_) => Installed::Updated,
            }),
            Err(WriteError::Status {
                code: 409, causes, ..
            }) if causes.iter().any(is_conflict) => Err(CrdError::Conflict {
                name: name.to_owned(),
                fields: conflicts(&causes),
            }),
            Err(source) => Err(CrdError::Apply {
                name: name.to_owned(),
                source,
            }),
        }
    }

    /// Resolves when a definition's kind is served (its condition `Established`), by looking with a growing pause. What passes (no answer, 5xx) is waited out
    /// within `timeout`; names that another definition has, a definition that is gone or is being deleted, and missing rights are errors at once.
    pub async fn wait_established(&self, name: &str, timeout: Duration) -> Result<(), CrdError> {
        let start = Instant::now();
        let mut wait = LOOKS.0;
        let mut refused_since = None;
        loop {
            let looked = self.crd(name).await;
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

    async fn crd(&self, name: &str) -> Result<Option<Value>, CrdError> {
        let failed = |source: WriteError| CrdError::Read {
            name: name.to_owned(),
            source,
        };
        let path = resource().path(None, Some(name), None);
        match self.fetch(&path, self.write_timeout()).await {
            Ok(body) => serde_json::from_slice(&body)
                .map(Some)
                .map_err(|error| failed(WriteError::Answer(error.to_string()))),
            Err(CallError::Refused(refused)) if refused.code == 404 => Ok(None),
            Err(error) => Err(failed(error.into())),
        }
    }
}

/// May this definition take the place of the present one?
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

/// What is applied: of the metadata only what is the author's to say, so that a definition which somebody has read from a cluster can be carried too.
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
        // What was checked is what is replaced: a newer plugin that comes in between is seen.
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

fn target<'a>(resource: &'a Resource, name: &'a str) -> Target<'a> {
    Target {
        resource,
        namespace: None,
        name: Some(name),
        subresource: None,
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

/// `KindConflict: "Database" is already in use`.
fn said(condition: Option<&Value>) -> String {
    let Some(condition) = condition else {
        return "it has no conditions yet".to_owned();
    };
    let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    format!("{}: {}", text("reason"), text("message"))
}

fn is_conflict(cause: &StatusCause) -> bool {
    cause.reason == "FieldManagerConflict"
}

/// `.spec.names.shortNames (conflict with "kubectl")`, for each.
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
