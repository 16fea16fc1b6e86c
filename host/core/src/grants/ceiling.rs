//! What a plugin may be granted at most, and what of a description stays below several such limits.
//!
//! Pure functions of plain data. This module must not know objects that set limits, nor clusters.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::description::{ControllerDescription, Description, Permission, Verb, Watched};
use crate::key::Gvk;

/// In the place of a name: all namespaces, groups, kinds, subresources or hosts.
pub const ALL: &str = "*";

/// What may be granted at most: `grants` of a `Plugin` and of a `PluginPolicy`. What is left out is
/// not limited, except for what reaches beyond namespaces: HTTP, webhooks and member clusters have
/// to be allowed by each policy, and by one at least.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Ceiling {
    /// The namespaces; `*` for all.
    pub namespaces: Option<Vec<String>>,
    /// The kinds that may be read.
    pub reads: Option<Vec<Kinds>>,
    /// What effects may write, and on which kinds finalizers may be put, which takes `patch`.
    pub permissions: Option<Vec<Writes>>,
    /// The hosts that HTTP requests may go to: a name, or `*.DOMAIN`.
    pub http: Option<Vec<String>>,
    /// Whether it may answer webhooks and conversions, which concern the whole cluster.
    pub webhooks: Option<bool>,
    /// Whether it may work in member clusters.
    pub clusters: Option<bool>,
}

/// Kinds of API groups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Kinds {
    /// The API groups: empty for the core group, `*` for all.
    pub groups: Vec<String>,
    /// The kinds; `*` for all.
    pub kinds: Vec<String>,
}

/// What effects may do to kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Writes {
    /// The API groups: empty for the core group, `*` for all.
    pub groups: Vec<String>,
    /// The kinds; `*` for all.
    pub kinds: Vec<String>,
    /// The verbs.
    pub verbs: Vec<Verb>,
    /// The subresources; `*` for all. Left out: the object itself and all subresources.
    pub subresources: Option<Vec<String>>,
}

/// What of a description stays below all ceilings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Met {
    /// The namespaces that the plugin works in. Empty for all.
    pub namespaces: Vec<String>,
    /// What its effects may write.
    pub permissions: Vec<Permission>,
    /// What it needs and is not granted, one line per item.
    pub denied: Vec<String>,
    /// What it asked for and goes without, one line per item.
    pub narrowed: Vec<String>,
}

/// The namespaces that all ceilings allow. `None` for all.
type Namespaces = Option<BTreeSet<String>>;

impl Met {
    /// Meets a description with a plugin's own ceiling and those of policies. `home` is the
    /// plugin's own namespace, which is its limit unless its own ceiling says something else.
    pub fn of(description: &Description, home: &str, own: &Ceiling, policies: &[Ceiling]) -> Self {
        let default = [home.to_owned()];
        let wanted = own.namespaces.as_deref().unwrap_or(&default);
        let namespaces = policies
            .iter()
            .filter_map(|policy| policy.namespaces.as_deref())
            .fold(set(wanted), |met, next| intersect(met, set(next)));
        let mut met = Self {
            namespaces: namespaces.iter().flatten().cloned().collect(),
            ..Self::default()
        };
        if namespaces.as_ref().is_some_and(BTreeSet::is_empty) {
            met.denied.push("work in any namespace".to_owned());
            return met;
        }
        let all: Vec<&Ceiling> = std::iter::once(own).chain(policies).collect();
        met.reads(description, &all);
        for permission in &description.permissions {
            met.permission(permission, &namespaces, &all);
        }
        met.finalizers(description, &all);
        met.http(description, own, policies);
        met.claims(description, own, policies);
        met.members(description, home);
        met
    }

    fn reads(&mut self, description: &Description, all: &[&Ceiling]) {
        let controllers = description.controllers.iter();
        let watched = controllers.flat_map(ControllerDescription::kinds);
        let watched = watched.map(|(_, watched)| watched);
        let reviewed = description.reviews().flat_map(|(_, _, reads)| reads);
        let kinds: BTreeSet<Gvk> = watched.chain(reviewed).map(Watched::gvk).collect();
        for kind in kinds {
            let allows = |ceiling: &&Ceiling| {
                let mut reads = ceiling.reads.iter().flatten();
                ceiling.reads.is_none() || reads.any(|of| has(&of.groups, &of.kinds, &kind))
            };
            if !all.iter().all(allows) {
                self.denied.push(format!("read {kind}"));
            }
        }
    }

