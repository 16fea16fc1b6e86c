//! What the tasks of all `Plugin` objects share: the host's settings and parts, the policies, and
//! which object has which plugin's name. It must not know what a task does.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use vmhost_cluster::{Recorder, Subscription, Writer};
use vmhost_core::Metadata;
use vmhost_runtime::given::Given;

use crate::images::Images;
use crate::listed::listed;
use crate::object::Plugin;
use crate::parsed::Parsed;
use crate::places::Places;
use crate::policy::{Labels, Policy};

/// The operator's settings.
#[derive(Clone)]
pub struct Options {
    /// The only namespace whose `Plugin` objects are read. `None` for all.
    pub namespace: Option<String>,
    /// The name of this host among several.
    pub host: String,
    /// The folder below which `spec.path` names files.
    pub folder: Option<PathBuf>,
    /// Whether a component needs a policy that names its signers.
    pub require_signatures: bool,
    /// The namespaces whose Plugins may read images with the host's own login: its own one, and
    /// those that the operator names. `*` for all.
    pub login_namespaces: Vec<String>,
    /// Reads images. `None` if this host has no client of registries.
    pub images: Option<Arc<dyn Images>>,
}

/// What all tasks share.
pub(crate) struct Shared {
    /// Runs plugins.
    pub(crate) given: Given,
    pub(crate) options: Options,
    pub(crate) writer: Writer,
    pub(crate) recorder: Recorder,
    pub(crate) policies: Subscription,
    pub(crate) namespaces: Subscription,
    pub(crate) revisions: Subscription,
    /// The policies, as they were read last.
    pub(crate) parsed: Mutex<Parsed<Policy>>,
    /// Where components are read.
    pub(crate) readers: Places,
    /// Where components are compiled.
    pub(crate) compilers: Places,
    /// Which object has each plugin's name.
    pub(crate) owners: Mutex<HashMap<String, String>>,
    /// Which object was reported to have each plugin's name.
    pub(crate) reported: Mutex<BTreeMap<String, String>>,
}

impl Shared {
    /// The policies about the plugins of a namespace, by name, without those that only keep names.
    /// An error while they are not known: then nothing may start, since a policy might refuse it.
    pub(crate) async fn policies_of(&self, namespace: &str) -> Result<Vec<Policy>, String> {
        for (what, subscription) in [
            ("PluginPolicy objects", &self.policies),
            ("Namespaces", &self.namespaces),
        ] {
            let known = listed(subscription).await;
            known.map_err(|state| format!("{what} are not known yet: {state}"))?;
        }
        let labels = self.labels(namespace)?;
        let mut policies = Vec::new();
        let mut broken = Vec::new();
        let mut parsed = self.parsed.lock();
        for (name, policy) in parsed.look(self.policies.store().snapshots(), Policy::parse) {
            let about = policy.as_ref().map_err(Clone::clone);
            match about.and_then(|policy| Ok((policy.is_about(&labels)?, policy))) {
                Ok((true, policy)) if !policy.only_keeps_names() => {
                    policies.push(Policy::clone(policy));
                }
                Ok(_) => {}
                Err(why) => broken.push(format!("PluginPolicy {name}: {why}")),
            }
        }
        drop(parsed);
        policies.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        // Of several always the same one.
        broken.into_iter().min().map_or(Ok(policies), Err)
    }

    /// Returns why a plugin's name is not for the plugins of a namespace, if a policy keeps it for
    /// other namespaces.
    pub(crate) fn reserved(&self, plugin: &str, namespace: &str) -> Option<String> {
        // Of a namespace that is not known nothing can be said, and nothing runs there anew.
        let labels = self.labels(namespace).ok()?;
        let mut parsed = self.parsed.lock();
        let policies = parsed.look(self.policies.store().snapshots(), Policy::parse);
        let policies = policies.filter_map(|(_, policy)| policy.as_ref().ok());
        let keepers = policies.filter(|policy| {
            policy.reserves(plugin) && policy.is_about(&labels).is_ok_and(|is_about| !is_about)
        });
        // Of several always the same one: another message each time would be written each time.
        let keeper = keepers.map(|policy| &policy.metadata.name).min()?;
        Some(format!(
            "the PluginPolicy {keeper} keeps the name {plugin:?} for other namespaces than \
             {namespace}"
        ))
    }

