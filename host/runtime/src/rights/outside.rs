//! Which rights a plugin needs that it may not have although the host has them: a user who may only
//! create a `Plugin` must not get the host's rights by it.
//!
//! Without a service account, a plugin stays in its own namespace. With one, access reviews of that
//! account decide. This module must not know what is done about a missing right.

use futures_util::{StreamExt, TryStreamExt, stream};
use vmhost_cluster::{AccessReviews, Error, ObjectPath, Reader};
use vmhost_core::group::GROUP;
use vmhost_core::{Description, Gvk};

use crate::config::terms::{Account, Terms};
use crate::rights::check::{Missing, names, questions};
use crate::rights::names::Name;
use crate::rights::needs::{Need, Options, Scope, needs};

/// The maximum number of access reviews in flight.
const AT_ONCE: usize = 8;

/// Groups whose objects decide what users and plugins may do, so that no plugin writes them with
/// the host's own rights: those of access control, and those that vmhost reports and remembers in.
const DECIDING: [&str; 2] = ["rbac.authorization.k8s.io", GROUP];

/// What a plugin needs and may not have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outside {
    /// The rights that are refused, a line for each.
    pub lines: Vec<String>,
    /// The kinds that the cluster does not serve, whose scope is not known: a line for each.
    pub unserved: Vec<String>,
}

/// The rights that a plugin needs under these terms, and that its service account does not have, or
/// without one those that are not in its own namespace `home`.
pub(crate) async fn outside(
    (reader, reviews): (&Reader, &AccessReviews),
    description: &Description,
    (terms, options): (&Terms, &Options),
    home: &str,
) -> Result<Outside, Error> {
    let mut description = description.clone();
    if let Some(permissions) = &terms.permissions {
        description.permissions.clone_from(permissions);
    }
    let needed = needed(&description, options, home);
    // What the plugin says about a kind's scope does not count, only what is served.
    description.setup = None;
    let names = names(reader, &description, &needed).await;
    let mut found = Outside::default();
    let mut asked = Vec::new();
    for need in &needed {
        let Some(name) = names.get(&need.kind) else {
            found.unserved.push(unserved(&need.kind));
            continue;
        };
        match &terms.account {
            None => found.lines.extend(beyond(need, name, home)),
            Some(_) => asked.extend(questions(need, name)),
        }
    }
    // The account is one of the home cluster: in members, every plugin stays in its namespace.
    for need in needed_there(&description, options) {
        if let Some(line) = names
            .get(&need.kind)
            .and_then(|name| beyond(&need, name, home))
        {
            found.lines.push(format!("{line}, in member clusters"));
        }
    }
    if let Some(account) = &terms.account {
        found.lines.extend(absent(reader, account).await?);
        found.lines.extend(refused(reviews, account, asked).await?);
    }
    for lines in [&mut found.lines, &mut found.unserved] {
        lines.sort();
        lines.dedup();
    }
    Ok(found)
}

/// What a plugin needs of the host. In its own namespace, the host reports about it by Events of
/// its own; elsewhere, that is a right as any other.
fn needed(description: &Description, options: &Options, home: &str) -> Vec<Need> {
    let mut needed = needs(description, options);
    needed.retain(|need| {
        let is_home = matches!(&need.scope, Scope::Only(namespaces) if namespaces == &[home]);
        need.why != "events" || !is_home
    });
    needed
}

/// What the controllers in member clusters need there.
fn needed_there(description: &Description, options: &Options) -> Vec<Need> {
    let mut there = description.clone();
    there
        .controllers
        .retain(|controller| !controller.clusters.is_home());
    if there.controllers.is_empty() {
        return Vec::new();
    }
    let mut needed = needs(&there, options);
    needed.retain(|need| need.why != "events");
    needed
}

/// Returns a line if the account does not exist. Its name may still be bound to roles, but a
/// deleted account has no rights, as for Pods.
async fn absent(reader: &Reader, account: &Account) -> Result<Option<String>, Error> {
    let Account { namespace, name } = account;
    let kind = Gvk::new("", "v1", "ServiceAccount");
    let resource = reader.resolve(&kind).await?;
    let found = match &resource {
        None => None,
        Some(resource) => {
            let path = ObjectPath {
                resource,
                namespace: Some(namespace),
                name: Some(name),
                subresource: None,
            };
            reader.get(&path).await?
        }
    };
    let line = || format!("the ServiceAccount {namespace}/{name} does not exist");
    Ok(found.is_none().then(line))
}

/// The line about a kind that is not served: whether it is namespaced is not known, and so not
/// which right a read of it needs.
fn unserved(kind: &Gvk) -> String {
    format!("{kind} is not served by the cluster yet")
}

