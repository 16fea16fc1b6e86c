//! Clusters whose kubeconfigs are in objects of the host's own cluster: Secrets, or any field of
//! any kind. What is read there is not trusted: see `vmhost_cluster::ForeignText`.
//!
//! A store is looked at as a whole whenever it changes. What an object says is kept by its version,
//! so that other changes cost little.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Notify;
use vmhost_cluster::{
    ForeignText, Informers, Notice, Subscriber, Subscription, Target, Wanted, WatchSpec,
};
use vmhost_core::field_path::Step;
use vmhost_core::{FieldPath, Gvk, Metadata, ObjectName, Snapshot};

use super::found::{Carrier, Found};
use crate::site::member::Labels;

/// The label of Secrets with kubeconfigs, and its value, as multicluster-runtime has them.
const LABEL: &str = "sigs.k8s.io/multicluster-runtime-kubeconfig=true";

/// Objects that carry kubeconfigs.
pub(crate) struct Objects {
    kind: Gvk,
    field: Field,
    /// The guarded fields that a kubeconfig may use.
    allowed: Arc<[String]>,
    subscription: Subscription,
    /// What each object said, with its uid and version.
    known: Mutex<HashMap<ObjectName, (String, u64, Found)>>,
}

/// Where the kubeconfig is in an object.
pub(super) struct Field {
    /// The keys of the objects around it, and its own.
    keys: Vec<String>,
    /// The path, for messages.
    text: String,
}

/// Rings when an object changes.
pub(super) struct Bell(pub(super) Arc<Notify>);

impl Subscriber for Bell {
    fn notice(&self, _notice: Notice<'_>) {
        self.0.notify_one();
    }
}

impl Objects {
    /// Secrets of a namespace that carry the label. `bell` rings when one changes.
    pub(crate) fn secrets(
        informers: &Informers,
        namespace: &str,
        allowed: Arc<[String]>,
        bell: Arc<Notify>,
    ) -> Self {
        let field = Field::in_data("kubeconfig");
        let spec = WatchSpec {
            namespace: Some(namespace.to_owned()),
            label_selector: Some(LABEL.to_owned()),
            wanted: Wanted::fields(Some([&*field.text])),
            ..WatchSpec::of(Gvk::new("", "v1", "Secret"))
        };
        Self::watch(informers, spec, field, allowed, bell)
    }

    /// A field of all objects of a kind. `bell` rings when one changes.
    pub(crate) fn field(
        informers: &Informers,
        kind: &Gvk,
        path: &FieldPath,
        allowed: Arc<[String]>,
        bell: Arc<Notify>,
    ) -> Self {
        let spec = WatchSpec {
            wanted: Wanted::fields(Some([path.root_dotted()])),
            ..WatchSpec::of(kind.clone())
        };
        Self::watch(informers, spec, Field::of(path), allowed, bell)
    }

    fn watch(
        informers: &Informers,
        spec: WatchSpec,
        field: Field,
        allowed: Arc<[String]>,
        bell: Arc<Notify>,
    ) -> Self {
        Self {
            kind: spec.kind.clone(),
            field,
            allowed,
            subscription: informers.subscribe(spec, Some(Arc::new(Bell(bell)))),
            known: Mutex::default(),
        }
    }

    /// Waits until all objects are there.
    pub(crate) async fn listed(&self) {
        self.subscription.synced().await;
    }

    /// The clusters of the objects that the store shows now, by name.
    pub(crate) fn look(&self) -> Vec<Found> {
        let mut objects = self.subscription.store().snapshots();
        objects.sort_by(|a, b| a.name.cmp(&b.name));
        let mut known = self.known.lock();
        let mut now = HashMap::with_capacity(objects.len());
        let mut all = Vec::with_capacity(objects.len());
        for object in objects {
            let found = match known.remove(&object.name) {
                Some((uid, version, found)) if uid == object.uid() && version == object.version => {
                    found
                }
                _ => found(&self.kind, &self.field, &self.allowed, &object),
            };
            all.push(found.clone());
            let kept = (object.uid().to_owned(), object.version, found);
            now.insert(object.name.clone(), kept);
        }
        *known = now;
        all
    }
}

impl Field {
    /// The value of a key of a Secret.
    pub(super) fn in_data(key: &str) -> Self {
        Self {
            keys: ["data", key].map(str::to_owned).into(),
            text: format!("data.{key}"),
        }
    }

    /// Its path, as a watch names it.
    pub(super) fn path(&self) -> &str {
        &self.text
    }

    /// The field at a path, which names one field of an object.
    fn of(path: &FieldPath) -> Self {
        let keys = path.steps().iter().filter_map(|step| match step {
            Step::Key(key) => Some(key.to_string()),
            Step::All => None,
        });
        Self {
            keys: keys.collect(),
            text: path.to_string(),
        }
    }
}

