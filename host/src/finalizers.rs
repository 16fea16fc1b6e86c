//! `vmhost finalizers`: lists the objects that carry a plugin's finalizers, and removes these when
//! the plugin is gone. Otherwise objects of a removed plugin could never be deleted.

use anyhow::{Context, Result, anyhow, bail};
use serde_json::json;
use vmhost_cluster::{ConnectOptions, LiveQuery, ObjectPath, Reader, Resource, Writer, connect};
use vmhost_core::{Description, Metadata, Object, ObjectName, PatchType};

use crate::cli::FinalizersArgs;
use crate::flags::check_namespaces;
use crate::output::print;
use vmhost_runtime::deploy::loader::Loader;
use vmhost_runtime::table::table;

/// Objects per page of a list.
const PAGE: u32 = 500;

/// Attempts for one object that another writer keeps changing, and for a list whose position
/// expires.
const TRIES: usize = 5;

/// A finalizer of one of the plugin's controllers.
struct Ours<'a> {
    finalizer: &'a str,
    resource: Resource,
    manager: String,
}

/// An object that carries the finalizer.
struct Held {
    name: ObjectName,
    deleting: bool,
}

/// Lists the objects that carry the plugin's finalizers, and removes these with `--remove`.
pub(crate) async fn command(loader: &Loader, args: &FinalizersArgs) -> Result<()> {
    check_namespaces(&args.namespaces)?;
    let plugin = loader.load_file(&args.file).await?.plugin;
    let description = plugin.description();
    let name = &description.name;
    let options = ConnectOptions {
        kubeconfig: args.kubeconfig.clone(),
        context: args.context.clone(),
    };
    if !description
        .controllers
        .iter()
        .any(|controller| controller.finalizer.is_some())
    {
        print(&format!("the plugin {name} declares no finalizer"));
        return Ok(());
    }
    let connection = connect(&options).await?;
    let (reader, writer) = (connection.reader(), connection.writer());
    let mut rows = Vec::new();
    let mut failed = 0;
    for ours in ours(&reader, description).await? {
        for held in held(&reader, &ours, &args.namespaces).await? {
            let mut result = String::new();
            if args.remove {
                result = match remove(&reader, &writer, &ours, &held.name).await {
                    Ok(()) => "removed".to_owned(),
                    Err(error) => {
                        failed += 1;
                        format!("failed: {error:#}")
                    }
                };
            }
            rows.push([
                ours.resource.kind.to_string(),
                held.name.to_string(),
                ours.finalizer.to_owned(),
                if held.deleting { "yes" } else { "no" }.to_owned(),
                result,
            ]);
        }
    }
    show(name, args.remove, &rows);
    if failed > 0 {
        bail!("{failed} of {} finalizers could not be removed", rows.len());
    }
    Ok(())
}

fn show(plugin: &str, removed: bool, rows: &[[String; 5]]) {
    if !rows.is_empty() {
        let text = if removed {
            table(["KIND", "NAME", "FINALIZER", "DELETING", "RESULT"], rows)
        } else {
            let rows: Vec<[String; 4]> = rows
                .iter()
                .map(|[kind, name, finalizer, deleting, _]| {
                    [kind, name, finalizer, deleting].map(Clone::clone)
                })
                .collect();
            table(["KIND", "NAME", "FINALIZER", "DELETING"], &rows)
        };
        print(&text);
    }
    print(&match rows.len() {
        0 => format!("no object carries a finalizer of the plugin {plugin}"),
        1 => format!("1 object carried a finalizer of the plugin {plugin}"),
        many => format!("{many} objects carried finalizers of the plugin {plugin}"),
    });
}

/// Returns the plugin's finalizers whose kinds the cluster serves. A kind that is not served has no
/// objects.
async fn ours<'a>(reader: &Reader, description: &'a Description) -> Result<Vec<Ours<'a>>> {
    let mut ours = Vec::new();
    for controller in &description.controllers {
        let (Some(finalizer), Some(primary)) = (&controller.finalizer, &controller.primary) else {
            continue;
        };
        let kind = primary.gvk();
        let resource = reader
            .resolve(&kind)
            .await
            .with_context(|| format!("cannot look up {kind}"))?;
        match resource {
            Some(resource) => ours.push(Ours {
                finalizer,
                resource,
                manager: description.field_manager(&controller.name),
            }),
            None => print(&format!(
                "the cluster does not serve {kind}, so there are no objects"
            )),
        }
    }
    Ok(ours)
}