/// Returns whether an access hands rights on: it changes access control, or makes a token.
fn hands_on(need: &Need) -> bool {
    let writes = !matches!(need.verb, "get" | "list" | "watch");
    let is_token = need.kind.group.is_empty()
        && need.kind.kind == "ServiceAccount"
        && need.subresource.as_deref() == Some("token");
    writes && (is_token || DECIDING.contains(&need.kind.group.as_str()))
}

/// Returns what of a need is not in the plugin's own namespace.
fn beyond(need: &Need, name: &Name, home: &str) -> Option<String> {
    let access = need.access(name);
    let what = format!("{} {}", need.verb, access.qualified());
    match &need.scope {
        _ if hands_on(need) => Some(format!("{what}: it would hand on the host's rights")),
        _ if !name.namespaced => Some(format!("{what}: it is in no namespace")),
        Scope::All => Some(format!("{what} in all namespaces")),
        Scope::Only(namespaces) => {
            let mut others = namespaces.iter().filter(|namespace| *namespace != home);
            let other = others.next()?;
            Some(format!("{what} in namespace {other}"))
        }
    }
}

/// Returns the rights that this account is refused, each as a line.
async fn refused(
    reviews: &AccessReviews,
    account: &Account,
    asked: Vec<Missing>,
) -> Result<Vec<String>, Error> {
    let (user, groups) = (account.user(), account.groups());
    let (user, groups) = (user.as_str(), groups.as_slice());
    stream::iter(asked)
        .map(|question| async move {
            let right = &question.right;
            let answer = reviews
                .ask_about(user, groups, &right.question(None))
                .await?;
            let line = (!answer.allowed).then(|| format!("{user} may not {right}"));
            Ok::<_, Error>(line)
        })
        .buffered(AT_ONCE)
        .try_filter_map(async |line| Ok(line))
        .try_collect()
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_namespace_is_inside() {
        let need = |scope| Need {
            verb: "get",
            kind: Gvk::new("", "v1", "Secret"),
            subresource: None,
            name: None,
            scope,
            why: String::new(),
        };
        let name = |namespaced| Name {
            plural: "secrets".to_owned(),
            namespaced,
        };
        let own = || Scope::Only(vec!["a".to_owned()]);
        assert_eq!(beyond(&need(own()), &name(true), "a"), None);
        for (scope, namespaced, text) in [
            (own(), false, "in no namespace"),
            (Scope::All, true, "in all namespaces"),
            (
                Scope::Only(vec!["a".to_owned(), "b".to_owned()]),
                true,
                "in namespace b",
            ),
        ] {
            let line = beyond(&need(scope), &name(namespaced), "a").unwrap();
            assert!(
                line.starts_with("get secrets") && line.ends_with(text),
                "{line}"
            );
        }
    }

    #[test]
    fn nobody_writes_who_may_do_what_with_the_hosts_rights() {
        let refused = |verb: &'static str, group: &str, kind: &str, subresource: Option<&str>| {
            let need = Need {
                verb,
                kind: Gvk::new(group, "v1", kind),
                subresource: subresource.map(str::to_owned),
                name: None,
                scope: Scope::Only(vec!["a".to_owned()]),
                why: String::new(),
            };
            let name = Name {
                plural: "x".to_owned(),
                namespaced: true,
            };
            beyond(&need, &name, "a").is_some()
        };
        let rbac = "rbac.authorization.k8s.io";
        assert!(refused("create", rbac, "RoleBinding", None));
        assert!(refused("patch", GROUP, "Plugin", Some("status")));
        assert!(refused("create", GROUP, "PluginRevision", None));
        assert!(refused("create", "", "ServiceAccount", Some("token")));
        assert!(!refused("create", "", "ServiceAccount", None));
        assert!(!refused("watch", GROUP, "Plugin", None));
        assert!(!refused("patch", "apps", "Deployment", Some("status")));
    }

    #[test]
    fn events_elsewhere_are_a_right_as_any_other() {
        let description = Description::parse(
            r#"{"apiVersion":"vmhost/v1","name":"p","controllers":[{"name":"c","timer":{"once":true}}]}"#,
        )
        .unwrap();
        let of = |namespaces: &[&str]| {
            let options = Options {
                namespaces: namespaces.iter().map(|name| (*name).to_owned()).collect(),
                ..Options::default()
            };
            needed(&description, &options, "a").len()
        };
        assert_eq!(of(&["a"]), 0);
        assert_eq!(of(&["b"]), 2);
        assert_eq!(of(&[]), 2);
    }

    #[test]
    fn in_member_clusters_every_account_stays_at_home() {
        let of = |clusters: &str| {
            let text = format!(
                r#"{{"apiVersion":"vmhost/v1","name":"p","controllers":[{{"name":"c","clusters":"{clusters}","primary":{{"version":"v1","kind":"Node"}}}}]}}"#
            );
            let description = Description::parse(&text).unwrap();
            needed_there(&description, &Options::default()).len()
        };
        assert_eq!(of("home"), 0);
        assert_eq!(of("members"), 3);
    }
}
