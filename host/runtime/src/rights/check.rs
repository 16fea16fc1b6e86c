//! Asks the API server which of the rights that a plugin needs are missing, and reports them in a
//! table with the rules that would grant them.
//!
//! A check never blocks: at the start it runs in the background, and if access reviews are not
//! available it reports nothing. Rights change while a host runs, so no answer is kept:
//! [`crate::rights::wait`] asks again for missing rights.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};
use vmhost_cluster::{AccessReviews, Connection, Error, Reader};
use vmhost_core::{Description, Gvk};

use crate::deploy::slot::Slot;
use crate::rights::access::{Access, MissingRights, Right};
use crate::rights::names::{Name, builtin, carried};
use crate::rights::needs::{Need, Options, Scope, at_home, needs};
use crate::rights::rules::rules;
use crate::rights::wait::Rights;
use crate::table::table;

/// The maximum number of access reviews in flight.
const AT_ONCE: usize = 8;

/// A right that is not granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) right: Right,
    /// The reason why the plugin needs the right.
    pub(crate) need: Need,
}

/// Checks a newly loaded plugin, logs its missing rights, and returns them.
pub(crate) async fn at_start(
    reader: Reader,
    reviews: AccessReviews,
    description: Description,
    options: Options,
) -> Vec<Missing> {
    let plugin = &description.name;
    let needs = needs(&description, &options);
    match missing(&reader, &reviews, &description, &needs).await {
        Ok(missing) if missing.is_empty() => {
            tracing::debug!(plugin, "RBAC grants all rights that the plugin needs");
            missing
        }
        Ok(missing) => {
            tracing::warn!(
                plugin,
                "the plugin {plugin} lacks {}; work that needs them waits until they are granted\n{}",
                count(&missing),
                report(plugin, &missing)
            );
            missing
        }
        Err(error) => {
            not_asked(plugin, &error);
            Vec::new()
        }
    }
}

/// Checks a plugin that begins to work in a member, and logs its missing rights there.
pub(crate) async fn in_member(
    connection: &Connection,
    member: &str,
    description: &Description,
    options: &Options,
) {
    let plugin = &description.name;
    let (reader, reviews) = (connection.reader(), connection.access_reviews());
    let needs = needs(description, options);
    match missing(&reader, &reviews, description, &needs).await {
        Ok(missing) if missing.is_empty() => {}
        Ok(missing) => tracing::warn!(
            plugin,
            member,
            "the plugin {plugin} lacks {} in the cluster {member}; work that needs them waits until they are granted\n{}",
            count(&missing),
            report(plugin, &missing)
        ),
        Err(error) => not_asked(plugin, &error),
    }
}

/// Asks for missing rights again, until they are granted or no generation of the plugin needs them.
pub(crate) fn follow(
    rights: &Arc<Rights>,
    slot: &Arc<Slot>,
    options: &Options,
    missing: Vec<Missing>,
) {
    for Missing { right, need } in missing {
        let (slot, options) = (Arc::downgrade(slot), options.clone());
        rights.follow(right, move || {
            slot.upgrade().is_some_and(|slot| {
                let needs = needs(&at_home(slot.current().description()), &options);
                needs.iter().any(|of| of.same_access(&need))
            })
        });
    }
}

/// Returns an error if a new generation needs rights that are missing and that the old generation
/// did not need. Rights that were missing before do not count.
pub(crate) async fn at_swap(
    reader: &Reader,
    reviews: &AccessReviews,
    old: &[Need],
    after: &Description,
    mut new: Vec<Need>,
) -> Result<(), MissingRights> {
    new.retain(|need| !old.iter().any(|other| other.same_access(need)));
    if new.is_empty() {
        return Ok(());
    }
    match missing(reader, reviews, after, &new).await {
        Ok(missing) if missing.is_empty() => Ok(()),
        Ok(missing) => Err(MissingRights(format!(
            "the new version needs {} that vmhost lacks and the current version did not need\n{}",
            count(&missing),
            report(&after.name, &missing)
        ))),
        Err(error) => {
            not_asked(&after.name, &error);
            Ok(())
        }
    }
}