/// Returns all objects that carry the finalizer, in these namespaces (empty for all). The plugin's
/// selectors are ignored, since labels may have changed.
async fn held(reader: &Reader, ours: &Ours<'_>, namespaces: &[String]) -> Result<Vec<Held>> {
    let mut found = Vec::new();
    if namespaces.is_empty() || !ours.resource.namespaced {
        found.extend(held_in(reader, ours, None).await?);
    } else {
        for namespace in namespaces {
            found.extend(held_in(reader, ours, Some(namespace)).await?);
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

async fn held_in(reader: &Reader, ours: &Ours<'_>, namespace: Option<&str>) -> Result<Vec<Held>> {
    let kind = &ours.resource.kind;
    let mut tries = 0;
    let (mut found, mut next): (Vec<Held>, Option<String>) = (Vec::new(), None);
    loop {
        let query = LiveQuery {
            namespace,
            limit: Some(PAGE),
            next: next.as_deref(),
            ..LiveQuery::default()
        };
        match reader.list_live(&ours.resource, &query).await {
            Ok(page) => {
                for object in &page.objects {
                    found.extend(carries(object, ours.finalizer)?);
                }
                next = page.next;
                if next.is_none() {
                    return Ok(found);
                }
            }
            // The list took longer than the server keeps its position: start again.
            Err(error) if error.code() == Some(410) && tries < TRIES => {
                tries += 1;
                next = None;
                found.clear();
            }
            Err(error) => return Err(error).with_context(|| format!("cannot list {kind}")),
        }
    }
}

fn carries(object: &Object, finalizer: &str) -> Result<Option<Held>> {
    let metadata = metadata(object)?;
    let carried = metadata.finalizers.iter().any(|other| other == finalizer);
    Ok(carried.then(|| Held {
        name: object.name.clone(),
        deleting: metadata.is_deleting(),
    }))
}

fn metadata(object: &Object) -> Result<Metadata<'_>> {
    Metadata::parse(&object.text)
        .with_context(|| format!("{}: the metadata is not valid", object.name))
}

/// Removes one entry from one object while other writers may change it: each attempt patches only
/// the version that it has read.
async fn remove(
    reader: &Reader,
    writer: &Writer,
    ours: &Ours<'_>,
    name: &ObjectName,
) -> Result<()> {
    let path = ObjectPath {
        resource: &ours.resource,
        namespace: name.namespace(),
        name: Some(name.name()),
        subresource: None,
    };
    let mut last = None;
    for _ in 0..TRIES {
        // The object is gone: another writer removed its last finalizer.
        let Some(object) = reader.get(&path).await? else {
            return Ok(());
        };
        let Some(patch) = removal(&metadata(&object)?, ours.finalizer) else {
            return Ok(());
        };
        match writer
            .patch(&path, PatchType::Json, patch, &ours.manager)
            .await
        {
            Ok(_) => return Ok(()),
            // The object is gone, or changed since it was read. A 422 may also be a permanent error
            // of the object, and then repeats.
            Err(error) if matches!(error.code(), Some(404 | 409 | 422)) => last = Some(error),
            Err(error) => return Err(error.into()),
        }
    }
    let last = last.map_or_else(String::new, |error| format!(": {error}"));
    Err(anyhow!("failed {TRIES} times{last}"))
}

/// Returns the JSON patch that removes the entry from exactly this version. `None` if the entry is
/// absent.
fn removal(metadata: &Metadata<'_>, finalizer: &str) -> Option<String> {
    let [is_there, remove] = metadata.finalizer_removal(finalizer)?;
    let version = &metadata.resource_version;
    let is_seen = json!({ "op": "test", "path": "/metadata/resourceVersion", "value": version });
    Some(json!([is_seen, is_there, remove]).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_entry_of_the_seen_version_is_removed() {
        let removal = |finalizers: &str| {
            let text =
                format!(r#"{{"metadata":{{"resourceVersion":"7","finalizers":{finalizers}}}}}"#);
            removal(&Metadata::parse(&text).unwrap(), "x.y/z")
        };
        assert_eq!(
            removal(r#"["a.b/c","x.y/z"]"#).unwrap(),
            r#"[{"op":"test","path":"/metadata/resourceVersion","value":"7"},{"op":"test","path":"/metadata/finalizers/1","value":"x.y/z"},{"op":"remove","path":"/metadata/finalizers/1"}]"#
        );
        assert_eq!(removal("null"), None);
        assert_eq!(removal(r#"["a.b/c"]"#), None);
    }
}
