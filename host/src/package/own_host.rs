//! The objects of a host that runs one plugin: those of the chart's base in their namespaced form,
//! under a name of their own. This module must not know what the plugin does.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::install::base::{self, Choice};

/// The name of the objects in the base.
const BASE: &str = "vmhost";

/// The kinds of the base that a host of one plugin has, too. Its other rights are the plugin's.
const KINDS: [&str; 8] = [
    "Deployment",
    "Lease",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "Role",
    "RoleBinding",
    "Service",
    "ServiceAccount",
];

/// Fields whose value is the name of one of the objects, or of the group that they form.
const NAMING: [&str; 4] = [
    "app.kubernetes.io/instance",
    "name",
    "resourceNames",
    "serviceAccountName",
];

/// Returns the name of the host of this plugin, and of its service account.
pub(super) fn name(plugin: &str) -> String {
    format!("{BASE}-{plugin}")
}

/// Returns the name of the ConfigMap with the plugin's component.
pub(super) fn config_map(plugin: &str) -> String {
    format!("{plugin}-plugin")
}

/// Returns the objects of the host of this plugin.
pub(super) fn objects(plugin: &str, namespace: &str, image: Option<&str>) -> Result<Vec<Value>> {
    let choice = Choice {
        namespace,
        image,
        replicas: 2,
    };
    let mut objects = base::objects(&choice)?;
    objects.retain(|object| KINDS.contains(&object["kind"].as_str().unwrap_or_default()));
    for object in &mut objects {
        rename(object, "", &name(plugin));
        if object["kind"] == "Deployment" {
            run(object, plugin).context("the Deployment of vmhost's own base")?;
        }
    }
    Ok(objects)
}

/// Renames the objects and what refers to them.
fn rename(value: &mut Value, field: &str, to: &str) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                rename(value, field, to);
            }
        }
        Value::Array(items) => {
            for item in items {
                rename(item, field, to);
            }
        }
        Value::String(text) if NAMING.contains(&field) => {
            let rest = text.strip_prefix(BASE);
            if let Some(rest) = rest.filter(|rest| rest.is_empty() || rest.starts_with('-')) {
                *text = format!("{to}{rest}");
            }
        }
        Value::String(text)
            if field == "args" && *text == format!("--leader-election-id={BASE}") =>
        {
            *text = format!("--leader-election-id={to}");
        }
        _ => {}
    }
}

/// Lets the Deployment run the plugin from its ConfigMap, and no Plugin objects.
fn run(deployment: &mut Value, plugin: &str) -> Result<()> {
    let arguments = list(deployment, "/spec/template/spec/containers/0/args")?;
    arguments.retain(|argument| argument != "--plugins-from-cluster");
    arguments.insert(
        0,
        format!("--plugin=/plugins/{plugin}/{plugin}.wasm").into(),
    );
    let mounts = list(deployment, "/spec/template/spec/containers/0/volumeMounts")?;
    // The whole folder: a single file of a volume never changes.
    mounts.push(json!({
        "name": "plugin",
        "mountPath": format!("/plugins/{plugin}"),
        "readOnly": true,
    }));
    let volumes = list(deployment, "/spec/template/spec/volumes")?;
    volumes.push(json!({ "name": "plugin", "configMap": { "name": config_map(plugin) } }));
    Ok(())
}

fn list<'a>(object: &'a mut Value, path: &str) -> Result<&'a mut Vec<Value>> {
    let found = object.pointer_mut(path).and_then(Value::as_array_mut);
    found.with_context(|| format!("{path} is no list"))
}
