//! Lists at first what a plugin's descriptions watch, as a running host would.
//!
//! It sends only reads. It must not know what becomes of the objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context, Result};
use vmhost_cluster::{Index, Reader, Resource, Wanted, WatchSpec, Whole};
use vmhost_core::{Description, Gvk, ObjectName};

use super::watched::watched;

/// The listed objects of a kind.
#[derive(Default)]
pub(super) struct Listed {
    /// `None` if the cluster does not serve the kind.
    pub(super) resource: Option<Arc<Resource>>,
    /// Whether the objects have all their fields.
    pub(super) whole: bool,
    pub(super) selections: Vec<Selection>,
    pub(super) objects: BTreeMap<ObjectName, Whole>,
}

/// What one watch of a kind shows.
pub(super) struct Selection {
    pub(super) labels: Option<String>,
    pub(super) fields: Option<String>,
    pub(super) names: Vec<ObjectName>,
}

/// What the descriptions ask for of one kind.
#[derive(Default)]
struct Want {
    /// The fields. `None` before the first watch is added.
    wanted: Option<Wanted>,
    indexes: BTreeSet<Index>,
    /// The label selector and the field selector of each watch.
    selections: BTreeSet<(Option<String>, Option<String>)>,
    /// Whether effects may write objects of the kind. Then the objects need all their fields.
    written: bool,
}

/// Lists what these descriptions watch, in these namespaces (empty for all).
pub(super) async fn lists(
    reader: &Reader,
    descriptions: &[&Description],
    namespaces: &[String],
) -> Result<BTreeMap<Gvk, Listed>> {
    let mut kinds = BTreeMap::new();
    for (kind, want) in wants(descriptions) {
        let listed = list(reader, &kind, want, namespaces).await?;
        kinds.insert(kind, listed);
    }
    Ok(kinds)
}

/// Collects what these descriptions watch, by kind.
fn wants(descriptions: &[&Description]) -> BTreeMap<Gvk, Want> {
    let mut wants: BTreeMap<Gvk, Want> = BTreeMap::new();
    let controllers = descriptions.iter().flat_map(|of| &of.controllers);
    for watching in controllers.flat_map(watched) {
        let spec = watching.spec;
        let want = wants.entry(spec.kind).or_default();
        want.wanted = Some(match want.wanted.take() {
            Some(wanted) => wanted.union(&spec.wanted),
            None => spec.wanted,
        });
        want.indexes.extend(spec.indexes);
        want.selections
            .insert((spec.label_selector, spec.field_selector));
    }
    for permission in descriptions.iter().flat_map(|of| &of.permissions) {
        let is_it = |kind: &Gvk| kind.group == permission.group && kind.kind == permission.kind;
        for (_, want) in wants.iter_mut().filter(|(kind, _)| is_it(kind)) {
            want.wanted = Some(Wanted::All);
            want.written = true;
        }
    }
    wants
}

async fn list(reader: &Reader, kind: &Gvk, want: Want, namespaces: &[String]) -> Result<Listed> {
    let resource = reader.resolve(kind).await;
    let resource = resource.with_context(|| format!("cannot look up {kind}"))?;
    let Some(resource) = resource else {
        return Ok(Listed::default());
    };
    let each: Vec<Option<String>> = match namespaces.is_empty() || !resource.namespaced {
        true => vec![None],
        false => namespaces.iter().cloned().map(Some).collect(),
    };
    let wanted = want.wanted.unwrap_or(Wanted::All);
    let mut listed = Listed {
        whole: wanted == Wanted::All,
        ..Listed::default()
    };
    for (labels, fields) in want.selections {
        let mut names = Vec::new();
        for namespace in &each {
            let spec = WatchSpec {
                namespace: namespace.clone(),
                label_selector: labels.clone(),
                field_selector: fields.clone(),
                wanted: wanted.clone(),
                indexes: want.indexes.clone(),
                ..WatchSpec::of(kind.clone())
            };
            let found = reader.list_whole(&resource, &spec).await;
            let (found, _) = found.with_context(|| format!("cannot list {kind}"))?;
            for mut whole in found {
                whole.managed = whole.managed.filter(|_| want.written);
                names.push(whole.object.name.clone());
                listed.objects.insert(whole.object.name.clone(), whole);
            }
        }
        listed.selections.push(Selection {
            labels,
            fields,
            names,
        });
    }
    listed.resource = Some(Arc::new(resource));
    Ok(listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(permissions: &str) -> Description {
        let text = format!(
            r#"{{"apiVersion":"vmhost/v1","name":"p","permissions":[{permissions}],"controllers":[
                {{"name":"a","primary":{{"version":"v1","kind":"Pod","wantedFields":["spec.a"]}},
                  "reads":[{{"version":"v1","kind":"Secret","metadataOnly":true}},
                           {{"version":"v1","kind":"Node","live":true}}]}},
                {{"name":"b","primary":{{"version":"v1","kind":"Pod","wantedFields":["spec.b"],"labelSelector":"x"}}}}]}}"#
        );
        Description::parse(&text).unwrap()
    }

    #[test]
    fn a_kind_that_is_written_is_listed_whole_and_others_as_they_are_watched() {
        let pod = Gvk::new("", "v1", "Pod");
        let secret = Gvk::new("", "v1", "Secret");
        let narrow = wants(&[&description("")]);
        assert_eq!(narrow.keys().collect::<Vec<_>>(), [&pod, &secret]);
        let fields = Wanted::fields(Some(["spec.a", "spec.b"]));
        assert_eq!(narrow[&pod].wanted, Some(fields));
        assert_eq!(narrow[&secret].wanted, Some(Wanted::metadata()));
        assert_eq!(narrow[&pod].selections.len(), 2);
        let patch = r#"{"version":"v1","kind":"Pod","verbs":["patch"]}"#;
        let written = wants(&[&description(""), &description(patch)]);
        assert_eq!(written[&pod].wanted, Some(Wanted::All));
        assert!(written[&pod].written && !written[&secret].written);
    }
}
