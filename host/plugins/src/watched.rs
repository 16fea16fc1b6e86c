//! The Secrets and ConfigMaps that one `Plugin` names: they are watched while it names them, and a
//! change rings its bell. It must not know what they are for.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::Notify;
use vmhost_cluster::{Informers, Notice, Subscriber, Subscription, WatchSpec};
use vmhost_core::{Gvk, ObjectName, Snapshot};

use crate::listed::listed;

/// Rings when an object changes.
pub(crate) struct Bell(pub(crate) Arc<Notify>);

impl Subscriber for Bell {
    fn notice(&self, _notice: Notice<'_>) {
        self.0.notify_one();
    }
}

/// The kinds that may be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Secret,
    ConfigMap,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
        }
    }
}

/// The watched objects of one namespace.
pub(crate) struct Watched {
    namespace: String,
    bell: Arc<Notify>,
    /// By kind and name, with whether the present look has used it.
    held: HashMap<(Kind, String), (Subscription, bool)>,
}

impl Watched {
    /// Watches nothing yet.
    pub(crate) fn new(namespace: &str, bell: Arc<Notify>) -> Self {
        Self {
            namespace: namespace.to_owned(),
            bell,
            held: HashMap::new(),
        }
    }

    /// Begins a look: nothing counts as used yet.
    pub(crate) fn begin(&mut self) {
        self.held.values_mut().for_each(|(_, used)| *used = false);
    }

    /// Stops to watch what has not been used since [`Self::begin`].
    pub(crate) fn end(&mut self) {
        self.held.retain(|_, (_, used)| *used);
    }

    /// Returns an object. The error says why there is none.
    pub(crate) async fn get(
        &mut self,
        informers: &Informers,
        kind: Kind,
        name: &str,
    ) -> Result<Value, String> {
        let object = self.snapshot(informers, kind, name).await?;
        // The error could quote a value.
        serde_json::from_str(&object.text)
            .map_err(|_| format!("{} {} is malformed", kind.name(), object.name))
    }

    /// Returns an object's text.
    pub(crate) async fn snapshot(
        &mut self,
        informers: &Informers,
        kind: Kind,
        name: &str,
    ) -> Result<Snapshot, String> {
        let what = format!("{} {}/{name}", kind.name(), self.namespace);
        let sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
        if name.is_empty() || !name.chars().all(sound) {
            return Err(format!("{what}: that is no name of an object"));
        }
        let bell = &self.bell;
        let held = self.held.entry((kind, name.to_owned()));
        let (subscription, used) = held.or_insert_with(|| {
            let spec = WatchSpec {
                namespace: Some(self.namespace.clone()),
                field_selector: Some(format!("metadata.name={name}")),
                ..WatchSpec::of(Gvk::new("", "v1", kind.name()))
            };
            let subscriber = Arc::new(Bell(bell.clone()));
            (informers.subscribe(spec, Some(subscriber)), true)
        });
        *used = true;
        let known = listed(subscription).await;
        known.map_err(|state| format!("{what} cannot be read: {state}"))?;
        let key = ObjectName::new(Some(&self.namespace), name);
        let found = subscription.store().get(key.as_str());
        found.ok_or_else(|| format!("{what} does not exist"))
    }
}