    /// The labels of a namespace. An error while they are not known: without them, the policies
    /// about the namespace would not be found.
    fn labels(&self, namespace: &str) -> Result<Labels, String> {
        let unknown = || format!("the labels of namespace {namespace} are not known yet");
        let found = self.namespaces.store().get(namespace);
        let object = found.ok_or_else(unknown)?;
        let metadata = Metadata::parse(&object.text).map_err(|_| unknown())?;
        let labels = metadata.labels.iter();
        Ok(labels
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect())
    }

    /// Takes a plugin's name for an object. Returns the object that has it already, if another one:
    /// in this process, or else as it was reported.
    pub(crate) fn claim(&self, plugin: &str, key: &str) -> Result<(), String> {
        let mut owners = self.owners.lock();
        match owners.get(plugin) {
            Some(owner) if owner == key => return Ok(()),
            Some(other) => return Err(other.clone()),
            None => {}
        }
        let reported = self.reported.lock();
        if let Some(other) = reported.get(plugin).filter(|other| *other != key)
            && !self.is_squatter(plugin, other)
        {
            return Err(other.clone());
        }
        owners.retain(|_, owner| owner != key);
        owners.insert(plugin.to_owned(), key.to_owned());
        Ok(())
    }

    /// Returns whether a name is kept from the namespace of the object that was reported to have
    /// it.
    fn is_squatter(&self, plugin: &str, key: &str) -> bool {
        key.split_once('/')
            .is_some_and(|(namespace, _)| self.reserved(plugin, namespace).is_some())
    }

    /// Notes which object was reported to have each name. Returns whether one is free again, for
    /// which another object may wait.
    pub(crate) fn note_names<'a>(&self, plugins: impl Iterator<Item = &'a Plugin>) -> bool {
        let named = owners(plugins);
        let mut reported = self.reported.lock();
        let mut before = reported.iter();
        let is_free = before.any(|(name, key)| named.get(name) != Some(key));
        *reported = named;
        is_free
    }

    /// The plugin's name that an object has taken in this process.
    pub(crate) fn taken_by(&self, key: &str) -> Option<String> {
        let owners = self.owners.lock();
        let mut taken = owners.iter().filter(|(_, owner)| *owner == key);
        taken.next().map(|(name, _)| name.clone())
    }

    /// Frees the name that an object had.
    pub(crate) fn free(&self, key: &str) {
        self.owners.lock().retain(|_, owner| owner != key);
    }
}

/// Which object has each name, as it was reported: of two the older one, so that all hosts decide
/// alike, also after a restart. A name is nothing but a name: a status that lies gains no right.
fn owners<'a>(plugins: impl Iterator<Item = &'a Plugin>) -> BTreeMap<String, String> {
    let mut oldest: Vec<&Plugin> = plugins.collect();
    oldest.sort_by(|a, b| {
        let (a, b) = (&a.metadata, &b.metadata);
        (&a.creation_timestamp, &a.uid).cmp(&(&b.creation_timestamp, &b.uid))
    });
    let mut owners = BTreeMap::new();
    for plugin in oldest {
        if let Some(name) = &plugin.status.plugin {
            owners.entry(name.clone()).or_insert_with(|| plugin.key());
        }
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_objects_with_one_name_the_older_one_has_it() {
        let plugin = |name: &str, created: &str, plugin: Option<&str>| {
            let object = serde_json::json!({
                "metadata": { "namespace": "a", "name": name, "creationTimestamp": created },
                "spec": {},
                "status": { "plugin": plugin },
            });
            Plugin::parse(&object.to_string()).unwrap()
        };
        let all = [
            plugin("young", "2026-02-01T00:00:00Z", Some("vm")),
            plugin("old", "2026-01-01T00:00:00Z", Some("vm")),
            plugin("other", "2026-03-01T00:00:00Z", Some("dns")),
            plugin("new", "2026-01-01T00:00:00Z", None),
        ];
        let found = owners(all.iter());
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|(a, b)| (a.as_str(), b.as_str()))
            .collect();
        assert_eq!(found, [("dns", "a/other"), ("vm", "a/old")]);
    }
}
