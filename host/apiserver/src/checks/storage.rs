//! The rules of volumes and their claims.

use serde_json::Value;
use vmhost_schema::billionths;

use super::told::{Rule, Told, given, list};

/// The types of volumes.
const SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flocker",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
    "flexVolume",
];

#[cfg(test)]
pub(super) const COUNT: usize = 2;

pub(super) fn rule(name: &str) -> Option<Rule> {
    let rule: Rule = match name {
        "core.v1.PersistentVolumeClaimSpec" => claim,
        "core.v1.PersistentVolumeSpec" => volume,
        _ => return None,
    };
    Some(rule)
}

fn claim(of: &Value, told: &mut Told<'_>) {
    if list(of, "accessModes").next().is_none() {
        told.required("accessModes", "at least 1 access mode is required");
    }
    let storage = of.pointer("/resources/requests/storage");
    match storage {
        None => told.required("resources[storage]", ""),
        Some(amount) => {
            let number = amount.as_str().and_then(billionths);
            if number.is_some_and(|number| number <= 0) {
                told.invalid("resources[storage]", amount, "must be greater than zero");
            }
        }
    }
    told.subdomain(of, "storageClassName");
}

fn volume(of: &Value, told: &mut Told<'_>) {
    if list(of, "accessModes").next().is_none() {
        told.required("accessModes", "");
    }
    if of["capacity"]
        .as_object()
        .is_none_or(serde_json::Map::is_empty)
    {
        told.required("capacity", "");
        let none = of.get("capacity").unwrap_or(&Value::Null);
        told.unsupported("capacity", none, r#""storage""#);
    }
    let sources = given(of, &SOURCES);
    if sources.is_empty() {
        told.required("", "must specify a volume type");
    }
    for more in sources.iter().skip(1) {
        told.forbidden(more, "may not specify more than 1 volume type");
    }
    told.subdomain(of, "storageClassName");
}
