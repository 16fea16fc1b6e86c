//! Derives the verbs, kinds and namespaces that a plugin needs from its description. Plain data:
//! other modules ask for the rights or grant them.
//!
//! This module owns which parts count under which flags and terms; `list` knows what each part
//! needs.

use vmhost_core::Description;

use crate::config::Config;
use crate::config::terms::Terms;

mod list;
mod need;

pub use list::{Lease, Webhooks};
pub use need::Need;
pub(crate) use need::Scope;

use list::Needs;

/// The host's flags that affect the needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The values of `--namespace`. Empty for all namespaces.
    pub namespaces: Vec<String>,
    /// The Lease of the leader election. `None` without an election.
    pub lease: Option<Lease>,
    /// Whether the host installs the definitions that the plugin carries.
    pub install_crds: bool,
    /// How the host serves webhooks. `None` if it serves none.
    pub webhooks: Option<Webhooks>,
    /// Whether the host asks the API server about its callers.
    pub reviews_callers: bool,
}

impl Options {
    /// The options of this host, without an election.
    pub fn of(config: &Config) -> Self {
        Self {
            namespaces: config.namespaces.clone(),
            lease: None,
            install_crds: config.install_crds,
            webhooks: None,
            reviews_callers: false,
        }
    }

    /// The options for a plugin under these terms.
    pub(crate) fn under(config: &Config, terms: &Terms) -> Self {
        Self {
            namespaces: terms.namespaces(&config.namespaces).to_vec(),
            install_crds: config.install_crds && !terms.is_granted,
            ..Self::of(config)
        }
    }
}

/// Returns what the host does itself for a plugin under these terms. Writes that are sent as a
/// service account need that account's rights and not the host's.
pub(crate) fn under(description: &Description, terms: &Terms) -> Description {
    let mut description = description.clone();
    match (&terms.account, &terms.permissions) {
        (Some(_), _) => description.permissions.clear(),
        (None, Some(permissions)) => description.permissions.clone_from(permissions),
        (None, None) => {}
    }
    description
}

/// Returns the part of a description that concerns the host's own cluster. If all controllers are
/// in members, no effect is written at home.
pub(crate) fn at_home(description: &Description) -> Description {
    let mut description = description.clone();
    let has_some = !description.controllers.is_empty();
    description
        .controllers
        .retain(|controller| controller.clusters.is_home());
    if has_some && description.controllers.is_empty() {
        description.permissions.clear();
    }
    description
}

/// Returns the part of a description that concerns a member in which the controllers of these names
/// work.
pub(crate) fn in_member(description: &Description, controllers: &[&str]) -> Description {
    let mut description = description.clone();
    let works = |name: &str| controllers.contains(&name);
    description.controllers.retain(|of| works(&of.name));
    // Reviews, the Secrets of headers and definitions are home's.
    description.webhooks.clear();
    description.conversions.clear();
    description.http.clear();
    description
}

/// Returns every access that the host uses for a plugin, in the order of the description and
/// without duplicates.
pub fn needs(description: &Description, options: &Options) -> Vec<Need> {
    let scope = match options.namespaces.as_slice() {
        [] => Scope::All,
        some => Scope::Only(some.to_vec()),
    };
    let mut list = Needs::default();
    for (index, controller) in description.controllers.iter().enumerate() {
        list.controller(&format!("controllers[{index}]"), controller, &scope);
    }
    for (at, _, reads) in description.reviews() {
        list.reads(&at, reads, &scope);
    }
    list.permissions(description, &scope);
    list.headers(description);
    list.events(&scope);
    if options.install_crds {
        list.definitions(description);
    }
    if let Some(webhooks) = &options.webhooks {
        list.webhooks(description, webhooks);
    }
    if let Some(lease) = &options.lease {
        list.lease(lease);
    }
    if options.reviews_callers {
        list.callers();
    }
    list.0
}

/// Returns every access that serving a plugin's webhooks needs, besides what they read.
pub fn webhook_needs(description: &Description, webhooks: &Webhooks) -> Vec<Need> {
    let mut list = Needs::default();
    list.webhooks(description, webhooks);
    list.0
}

/// Returns the accesses that only some clusters require. With the admission plugin
/// `OwnerReferencesPermissionEnforcement`, a client that creates an object with a blocking owner
/// reference needs `update` on the owner's `finalizers`.
pub fn owner_needs(description: &Description, options: &Options) -> Vec<Need> {
    let scope = match options.namespaces.as_slice() {
        [] => Scope::All,
        some => Scope::Only(some.to_vec()),
    };
    let mut list = Needs::default();
    for (index, controller) in description.controllers.iter().enumerate() {
        if let Some(primary) = controller.primary.as_ref()
            && !controller.owns.is_empty()
        {
            list.add(Need {
                verb: "update",
                kind: primary.gvk(),
                subresource: Some("finalizers".to_owned()),
                name: None,
                scope: scope.clone(),
                why: format!("controllers[{index}].owns"),
            });
        }
    }
    list.0
}

#[cfg(test)]
pub(crate) mod tests;