/// What an object says.
fn found(kind: &Gvk, field: &Field, allowed: &Arc<[String]>, object: &Snapshot) -> Found {
    let place = format!("{kind} {}", object.name);
    let target = text(field, &object.text).map(|text| {
        Target::Text(ForeignText {
            text: text.into(),
            place: place.clone(),
            allowed: allowed.clone(),
        })
    });
    described(kind, object, target, place)
}

/// The cluster of an object, which has the object's name and labels.
pub(super) fn described(
    kind: &Gvk,
    object: &Snapshot,
    target: Result<Target, String>,
    place: String,
) -> Found {
    // Stores keep only objects whose metadata can be parsed.
    let labels = Metadata::parse(&object.text).map(|metadata| {
        let labels = metadata.labels.iter();
        labels
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect::<Labels>()
    });
    Found {
        name: object.name.name().to_owned(),
        born: born(&object.text),
        labels: labels.unwrap_or_default(),
        target,
        stamp: 0,
        place,
        carrier: Some(Carrier {
            kind: kind.clone(),
            name: object.name.clone(),
            uid: object.uid().to_owned(),
        }),
    }
}

/// When an object was created; empty if it does not say.
fn born(object: &str) -> String {
    #[derive(Deserialize)]
    struct Created {
        metadata: Time,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Time {
        creation_timestamp: String,
    }
    let created = serde_json::from_str(object);
    created.map_or_else(
        |_| String::new(),
        |of: Created| of.metadata.creation_timestamp,
    )
}

/// The kubeconfig in a field: a text, or an object as it is.
pub(super) fn text(field: &Field, object: &str) -> Result<String, String> {
    let path = &field.text;
    let missing = || format!("it has no kubeconfig in the field {path}");
    let object: Value = serde_json::from_str(object).map_err(|_| missing())?;
    let mut value = &object;
    for key in &field.keys {
        value = value.get(key).ok_or_else(missing)?;
    }
    match value {
        Value::String(text) if !text.trim().is_empty() => Ok(text.clone()),
        Value::Object(_) => Ok(value.to_string()),
        Value::Null | Value::String(_) => Err(missing()),
        _ => Err(format!("its field {path} holds no kubeconfig")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmhost_core::Object;

    const PATH: &str = "spec.connection.kubeConfig";

    fn of(spec: &str) -> Found {
        let name = ObjectName::new(None, "east");
        let object = format!(
            r#"{{"metadata":{{"name":"east","uid":"u","creationTimestamp":"2026-01-31T12:00:00Z","labels":{{"env":"prod"}}}},"spec":{spec}}}"#
        );
        let kind = Gvk::new("openapi.example.com", "v1", "Cluster");
        let path = FieldPath::parse(PATH).unwrap();
        let object = Object::with_text(name, "u", 7, &object);
        found(&kind, &Field::of(&path), &Arc::default(), &object)
    }

    fn text_of(found: &Found) -> Result<&str, &String> {
        match found.target.as_ref()? {
            Target::Text(foreign) => Ok(&foreign.text),
            Target::Files(_) => panic!("an object names no file"),
        }
    }

    #[test]
    fn an_object_says_where_its_cluster_is() {
        let found = of(r#"{"connection":{"kubeConfig":"a: b"}}"#);
        assert_eq!(text_of(&found), Ok("a: b"));
        assert_eq!(found.name, "east");
        assert_eq!(found.place, "Cluster.v1.openapi.example.com east");
        assert_eq!(found.labels["env"], "prod");
        assert_eq!(found.born, "2026-01-31T12:00:00Z");
        let inline = of(r#"{"connection":{"kubeConfig":{"kind":"Config"}}}"#);
        assert_eq!(text_of(&inline), Ok(r#"{"kind":"Config"}"#));
    }

    #[test]
    fn what_else_changes_in_an_object_is_no_change_of_its_cluster() {
        let one = of(r#"{"connection":{"kubeConfig":"a"},"zone":1}"#);
        let other = of(r#"{"connection":{"kubeConfig":"a"},"zone":2}"#);
        assert_eq!(one, other);
        assert_ne!(one, of(r#"{"connection":{"kubeConfig":"b"}}"#));
    }

    #[test]
    fn a_missing_kubeconfig_is_named_by_its_field() {
        for spec in [
            "{}",
            r#"{"connection":null}"#,
            r#"{"connection":{"kubeConfig":""}}"#,
            r#"{"connection":{"kubeConfig":null}}"#,
            r#"{"connection":{"kubeConfig":7}}"#,
        ] {
            let found = of(spec);
            let why = text_of(&found).unwrap_err();
            assert!(why.contains(PATH), "{spec}: {why}");
        }
    }
}
