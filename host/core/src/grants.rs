//! What a plugin may do, and whether an effect or a new description stays within that.
//!
//! Until an operator writes grants, the grants are what the first generation declared. This module
//! must not know how an effect is carried out.

use std::collections::BTreeSet;
use std::fmt;

use crate::description::clusters::covers;
use crate::description::{Description, HttpGrant, Permission, Verb, Watched};
use crate::effect::Effect;
use crate::key::{Gvk, ObjectKey};

pub mod ceiling;
mod reviews;

use reviews::{Answered, answered};

/// The permissions and kinds that a plugin was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grants {
    permissions: Vec<Permission>,
    watched: Vec<Watched>,
    claims: Vec<String>,
    answered: Vec<Answered>,
    /// The settings that only the host sees.
    hidden: BTreeSet<String>,
}

/// An effect outside the grants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// Index of the effect in the turn's effects.
    pub effect: u32,
    /// What is not granted, or why the effect is invalid; names verb and kind.
    pub reason: String,
}

/// The access that a write needs, or that a permission gives.
struct Access<'a> {
    verb: Verb,
    kind: &'a Gvk,
    /// `None` for the object itself.
    subresource: Option<&'a str>,
    /// `None` for a cluster-scoped kind, or for all namespaces.
    namespace: Option<&'a str>,
}

/// What a new description asks for beyond the grants, one line per item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wider(pub Vec<String>);

impl Grants {
    /// The grants that a description asks for.
    pub fn of(description: &Description) -> Self {
        Self {
            permissions: description.permissions.clone(),
            watched: watched_kinds(description),
            claims: claims(description),
            answered: answered(description),
            hidden: description.hidden_settings().map(str::to_owned).collect(),
        }
    }

    /// These grants, with these permissions in place of those that the description declares.
    #[must_use]
    pub fn narrowed(mut self, permissions: Vec<Permission>) -> Self {
        self.permissions = permissions;
        self
    }

    /// Checks that the description asks for nothing beyond these grants. The error lists what is
    /// not granted.
    pub fn check_description(&self, description: &Description) -> Result<(), Wider> {
        let mut wider: Vec<String> = watched_kinds(description)
            .into_iter()
            .filter(|wanted| !self.watched.iter().any(|granted| shows(granted, wanted)))
            .map(|wanted| format!("watch {}", seen(&wanted)))
            .collect();
        wider.extend(
            claims(description)
                .into_iter()
                .filter(|claim| !self.claims.iter().any(|granted| covers(granted, claim))),
        );
        let is_new = |wanted: &Answered| !self.answered.iter().any(|of| of.covers(wanted));
        let answered = answered(description).into_iter();
        wider.extend(answered.filter(is_new).map(|new| new.to_string()));
        for permission in &description.permissions {
            wider.extend(self.missing_of(permission));
        }
        // A header that is not there any more would show its setting to the policy.
        let is_hidden = |name: &str| description.hidden_settings().any(|hidden| hidden == name);
        let told = self.hidden.iter().filter(|name| !is_hidden(name));
        wider.extend(told.map(|name| format!("see the setting {name}, so far of a header only")));
        if wider.is_empty() {
            Ok(())
        } else {
            Err(Wider(wider))
        }
    }

    /// Checks that all of these effects are granted. Returns what each effect writes, as
    /// [`Effect::key`] does; the error names the first effect that is not granted.
    pub fn check_effects(&self, effects: &[Effect]) -> Result<Vec<Option<ObjectKey>>, Denied> {
        let checked = effects.iter().enumerate().map(|(index, effect)| {
            self.check_effect(effect).map_err(|reason| Denied {
                effect: index as u32,
                reason,
            })
        });
        checked.collect()
    }

    fn check_effect(&self, effect: &Effect) -> Result<Option<ObjectKey>, String> {
        let verbs: &[Verb] = match effect {
            Effect::Apply(apply) if apply.create_if_absent => &[Verb::Patch, Verb::Create],
            Effect::Apply(_) | Effect::Patch(_) => &[Verb::Patch],
            Effect::Create(_) => &[Verb::Create],
            Effect::Delete(_) => &[Verb::Delete],
            Effect::Event(_) => &[],
            Effect::Other(other) => {
                return Err(format!("effect {:?} is unknown to this host", other.name));
            }
        };
        let Some(key) = effect.key()? else {
            return Ok(None);
        };
        for &verb in verbs {
            let access = Access {
                verb,
                kind: &key.kind,
                subresource: effect.subresource(),
                namespace: key.name.namespace(),
            };
            if !self.allow(&access) {
                return Err(format!(
                    "the plugin's description has no permission to {access}"
                ));
            }
        }
        Ok(Some(key))
    }

