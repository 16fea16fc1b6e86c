//! The cluster as it was when the preview began: the objects that the plugin watches, which are
//! listed once, and other objects, which are read when they are first needed.
//!
//! It sends only reads. It must not know what a plugin does.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::runtime::Handle;
use vmhost_cluster::{Error, ObjectPath, Reader, Resource, WatchSpec, Whole};
use vmhost_core::{Description, Gvk, Metadata, ObjectKey, ObjectName, Snapshot};

use super::lists::{Listed, Selection, lists};

/// The kind of CustomResourceDefinitions.
pub(super) const DEFINITION: &str = "CustomResourceDefinition";

/// The cluster before any write.
pub(super) struct Base {
    reader: Reader,
    /// The runtime that sends requests. Guests run on another runtime.
    io: Handle,
    /// The watched namespaces. Empty for all.
    namespaces: Vec<String>,
    kinds: BTreeMap<Gvk, Listed>,
    asked: Mutex<Asked>,
    /// The objects that name an owner, by the owner's uid.
    dependents: OnceLock<HashMap<String, Vec<ObjectKey>>>,
}

/// What was read after the first lists.
#[derive(Default)]
struct Asked {
    objects: HashMap<ObjectKey, Option<Whole>>,
    resources: HashMap<Gvk, Option<Arc<Resource>>>,
}

impl Base {
    /// Lists what these descriptions watch, in these namespaces (empty for all). Later reads are
    /// sent on the current runtime too.
    pub(super) async fn fill(
        reader: Reader,
        descriptions: &[&Description],
        namespaces: &[String],
    ) -> Result<Self> {
        Ok(Self {
            kinds: lists(&reader, descriptions, namespaces).await?,
            reader,
            io: Handle::current(),
            namespaces: namespaces.to_vec(),
            asked: Mutex::default(),
            dependents: OnceLock::new(),
        })
    }

    /// The watched namespaces. Empty for all.
    pub(super) fn namespaces(&self) -> &[String] {
        &self.namespaces
    }

    /// The kinds that the plugin watches and the cluster does not serve.
    pub(super) fn unserved(&self) -> impl Iterator<Item = &Gvk> {
        let unserved = self.kinds.iter();
        unserved
            .filter(|(_, listed)| listed.resource.is_none())
            .map(|(kind, _)| kind)
    }

    /// Returns the objects that a watch shows, and whether they have all their fields.
    pub(super) fn shown(&self, spec: &WatchSpec) -> (Vec<Snapshot>, bool) {
        let Some(listed) = self.kinds.get(&spec.kind) else {
            return (Vec::new(), false);
        };
        let is_it =
            |of: &&Selection| of.labels == spec.label_selector && of.fields == spec.field_selector;
        let selection = listed.selections.iter().find(is_it);
        let names = selection.map_or(&[][..], |selection| selection.names.as_slice());
        let objects = names.iter().filter_map(|name| listed.objects.get(name));
        let objects = objects.map(|whole| whole.object.clone());
        (objects.collect(), listed.whole)
    }

    /// Returns an object with all its fields; `None` if it does not exist.
    pub(super) async fn find(&self, key: &ObjectKey) -> Result<Option<Whole>> {
        if let Some(listed) = self.kinds.get(&key.kind) {
            match listed.objects.get(&key.name) {
                Some(found) if listed.whole => return Ok(Some(found.clone())),
                None if self.is_complete(listed, key.name.namespace()) => return Ok(None),
                _ => {}
            }
        }
        if let Some(known) = self.asked.lock().objects.get(key) {
            return Ok(known.clone());
        }
        let Some(resource) = self.resource(&key.kind).await? else {
            return Ok(None);
        };
        let (reader, name) = (self.reader.clone(), key.name.clone());
        let read = async move {
            let path = ObjectPath {
                resource: &resource,
                namespace: name.namespace(),
                name: Some(name.name()),
                subresource: None,
            };
            reader.get_whole(&path).await
        };
        let found = self.send(read).await;
        let found = found.with_context(|| format!("cannot read {key}"))?;
        let mut asked = self.asked.lock();
        asked.objects.insert(key.clone(), found.clone());
        Ok(found)
    }

    /// Returns all objects of a kind, in one namespace or in all of them.
    pub(super) async fn list(&self, kind: &Gvk, namespace: Option<&str>) -> Result<Vec<Snapshot>> {
        if let Some(listed) = self.kinds.get(kind)
            && listed.whole
            && self.is_complete(listed, namespace)
        {
            let objects = listed.objects.values().map(|whole| &whole.object);
            let inside = |of: &&Snapshot| namespace.is_none() || of.name.namespace() == namespace;
            return Ok(objects.filter(inside).cloned().collect());
        }
        let Some(resource) = self.resource(kind).await? else {
            return Ok(Vec::new());
        };
        let reader = self.reader.clone();
        let spec = WatchSpec {
            namespace: namespace.map(str::to_owned),
            ..WatchSpec::of(kind.clone())
        };
        let read = async move { reader.list_whole(&resource, &spec).await };
        let (found, _) = self
            .send(read)
            .await
            .with_context(|| format!("cannot list {kind}"))?;
        Ok(found.into_iter().map(|whole| whole.object).collect())
    }

