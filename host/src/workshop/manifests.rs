//! Kubernetes objects from files, and how they come onto an API server.
//!
//! Must not know which command asks.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;
use vmhost_cluster::Manifests;
use vmhost_core::Gvk;

/// Kinds that others depend on. They are applied first, in this order.
pub(crate) const FIRST: [&str; 2] = ["CustomResourceDefinition", "Namespace"];

/// One Kubernetes object from a file.
pub(crate) struct Manifest {
    file: PathBuf,
    object: Value,
}

impl Manifest {
    pub(crate) fn kind(&self) -> &str {
        self.object
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    pub(crate) fn gvk(&self) -> Gvk {
        Gvk::from_api_version(
            self.object
                .get("apiVersion")
                .and_then(Value::as_str)
                .unwrap_or_default(),
            self.kind(),
        )
    }
}

/// Returns all objects of files, and of the files in folders: those that others depend on first.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Vec<Manifest>> {
    let mut found = Vec::new();
    for path in paths {
        let mut files = vec![path.clone()];
        if path.is_dir() {
            files = std::fs::read_dir(path)?
                .flatten()
                .map(|entry| entry.path())
                .filter(|file| is_manifest(file))
                .collect();
            files.sort();
        }
        for file in files {
            found.extend(read_file(&file)?);
        }
    }
    let rank = |manifest: &Manifest| {
        FIRST
            .iter()
            .position(|kind| *kind == manifest.kind())
            .unwrap_or(FIRST.len())
    };
    found.sort_by_key(rank);
    Ok(found)
}

fn is_manifest(file: &Path) -> bool {
    file.extension()
        .and_then(|extension| extension.to_str())
        .is_some_and(|extension| matches!(extension, "yaml" | "yml" | "json"))
}

/// Reads the documents of a YAML or JSON file.
fn read_file(file: &Path) -> Result<Vec<Manifest>> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("manifest {}", file.display()))?;
    let mut found = Vec::new();
    for document in serde_yaml_ng::Deserializer::from_str(&text) {
        let object = Value::deserialize(document)
            .with_context(|| format!("manifest {} is not valid YAML", file.display()))?;
        if object.is_null() {
            continue;
        }
        if !object.is_object() {
            bail!(
                "manifest {} contains a document that is not a Kubernetes object",
                file.display()
            );
        }
        found.push(Manifest {
            file: file.to_owned(),
            object,
        });
    }
    Ok(found)
}

/// Applies manifests, and tells of each one.
pub(crate) async fn apply(
    cluster: &Manifests,
    manifests: &[Manifest],
    tell: impl Fn(&str),
) -> Result<()> {
    for manifest in manifests {
        let applied = cluster
            .apply(&manifest.object)
            .await
            .with_context(|| format!("manifest {}", manifest.file.display()))?;
        let namespace = applied
            .namespace
            .map(|namespace| format!("{namespace}/"))
            .unwrap_or_default();
        let (kind, name) = (&applied.kind.kind, &applied.name);
        tell(&format!("{kind} {namespace}{name}"));
    }
    Ok(())
}