    fn permission(&mut self, wanted: &Permission, namespaces: &Namespaces, all: &[&Ceiling]) {
        let mut lost = Vec::new();
        let declared = (!wanted.namespaces.is_empty()).then(|| set(&wanted.namespaces));
        let within = match declared {
            None => namespaces.clone(),
            Some(declared) => intersect(declared, namespaces.clone()),
        };
        for namespace in &wanted.namespaces {
            if within
                .as_ref()
                .is_some_and(|within| !within.contains(namespace))
            {
                lost.push(format!("write {} in namespace {namespace}", wanted.gvk()));
            }
        }
        let each = match wanted.subresources.as_slice() {
            [] => vec![None],
            some => some.iter().map(|name| Some(name.as_str())).collect(),
        };
        for subresource in each {
            let kind = wanted.gvk();
            let allows = |verb: &Verb| all.iter().all(|of| of.writes(&kind, *verb, subresource));
            let (kept, gone): (Vec<Verb>, Vec<Verb>) =
                wanted.verbs.iter().copied().partition(allows);
            let below = subresource.map_or_else(String::new, |name| format!("/{name}"));
            let line = |verb: &Verb| format!("{} {}{below}", verb.as_str(), wanted.gvk());
            lost.extend(gone.iter().map(line));
            let is_nowhere = within.as_ref().is_some_and(BTreeSet::is_empty);
            if !kept.is_empty() && !is_nowhere {
                self.permissions.push(Permission {
                    verbs: kept,
                    subresources: subresource.iter().map(|name| (*name).to_owned()).collect(),
                    namespaces: within.iter().flatten().cloned().collect(),
                    ..wanted.clone()
                });
            }
        }
        match wanted.optional {
            true => self.narrowed.extend(lost),
            false => self.denied.extend(lost),
        }
    }

    /// The host puts a controller's finalizer on its primary kind, which is a write like another.
    fn finalizers(&mut self, description: &Description, all: &[&Ceiling]) {
        for controller in &description.controllers {
            let Some(primary) = &controller.primary else {
                continue;
            };
            let kind = primary.gvk();
            let allows = |of: &&Ceiling| of.writes(&kind, Verb::Patch, None);
            if controller.finalizer.is_some() && !all.iter().all(allows) {
                let line = format!("patch {kind}, for the finalizer of {}", controller.name);
                self.denied.push(line);
            }
        }
    }

    /// A host of HTTP requests has to be named by a policy. One that names none allows none, so
    /// that another policy never widens what it says.
    fn http(&mut self, description: &Description, own: &Ceiling, policies: &[Ceiling]) {
        for grant in &description.http {
            let names = |ceiling: &Ceiling| {
                let mut hosts = ceiling.http.iter().flatten();
                hosts.any(|host| covers(host, &grant.host))
            };
            let is_said = !policies.is_empty() && policies.iter().all(names);
            if !is_said || (own.http.is_some() && !names(own)) {
                let line = format!("send HTTP requests to {}", grant.host);
                self.denied.push(line);
            }
        }
    }

    /// What concerns the whole cluster, or other clusters, has to be allowed by each policy, and by
    /// one at least.
    fn claims(&mut self, description: &Description, own: &Ceiling, policies: &[Ceiling]) {
        let mut claim = |is_wanted: bool, line: &str, of: fn(&Ceiling) -> Option<bool>| {
            let is_said = policies.iter().all(|policy| of(policy) == Some(true));
            let is_allowed = !policies.is_empty() && is_said && of(own) != Some(false);
            if is_wanted && !is_allowed {
                self.denied.push(line.to_owned());
            }
        };
        let reviews = description.answers_reviews();
        claim(reviews, "answer webhooks or conversions", |of| of.webhooks);
        let elsewhere = works_in_members(description);
        claim(elsewhere, "work in member clusters", |of| of.clusters);
    }

    /// In member clusters no access review is made, so that a plugin stays in the namespace there
    /// that has the name of its own.
    fn members(&mut self, description: &Description, home: &str) {
        if works_in_members(description) && self.namespaces != [home] {
            self.denied.push(format!(
                "work in namespaces of member clusters besides {home}"
            ));
        }
    }
}

impl Ceiling {
    fn writes(&self, kind: &Gvk, verb: Verb, subresource: Option<&str>) -> bool {
        let Some(permissions) = &self.permissions else {
            return true;
        };
        permissions.iter().any(|of| {
            let below = match (&of.subresources, subresource) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(names), Some(name)) => names.iter().any(|of| of == ALL || of == name),
            };
            below && of.verbs.contains(&verb) && has(&of.groups, &of.kinds, kind)
        })
    }
}

fn works_in_members(description: &Description) -> bool {
    let mut controllers = description.controllers.iter();
    controllers.any(|controller| !controller.clusters.is_home())
}

fn has(groups: &[String], kinds: &[String], kind: &Gvk) -> bool {
    groups.iter().any(|of| of == ALL || *of == kind.group)
        && kinds.iter().any(|of| of == ALL || *of == kind.kind)
}

/// Returns whether a pattern of hosts covers a host, which may be a pattern itself.
fn covers(pattern: &str, host: &str) -> bool {
    pattern == ALL
        || pattern == host
        || pattern.strip_prefix("*.").is_some_and(|domain| {
            let before = host.strip_suffix(domain);
            before.is_some_and(|before| before.ends_with('.') && before.len() > 1)
        })
}

fn set(names: &[String]) -> Namespaces {
    let all = names.iter().any(|name| name == ALL);
    (!all).then(|| names.iter().cloned().collect())
}

fn intersect(one: Namespaces, other: Namespaces) -> Namespaces {
    match (one, other) {
        (None, some) | (some, None) => some,
        (Some(one), Some(other)) => Some(one.intersection(&other).cloned().collect()),
    }
}

#[cfg(test)]
mod tests;