    /// Returns whether the lists show if an object in this namespace exists.
    fn is_complete(&self, listed: &Listed, namespace: Option<&str>) -> bool {
        let all = |of: &Selection| of.labels.is_none() && of.fields.is_none();
        let is_watched = match (namespace, &self.namespaces[..]) {
            (_, []) => true,
            (Some(namespace), some) => some.iter().any(|of| of == namespace),
            (None, _) => listed.resource.as_ref().is_some_and(|of| !of.namespaced),
        };
        is_watched && listed.selections.iter().any(all)
    }

    /// Returns the resource that serves a kind; `None` if the cluster does not serve it.
    pub(super) async fn resource(&self, kind: &Gvk) -> Result<Option<Arc<Resource>>> {
        if let Some(listed) = self.kinds.get(kind) {
            return Ok(listed.resource.clone());
        }
        if let Some(known) = self.asked.lock().resources.get(kind) {
            return Ok(known.clone());
        }
        let (reader, asked) = (self.reader.clone(), kind.clone());
        let read = async move { reader.resolve(&asked).await };
        let found = self.send(read).await;
        let found = found.with_context(|| format!("cannot look up {kind}"))?;
        let found = found.map(Arc::new);
        let mut asked = self.asked.lock();
        asked.resources.insert(kind.clone(), found.clone());
        Ok(found)
    }

    /// Returns a CustomResourceDefinition (`foos.example.com`), if there is one and the user may
    /// read it.
    pub(super) async fn definition(&self, name: &str) -> Option<Value> {
        let kind = Gvk::new("apiextensions.k8s.io", "v1", DEFINITION);
        let key = ObjectKey {
            kind,
            name: ObjectName::new(None, name),
        };
        let found = self.find(&key).await.ok().flatten()?;
        serde_json::from_str(&found.object.text).ok()
    }

    /// Returns the OpenAPI document of a kind's group and version, if the server shows it.
    pub(super) async fn schemas(&self, kind: &Gvk) -> Option<Value> {
        let (reader, kind) = (self.reader.clone(), kind.clone());
        let read = async move { reader.schemas(&kind).await };
        self.send(read).await.ok().flatten()
    }

    /// Returns the objects that name this owner, as far as the plugin watches their kinds.
    pub(super) fn dependents(&self, uid: &str) -> &[ObjectKey] {
        let all = self.dependents.get_or_init(|| self.owned());
        all.get(uid).map_or(&[], Vec::as_slice)
    }

    /// Returns the objects in a namespace, as far as the plugin watches their kinds.
    pub(super) fn in_namespace(&self, namespace: &str) -> Vec<ObjectKey> {
        self.keys(|_, name| name.namespace() == Some(namespace))
    }

    /// Returns the objects of a definition's kind (`foos.example.com`), if the plugin watches it.
    pub(super) fn of_definition(&self, definition: &str) -> Vec<ObjectKey> {
        let is_it = |resource: &Resource| {
            let (plural, group) = (&resource.plural, &resource.kind.group);
            definition == format!("{plural}.{group}")
        };
        self.keys(|resource, _| resource.is_some_and(is_it))
    }

    fn keys(&self, wanted: impl Fn(Option<&Resource>, &ObjectName) -> bool) -> Vec<ObjectKey> {
        let mut found = Vec::new();
        for (kind, listed) in &self.kinds {
            let resource = listed.resource.as_deref();
            let names = listed.objects.keys().filter(|name| wanted(resource, name));
            found.extend(names.map(|name| ObjectKey {
                kind: kind.clone(),
                name: name.clone(),
            }));
        }
        found
    }

    fn owned(&self) -> HashMap<String, Vec<ObjectKey>> {
        let mut owned: HashMap<String, Vec<ObjectKey>> = HashMap::new();
        for (kind, listed) in &self.kinds {
            for (name, whole) in &listed.objects {
                let metadata = Metadata::parse(&whole.object.text).unwrap_or_default();
                for owner in metadata.owners {
                    owned
                        .entry(owner.uid.into_owned())
                        .or_default()
                        .push(ObjectKey {
                            kind: kind.clone(),
                            name: name.clone(),
                        });
                }
            }
        }
        owned
    }

    /// Sends a read on the runtime of requests.
    async fn send<T: Send + 'static>(
        &self,
        read: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T> {
        Ok(self.io.spawn(read).await??)
    }
}
