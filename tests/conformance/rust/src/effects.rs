//! The ten effects of the case `effects`, and the four of `in-cluster`.

use serde_json::{Value, json};
use vmhost_plugin::{Apply, Create, Delete, Event, Kind, ObjectKey, Other, Outcome, Patch, Propagation, Result};

use crate::describe::CONFIG_MAP;

pub fn all() -> Result<Outcome> {
    let a = ObjectKey::of(&CONFIG_MAP, Some("default"), "a");
    let b = ObjectKey::of(&CONFIG_MAP, Some("default"), "b");
    let n = ObjectKey::of(&Kind::core("v1", "Namespace"), None, "n");
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}, "data": {"k": "v"}});
    let generated = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-", "namespace": "default"}});
    Ok(Outcome::await_change()
        .with(Apply::new(&object)?.subresource("status").polite().existing().if_version("7"))
        .with(Apply::new(&object)?)
        .with(Patch::merge(&a, &json!({"data": {"k": null}}))?.subresource("status").if_version("8"))
        .with(Patch::json(&n).test("/a", 1).add("/b/-", "x").replace("/c~1d", Value::Null).remove("/e"))
        .with(Create::new(&generated)?)
        .with(Delete::new(&a).uid("u-1").if_version("9").propagation(Propagation::Foreground))
        .with(Delete::new(&b))
        .with(Event::warning("Broken", "it broke: ☃").action("Mending").related(&a))
        .with(Event::normal("Fine", ""))
        .with(Other { name: "future".into(), body: r#"{"x":1}"#.into() }))
}

pub fn in_clusters() -> Result<Outcome> {
    let a = ObjectKey::of(&CONFIG_MAP, Some("default"), "a");
    let d = ObjectKey::of(&Kind::new("apps", "v1", "Deployment"), Some("default"), "d");
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}, "data": {"k": "v"}});
    let new = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}});
    let patch = Patch::merge(&a, &json!({"data": {"k": "v"}}))?.subresource("status").if_version("8");
    let delete = Delete::new(&d).uid("u-1").propagation(Propagation::Orphan);
    Ok(Outcome::await_change()
        .with(Other::in_cluster(Some("east"), Apply::new(&object)?)?)
        .with(Other::in_cluster(None, patch)?)
        .with(Other::in_cluster(Some("east"), Create::new(&new)?)?)
        .with(Other::in_cluster(Some("east"), delete)?))
}
