//! Turns a case's files into the arguments of a call: which controller, which object, and
//! everything that the host would have decided before the call.
//!
//! A case that cannot occur in a host is refused here. This module must not know how a call is
//! made, or what is expected.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use vmhost_core::{Change, ControllerDescription, Description, Gvk, ObjectName, Refusal, Snapshot};
use vmhost_engine::{Settings, Told};

use super::cluster::Cluster;
use super::controller::controller;
use super::http::Requests;
use super::read::{Case, Given, READS};
use super::reads::Reads;
use super::request::{ChangeFile, KeyFile, RefusalFile};
use super::told::told;
use vmhost_runtime::turn::finalizer::{Phase, phase};

/// The deletion timestamp of a deleted object whose file has none.
const DELETED: &str = "2000-01-01T00:00:00Z";

/// The arguments of one call.
pub(crate) struct Prepared {
    pub(crate) controller: String,
    pub(crate) call: Call,
    /// The objects that the call may read.
    pub(crate) cluster: Arc<Cluster>,
    /// The answers to its reads, if the case contains them.
    pub(crate) reads: Option<Arc<Reads>>,
    /// The answers to its HTTP requests.
    pub(crate) requests: Arc<Requests>,
    pub(crate) settings: Settings,
    /// The clock readings and random numbers of a recorded turn.
    pub(crate) told: Option<Told>,
}

pub(crate) enum Call {
    /// `reconcile`.
    Turn(Turn),
    /// `map-changes`.
    Map(Vec<Change>),
}

pub(crate) struct Turn {
    /// The primary kind.
    pub(crate) kind: Gvk,
    pub(crate) name: ObjectName,
    /// The object. `None` if it is deleted.
    pub(crate) object: Option<Snapshot>,
    /// The object as of the last successful turn.
    pub(crate) previous: Option<Snapshot>,
    /// Whether the object is being deleted and waits for the plugin's clean-up.
    pub(crate) deleting: bool,
    /// Failures since the last success.
    pub(crate) attempt: u32,
    /// The refused effect of the last turn.
    pub(crate) last: Option<Refusal>,
}

/// Prepares a case for this plugin.
pub(crate) fn prepare(case: &Case, description: &Description) -> Result<Prepared> {
    let of = Preparing {
        case,
        controller: controller(case, description)?,
        request: case.folder.join("request.json").display().to_string(),
    };
    let cluster = match case.request.is_recorded() {
        true => Cluster::recorded(of.controller),
        false => Cluster::new(of.controller),
    };
    for given in &case.cache {
        cluster.add(given)?;
    }
    let call = match &case.request.map_changes {
        Some(changes) => Call::Map(of.changes(&cluster, changes)?),
        None => Call::Turn(of.turn(&cluster)?),
    };
    let settings = case.request.settings.clone();
    let file = case.folder.join(READS).display().to_string();
    let reads = case.reads.as_ref().map(|reads| Reads::new(&file, reads));
    Ok(Prepared {
        controller: of.controller.name.clone(),
        call,
        cluster: Arc::new(cluster),
        reads: reads.transpose()?.map(Arc::new),
        requests: Arc::new(Requests::new(
            &description.name,
            &description.http,
            &case.request.settings,
            &case.http,
        )),
        settings: settings.into_iter().collect(),
        told: told(&case.request).with_context(|| of.request.clone())?,
    })
}

/// A case and its controller.
struct Preparing<'a> {
    case: &'a Case,
    controller: &'a ControllerDescription,
    /// The file that errors name.
    request: String,
}

