//! Asks the API server what of a plugin's needs this host may not do, and says so in a table with the rules that would grant it.
//!
//! A check holds nothing up: at the start it runs beside everything else, and where reviews cannot be asked it says nothing. Rights change while a host runs,
//! so that no answer is kept.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures_util::{StreamExt, TryStreamExt, stream};
use vmhost_cluster::{AccessQuestion, ClusterError, Connection};
use vmhost_core::{Description, Gvk};

use super::names::{Name, builtin, carried};
use super::{Need, Options, Scope, needs};
use crate::rbac::access;
use crate::rbac::rules::{Access, rules};
use crate::table::table;

/// Questions that are open at a time.
const AT_ONCE: usize = 8;

/// An access that is not granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// What.
    pub access: Access,
    /// Where; none: in all namespaces, or of a cluster-scoped kind.
    pub namespace: Option<String>,
    /// The field of the description, or the flag, that asks for it.
    pub why: String,
}

/// What a new generation needs, as a sentence and a table with the rules that would grant it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MissingRights(pub String);

/// Looks at a plugin that has just been loaded, and logs what is missing.
pub async fn at_start(connection: Connection, description: Description, options: Options) {
    let plugin = &description.name;
    match missing(&connection, &description, &needs(&description, &options)).await {
        Ok(missing) if missing.is_empty() => {
            tracing::debug!(plugin, "all that the plugin needs is granted");
        }
        Ok(missing) => tracing::warn!(
            plugin,
            "the plugin {plugin} lacks {}; what needs them waits or fails until they are granted\n{}",
            count(&missing),
            report(plugin, &missing)
        ),
        Err(error) => not_asked(plugin, &error),
    }
}

/// Is a new generation granted what it needs beyond the old one? What was missing already is not the new one's fault.
pub async fn at_swap(
    connection: &Connection,
    before: &Description,
    after: &Description,
    options: &Options,
) -> Result<(), MissingRights> {
    let old = needs(before, options);
    let mut new = needs(after, options);
    new.retain(|need| !old.iter().any(|other| other.same_access(need)));
    if new.is_empty() {
        return Ok(());
    }
    match missing(connection, after, &new).await {
        Ok(missing) if missing.is_empty() => Ok(()),
        Ok(missing) => Err(MissingRights(format!(
            "it needs {} that the present version did not need and vmhost does not have\n{}",
            count(&missing),
            report(&after.name, &missing)
        ))),
        Err(error) => {
            not_asked(&after.name, &error);
            Ok(())
        }
    }
}

/// Which of these needs are not granted, in their order. A kind that nobody knows a plural of is left out: it is not served yet, and its informer says so.
pub async fn missing(
    connection: &Connection,
    description: &Description,
    needs: &[Need],
) -> Result<Vec<Missing>, ClusterError> {
    let names = names(connection, description, needs).await;
    let questions: Vec<Missing> = needs
        .iter()
        .filter_map(|need| Some((need, names.get(&need.kind)?)))
        .flat_map(|(need, name)| questions(need, name))
        .collect();
    stream::iter(questions)
        .map(|question| async move {
            let wire = wire(&question.access, question.namespace.as_deref());
            let answer = connection.access_review(&wire).await?;
            Ok((!answer.allowed).then_some(question))
        })
        .buffered(AT_ONCE)
        .try_filter_map(async |missing| Ok(missing))
        .try_collect()
        .await
}

/// How each kind is called: as the cluster says, else as the plugin's own definition says. Names of built-in kinds never change.
async fn names(
    connection: &Connection,
    description: &Description,
    needs: &[Need],
) -> HashMap<Gvk, Name> {
    let kinds: BTreeSet<Gvk> = needs.iter().map(|need| need.kind.clone()).collect();
    stream::iter(kinds)
        .map(|kind| async move {
            if let Some(name) = builtin(&kind) {
                return Some((kind, name));
            }
            let served = match connection.resolve(&kind).await {
                Ok(Some(resource)) => Some(Name {
                    plural: resource.plural,
                    namespaced: resource.namespaced,
                }),
                Ok(None) => None,
                Err(error) => {
                    tracing::debug!("{:#}", anyhow::Error::new(error));
                    None
                }
            };
            let name = served.or_else(|| carried(description, &kind))?;
            Some((kind, name))
        })
        .buffer_unordered(AT_ONCE)
        .filter_map(async |name| name)
        .collect()
        .await
}

/// One question for each namespace.
fn questions(need: &Need, name: &Name) -> Vec<Missing> {
    let namespaces: Vec<Option<String>> = match &need.scope {
        Scope::Only(namespaces) if name.namespaced => {
            namespaces.iter().cloned().map(Some).collect()
        }
        _ => vec![None],
    };
    namespaces
        .into_iter()
        .map(|namespace| Missing {
            access: access(need, name),
            namespace,
            why: need.why.clone(),
        })
        .collect()
}