    fn allow(&self, access: &Access<'_>) -> bool {
        self.permissions
            .iter()
            .any(|permission| permission.allows(access))
    }

    fn missing_of(&self, permission: &Permission) -> Vec<String> {
        let (kind, mut missing) = (permission.gvk(), Vec::new());
        for &verb in &permission.verbs {
            for subresource in each_or_none(&permission.subresources) {
                for namespace in each_or_none(&permission.namespaces) {
                    let access = Access {
                        verb,
                        kind: &kind,
                        subresource,
                        namespace,
                    };
                    if !self.allow(&access) {
                        missing.push(access.to_string());
                    }
                }
            }
        }
        missing
    }
}

impl Permission {
    fn allows(&self, access: &Access<'_>) -> bool {
        self.kind == access.kind.kind
            && self.group == access.kind.group
            && self.version == access.kind.version
            && self.verbs.contains(&access.verb)
            && match access.subresource {
                None => self.subresources.is_empty(),
                Some(subresource) => self.subresources.iter().any(|of| of == subresource),
            }
            // Cluster-scoped objects are in no namespace: only a permission without namespaces
            // covers them.
            && (self.namespaces.is_empty()
                || access
                    .namespace
                    .is_some_and(|namespace| self.namespaces.iter().any(|of| of == namespace)))
    }
}

fn watched_kinds(description: &Description) -> Vec<Watched> {
    let controllers = description.controllers.iter();
    controllers
        .flat_map(|controller| controller.kinds().map(|(_, watched)| watched))
        .chain(description.reviews().flat_map(|(_, _, reads)| reads))
        .cloned()
        .collect()
}

/// Returns whether a grant to watch `granted` covers `wanted`. Which fields of an object are kept
/// is a question of memory, not of access.
fn shows(granted: &Watched, wanted: &Watched) -> bool {
    let within =
        |granted: &Option<String>, wanted: &Option<String>| granted.is_none() || granted == wanted;
    granted.gvk() == wanted.gvk()
        && within(&granted.label_selector, &wanted.label_selector)
        && within(&granted.field_selector, &wanted.field_selector)
        && (!granted.metadata_only || wanted.metadata_only)
}

fn seen(watched: &Watched) -> String {
    let mut text = watched.gvk().to_string();
    let selectors = [&watched.label_selector, &watched.field_selector];
    for selector in selectors.into_iter().flatten() {
        text.push_str(&format!(" ({selector})"));
    }
    if watched.metadata_only {
        text.push_str(" (metadata only)");
    }
    text
}

/// What the description asks for besides watches and permissions, as readable lines.
fn claims(description: &Description) -> Vec<String> {
    let finalizers = description.controllers.iter().filter_map(|controller| {
        let finalizer = controller.finalizer.as_deref()?;
        Some(format!("finalizer {finalizer} on {}", controller.kind()))
    });
    let definitions = description.definitions().iter().filter_map(|definition| {
        let name = definition.pointer("/metadata/name")?.as_str()?;
        Some(format!("install CustomResourceDefinition {name}"))
    });
    let http = description.http.iter().flat_map(HttpGrant::claims);
    let controllers = description.controllers.iter();
    let mut clusters: Vec<String> = controllers
        .filter_map(|controller| controller.clusters.claim())
        .collect();
    clusters.dedup();
    let rest = http.chain(clusters);
    finalizers.chain(definitions).chain(rest).collect()
}

/// Each item of the list; a single `None` for an empty list.
fn each_or_none(list: &[String]) -> Vec<Option<&str>> {
    if list.is_empty() {
        return vec![None];
    }
    list.iter().map(|of| Some(of.as_str())).collect()
}

/// Formats an access as `patch ConfigMap.v1 in namespace a`.
impl fmt::Display for Access<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb.as_str(), self.kind)?;
        if let Some(subresource) = self.subresource {
            write!(f, "/{subresource}")?;
        }
        match self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