impl Preparing<'_> {
    fn turn(&self, cluster: &Cluster) -> Result<Turn> {
        let (case, kind, request) = (self.case, self.controller.kind(), &self.case.request);
        let name = self.name()?;
        let (object, deleting) = match &case.object {
            Some(given) => self.object(cluster, given)?,
            None if request.deleting == Some(true) => {
                bail!(
                    "{}: deleting is true, but there is no object.json",
                    self.request
                )
            }
            None => (None, false),
        };
        Ok(Turn {
            object,
            previous: self.previous(cluster, &name)?,
            kind,
            name,
            deleting,
            attempt: request.attempt,
            last: request.last.as_ref().map(refusal),
        })
    }

    fn name(&self) -> Result<ObjectName> {
        let given = self.case.object.as_ref().map(|given| &given.key);
        if let Some(key) = given.filter(|key| key.kind != self.controller.kind()) {
            let (object, of) = (&key.kind, self.controller.kind());
            bail!(
                "{}: controller: its kind is {of}, but object.json is a {object}",
                self.request
            );
        }
        let key = self.case.request.key.as_ref().map(key_name);
        match (given.map(|key| key.name.clone()), key) {
            (Some(object), Some(key)) if object != key => {
                bail!(
                    "{}: key is {key}, but the key of object.json is {object}",
                    self.request
                )
            }
            (Some(name), _) | (None, Some(name)) => Ok(name),
            (None, None) if self.controller.timer.is_some() => {
                Ok(ObjectName::new(None, &self.controller.name))
            }
            (None, None) => bail!(
                "{}: key is missing: without object.json, it names the deleted object",
                self.request
            ),
        }
    }

    /// Returns the object as its store has it, and whether it waits for its clean-up. The host
    /// decides this before it calls the plugin.
    fn object(&self, cluster: &Cluster, given: &Given) -> Result<(Option<Snapshot>, bool)> {
        let finalizer = self.controller.finalizer.as_deref();
        let wanted = self.case.request.deleting;
        if wanted == Some(true) && finalizer.is_none() {
            bail!(
                "{}: deleting: the controller has no finalizer",
                self.request
            );
        }
        let mut given = given.clone();
        let written = given.value.clone();
        hand_out(&mut given.value, finalizer, wanted == Some(true));
        if given.value != written {
            given.text = None;
        }
        cluster.add(&given)?;
        let Some(object) = cluster.primary(&given.key.name) else {
            bail!(
                "{}: the description's labelSelector or fieldSelector leaves it out",
                given.place
            );
        };
        match phase(finalizer, &given.key.kind, Some(&object)) {
            Phase::Call { deleting } if wanted.is_none_or(|wanted| wanted == deleting) => {
                Ok((Some(object), deleting))
            }
            Phase::Call { .. } => bail!(
                "{}: deleting is false, but {} is being deleted",
                self.request,
                given.place
            ),
            Phase::Add(_) | Phase::Leave => bail!(
                "{}: the object is being deleted without the controller's finalizer {:?}, so the plugin is not called",
                given.place,
                finalizer.unwrap_or_default()
            ),
        }
    }

    fn previous(&self, cluster: &Cluster, name: &ObjectName) -> Result<Option<Snapshot>> {
        let Some(value) = &self.case.request.previous else {
            return Ok(None);
        };
        let place = format!("{}: previous", self.request);
        if !self.controller.previous {
            bail!("{place}: the description does not set previous for this controller");
        }
        let given = Given {
            text: self.case.previous.clone(),
            ..Given::new(place, value.clone())?
        };
        if given.key.name != *name {
            bail!(
                "{}: the object is {}, not {name}",
                given.place,
                given.key.name
            );
        }
        cluster.as_primary(&given).map(Some)
    }

    fn changes(&self, cluster: &Cluster, changes: &[ChangeFile]) -> Result<Vec<Change>> {
        let request = &self.case.request;
        let others = [
            ("object.json", self.case.object.is_some()),
            ("key", request.key.is_some()),
            ("previous", request.previous.is_some()),
            ("deleting", request.deleting.is_some()),
            ("attempt", request.attempt > 0),
            ("last", request.last.is_some()),
            ("now", request.now.is_some()),
            ("random", request.random.is_some()),
        ];
        if let Some((field, _)) = others.iter().find(|(_, there)| *there) {
            bail!(
                "{}: mapChanges and {field} exclude each other",
                self.request
            );
        }
        let side = |at: usize, side: &str, value: &Option<Value>| {
            let place = || format!("{}: mapChanges[{at}].{side}", self.request);
            let value = value.clone();
            value
                .map(|value| cluster.as_changed(&Given::new(place(), value)?))
                .transpose()
        };
        let change = |(at, change): (usize, &ChangeFile)| {
            Ok(Change {
                old: side(at, "old", &change.old)?,
                new: side(at, "new", &change.new)?,
            })
        };
        changes.iter().enumerate().map(change).collect()
    }
}

/// Completes an object as the host hands it out: with the finalizer, unless the case shows an
/// object that is being deleted without it.
fn hand_out(object: &mut Value, finalizer: Option<&str>, deleting: bool) {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    let (Some(metadata), Some(finalizer)) = (metadata, finalizer) else {
        return;
    };
    let is_deleted = metadata.contains_key("deletionTimestamp");
    if deleting {
        metadata
            .entry("deletionTimestamp")
            .or_insert(json!(DELETED));
    }
    if is_deleted && !deleting {
        return;
    }
    let finalizers = metadata.entry("finalizers").or_insert(json!([]));
    if let Value::Array(finalizers) = finalizers
        && !finalizers.iter().any(|of| of == finalizer)
    {
        finalizers.push(json!(finalizer));
    }
}

fn key_name(key: &KeyFile) -> ObjectName {
    ObjectName::new(key.namespace.as_deref(), &key.name)
}

fn refusal(file: &RefusalFile) -> Refusal {
    Refusal {
        effect: file.effect,
        code: file.code,
        reason: file.reason.clone(),
        message: file.message.clone(),
    }
}

#[cfg(test)]
mod tests;