fn wire<'a>(access: &'a Access, namespace: Option<&'a str>) -> AccessQuestion<'a> {
    let (resource, subresource) = match access.resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource)),
        None => (access.resource.as_str(), None),
    };
    AccessQuestion {
        verb: &access.verb,
        group: &access.group,
        resource,
        subresource,
        namespace,
        name: access.name.as_deref(),
    }
}

fn not_asked(plugin: &str, error: &ClusterError) {
    tracing::debug!(
        plugin,
        "whether the plugin is granted what it needs could not be asked: {error}"
    );
}

fn count(missing: &[Missing]) -> String {
    match missing.len() {
        1 => "1 right".to_owned(),
        many => format!("{many} rights"),
    }
}

/// What is missing, and the rules that would grant it.
fn report(plugin: &str, missing: &[Missing]) -> String {
    let rows: Vec<[String; 5]> = missing
        .iter()
        .map(|missing| {
            let access = &missing.access;
            let mut resource = access.resource.clone();
            if !access.group.is_empty() {
                resource = match resource.split_once('/') {
                    Some((plural, sub)) => format!("{plural}.{}/{sub}", access.group),
                    None => format!("{resource}.{}", access.group),
                };
            }
            if let Some(name) = &access.name {
                resource = format!("{resource} {name}");
            }
            [
                plugin.to_owned(),
                access.verb.clone(),
                resource,
                missing.namespace.clone().unwrap_or_else(|| "*".to_owned()),
                missing.why.clone(),
            ]
        })
        .collect();
    let heads = ["PLUGIN", "VERB", "RESOURCE", "NAMESPACE", "NEEDED BY"];
    let mut text = table(heads, &rows);
    for (namespace, accesses) in by_place(missing) {
        let place = match namespace {
            None => "a ClusterRole".to_owned(),
            Some(namespace) => format!("a Role in namespace {namespace}"),
        };
        // Serialising plain texts does not fail.
        let rules = serde_yaml_ng::to_string(&rules(&accesses)).unwrap_or_default();
        text.push_str(&format!(
            "\n# rules of {place} that grant it (`vmhost rbac` prints all of them)\n{}",
            rules.trim_end()
        ));
    }
    text
}

fn by_place(missing: &[Missing]) -> BTreeMap<Option<&str>, BTreeSet<Access>> {
    let mut places: BTreeMap<Option<&str>, BTreeSet<Access>> = BTreeMap::new();
    for missing in missing {
        places
            .entry(missing.namespace.as_deref())
            .or_default()
            .insert(missing.access.clone());
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permissions::names::offline;
    use crate::permissions::tests::app;

    fn all(options: &Options) -> Vec<Missing> {
        needs(&app(), options)
            .iter()
            .flat_map(|need| questions(need, &offline(&app(), &need.kind)))
            .collect()
    }

    #[test]
    fn each_namespace_is_a_question_of_its_own() {
        let options = Options {
            namespaces: vec!["x".into(), "y".into()],
            ..Options::default()
        };
        let questions = all(&options);
        let of = |resource: &str| -> Vec<Option<&str>> {
            questions
                .iter()
                .filter(|question| {
                    question.access.resource == resource && question.access.verb == "get"
                })
                .map(|question| question.namespace.as_deref())
                .collect()
        };
        assert_eq!(of("apps"), [Some("x"), Some("y")]);
        assert_eq!(of("nodes"), [None]);
        assert_eq!(of("configmaps"), [Some("a"), Some("b")]);
    }

    #[test]
    fn the_report_is_a_table_with_rules() {
        let mut missing = all(&Options::default());
        missing
            .retain(|missing| missing.why == "permissions[1]" || missing.why == "permissions[2]");
        assert_eq!(
            report("app", &missing),
            "\
PLUGIN   VERB     RESOURCE                  NAMESPACE   NEEDED BY
app      patch    apps.example.com/status   *           permissions[1]
app      get      configmaps                a           permissions[2]
app      get      configmaps                b           permissions[2]
app      delete   configmaps                a           permissions[2]
app      delete   configmaps                b           permissions[2]
# rules of a ClusterRole that grant it (`vmhost rbac` prints all of them)
- apiGroups:
  - example.com
  resources:
  - apps/status
  verbs:
  - patch
# rules of a Role in namespace a that grant it (`vmhost rbac` prints all of them)
- apiGroups:
  - ''
  resources:
  - configmaps
  verbs:
  - delete
  - get
# rules of a Role in namespace b that grant it (`vmhost rbac` prints all of them)
- apiGroups:
  - ''
  resources:
  - configmaps
  verbs:
  - delete
  - get"
        );
    }

    #[test]
    fn a_subresource_is_asked_apart() {
        let missing = all(&Options::default());
        let status = missing
            .iter()
            .find(|missing| missing.access.resource == "apps/status")
            .unwrap();
        let question = wire(&status.access, None);
        assert_eq!(
            (question.resource, question.subresource, question.verb),
            ("apps", Some("status"), "patch")
        );
    }
}
