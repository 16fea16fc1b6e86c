//! Asks the API server what of a plugin's needs this host may not do, and says so in a table with the rules that would grant it.
//!
//! A check holds nothing up: at the start it runs beside everything else, and where reviews cannot be asked it says nothing. Rights change while a host runs,
//! so that no answer is kept: [`crate::rights::wait`] asks again for what is missing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};
use vmhost_cluster::{AccessReviews, Error, Reader};
use vmhost_core::{Description, Gvk};

use crate::deploy::slot::Slot;
use crate::rights::access::{Access, MissingRights, Right};
use crate::rights::names::{Name, builtin, carried};
use crate::rights::needs::{Need, Options, Scope, needs};
use crate::rights::rules::rules;
use crate::rights::wait::Rights;
use crate::table::table;

/// Questions that are open at a time.
const AT_ONCE: usize = 8;

/// A right that is not granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) right: Right,
    /// What the plugin needs it for.
    pub(crate) need: Need,
}

/// Looks at a plugin that has just been loaded, logs what is missing, and returns it.
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
            tracing::debug!(plugin, "all that the plugin needs is granted");
            missing
        }
        Ok(missing) => {
            tracing::warn!(
                plugin,
                "the plugin {plugin} lacks {}; what needs them waits until they are granted\n{}",
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

/// What is missing is asked for again, until it is granted or no generation of the plugin needs it.
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
                let needs = needs(slot.current().description(), &options);
                needs.iter().any(|of| of.same_access(&need))
            })
        });
    }
}

/// Is a new generation granted what it needs beyond the old one? What was missing already is not the new one's fault.
pub(crate) async fn at_swap(
    reader: &Reader,
    reviews: &AccessReviews,
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
    match missing(reader, reviews, after, &new).await {
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

/// How each kind is called: as the cluster says, else as the plugin's own definition says. Names of built-in kinds never change.
async fn names(reader: &Reader, description: &Description, needs: &[Need]) -> HashMap<Gvk, Name> {
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
            right: Right {
                access: need.access(name),
                namespace,
            },
            need: need.clone(),
        })
        .collect()
}

fn not_asked(plugin: &str, error: &Error) {
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
        // Serialising plain texts does not fail.
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