/// Returns the needs that are not granted, in order. A kind whose plural is unknown is left out: it
/// is not served yet, and its informer reports that.
pub(crate) async fn missing(
    reader: &Reader,
    reviews: &AccessReviews,
    description: &Description,
    needs: &[Need],
) -> Result<Vec<Missing>, Error> {
    let names = names(reader, description, needs).await;
    let questions: Vec<Missing> = needs
        .iter()
        .filter_map(|need| Some((need, names.get(&need.kind)?)))
        .flat_map(|(need, name)| questions(need, name))
        .collect();
    stream::iter(questions)
        .map(|question| async move {
            let answer = reviews.ask(&question.right.question(None)).await?;
            Ok((!answer.allowed).then_some(question))
        })
        .buffered(AT_ONCE)
        .try_filter_map(async |missing| Ok(missing))
        .try_collect()
        .await
}

/// The resource name of each kind: from the cluster, else from the plugin's own definition. Names
/// of built-in kinds never change.
pub(crate) async fn names(
    reader: &Reader,
    description: &Description,
    needs: &[Need],
) -> HashMap<Gvk, Name> {
    let kinds: BTreeSet<Gvk> = needs.iter().map(|need| need.kind.clone()).collect();
    stream::iter(kinds)
        .map(|kind| async move {
            if let Some(name) = builtin(&kind) {
                return Some((kind, name));
            }
            let served = match reader.resolve(&kind).await {
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

/// One question per namespace.
pub(crate) fn questions(need: &Need, name: &Name) -> Vec<Missing> {
    let namespaces: Vec<Option<String>> = match &need.scope {
        Scope::Only(namespaces) if name.namespaced => {
            namespaces.iter().cloned().map(Some).collect()
        }
        _ => vec![None],
    };
    namespaces
        .into_iter()
        .map(|namespace| Missing {
            right: Right {
                access: need.access(name),
                namespace,
                user: None,
            },
            need: need.clone(),
        })
        .collect()
}

fn not_asked(plugin: &str, error: &Error) {
    tracing::debug!(
        plugin,
        "cannot check whether RBAC grants the plugin's rights: {error}"
    );
}

fn count(missing: &[Missing]) -> String {
    match missing.len() {
        1 => "1 right".to_owned(),
        many => format!("{many} rights"),
    }
}

/// A table of the missing rights, and the rules that would grant them.
fn report(plugin: &str, missing: &[Missing]) -> String {
    let rows: Vec<[String; 5]> = missing
        .iter()
        .map(|Missing { right, need }| {
            let mut resource = right.access.qualified();
            if let Some(name) = &right.access.name {
                resource = format!("{resource} {name}");
            }
            [
                plugin.to_owned(),
                right.access.verb.clone(),
                resource,
                right.namespace.clone().unwrap_or_else(|| "*".to_owned()),
                need.why.clone(),
            ]
        })
        .collect();
    let heads = ["PLUGIN", "VERB", "RESOURCE", "NAMESPACE", "NEEDED BY"];
    let mut text = table(heads, &rows);
    for (namespace, accesses) in by_namespace(missing) {
        let role = match namespace {
            None => "a ClusterRole".to_owned(),
            Some(namespace) => format!("a Role in namespace {namespace}"),
        };
        // Plain texts always serialise.
        let rules = serde_yaml_ng::to_string(&rules(&accesses)).unwrap_or_default();
        text.push_str(&format!(
            "\n# rules of {role} that grant it (`vmhost rbac` prints all of them)\n{}",
            rules.trim_end()
        ));
    }
    text
}

fn by_namespace(missing: &[Missing]) -> BTreeMap<Option<&str>, BTreeSet<Access>> {
    let mut namespaces: BTreeMap<Option<&str>, BTreeSet<Access>> = BTreeMap::new();
    for Missing { right, .. } in missing {
        namespaces
            .entry(right.namespace.as_deref())
            .or_default()
            .insert(right.access.clone());
    }
    namespaces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rights::names::offline;
    use crate::rights::needs::tests::app;

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
                .map(|question| &question.right)
                .filter(|right| right.access.resource == resource && right.access.verb == "get")
                .map(|right| right.namespace.as_deref())
                .collect()
        };
        assert_eq!(of("apps"), [Some("x"), Some("y")]);
        assert_eq!(of("nodes"), [None]);
        assert_eq!(of("configmaps"), [Some("a"), Some("b")]);
    }

    #[test]
    fn the_report_is_a_table_with_rules() {
        let mut missing = all(&Options::default());
        missing.retain(|missing| {
            ["permissions[1]", "permissions[2]"].contains(&missing.need.why.as_str())
        });
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
}
