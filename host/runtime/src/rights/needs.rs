//! What a plugin needs of the API server: from its description to verbs, kinds and namespaces. Plain data; who asks or grants is elsewhere.

use vmhost_core::{ControllerDescription, Description, Gvk, Role, Verb};

use crate::config::Config;
use crate::rights::access::Access;
use crate::rights::names::Name;

/// One access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// As RBAC writes it.
    pub(crate) verb: &'static str,
    /// The kind.
    pub kind: Gvk,
    /// `status`, `scale`, ...; none: the object itself.
    pub(crate) subresource: Option<String>,
    /// Only the object of this name; none: all.
    pub(crate) name: Option<String>,
    pub(crate) scope: Scope,
    /// The field of the description, or the flag, that asks for it.
    pub(crate) why: String,
}

/// Namespaces of an access. Means nothing for a cluster-scoped kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All.
    All,
    /// These.
    Only(Vec<String>),
}

/// How the host is run, as far as it decides what is needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `--namespace`; none: all.
    pub namespaces: Vec<String>,
    /// Where and under which name the host elects a leader, if it does.
    pub lease: Option<Lease>,
    /// Does it install the definitions that the plugin carries?
    pub install_crds: bool,
}

impl Options {
    /// As this host is run, without an election.
    pub fn of(config: &Config) -> Self {
        Self {
            namespaces: config.namespaces.clone(),
            lease: None,
            install_crds: config.install_crds,
        }
    }
}

/// A Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Everything that the host asks of the API server for a plugin, in the order of the description; nothing twice.
pub fn needs(description: &Description, options: &Options) -> Vec<Need> {
    let scope = match options.namespaces.as_slice() {
        [] => Scope::All,
        some => Scope::Only(some.to_vec()),
    };
    let mut list = Needs::default();
    for (index, controller) in description.controllers.iter().enumerate() {
        list.controller(&format!("controllers[{index}]"), controller, &scope);
    }
    list.permissions(description, &scope);
    list.events(&scope);
    if options.install_crds {
        list.definitions(description);
    }
    if let Some(lease) = &options.lease {
        list.lease(lease);
    }
    list.0
}

/// What only some clusters ask for: with the admission plugin `OwnerReferencesPermissionEnforcement`, whoever makes an object whose owner reference blocks the
/// owner's deletion may update the owner's `finalizers`.
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

impl Need {
    /// What it means for a kind of this name.
    pub(crate) fn access(&self, name: &Name) -> Access {
        Access {
            group: self.kind.group.clone(),
            resource: match &self.subresource {
                Some(subresource) => format!("{}/{subresource}", name.plural),
                None => name.plural.clone(),
            },
            name: self.name.clone(),
            verb: self.verb.to_owned(),
        }
    }

    /// The same access, whoever asks for it?
    pub(crate) fn same_access(&self, other: &Self) -> bool {
        let of = |need: &Self| {
            let Self {
                verb,
                kind,
                subresource,
                name,
                scope,
                why: _,
            } = need.clone();
            (verb, kind, subresource, name, scope)
        };
        of(self) == of(other)
    }
}

#[derive(Default)]
struct Needs(Vec<Need>);

impl Needs {
    fn add(&mut self, need: Need) {
        if !self.0.iter().any(|other| other.same_access(&need)) {
            self.0.push(need);
        }
    }

    /// These verbs on all objects of a kind.
    fn objects(&mut self, verbs: &[&'static str], kind: &Gvk, scope: &Scope, why: &str) {
        for verb in verbs {
            self.add(Need {
                verb,
                kind: kind.clone(),
                subresource: None,
                name: None,
                scope: scope.clone(),
                why: why.to_owned(),
            });
        }
    }

    fn controller(&mut self, at: &str, controller: &ControllerDescription, scope: &Scope) {
        let mut last = None;
        let mut index = 0;
        for (role, watched) in controller.kinds() {
            index = if last == Some(role) { index + 1 } else { 0 };
            last = Some(role);
            let why = match role {
                Role::Primary => format!("{at}.primary"),
                Role::Owned => format!("{at}.owns[{index}]"),
                Role::Watched => format!("{at}.watches[{index}]"),
                Role::Read => format!("{at}.reads[{index}]"),
            };
            let verbs: &[&str] = match watched.live {
                true => &["get", "list"],
                false => &["get", "list", "watch"],
            };
            self.objects(verbs, &watched.gvk(), scope, &why);
        }
        if let Some(primary) = controller.primary.as_ref()
            && controller.finalizer.is_some()
        {
            let why = format!("{at}.finalizer");
            self.objects(&["patch"], &primary.gvk(), scope, &why);
        }
    }

    fn permissions(&mut self, description: &Description, scope: &Scope) {
        for (index, permission) in description.permissions.iter().enumerate() {
            let why = format!("permissions[{index}]");
            let kind = permission.gvk();
            let scope = match permission.namespaces.as_slice() {
                [] => scope.clone(),
                some => Scope::Only(some.to_vec()),
            };
            // The host reads an object back when the answer to a write was lost, and before an apply that may not create it.
            self.objects(&["get"], &kind, &scope, &why);
            for verb in permission.verbs.iter().map(|verb: &Verb| verb.as_str()) {
                if permission.subresources.is_empty() {
                    self.objects(&[verb], &kind, &scope, &why);
                }
                for subresource in &permission.subresources {
                    self.add(Need {
                        verb,
                        kind: kind.clone(),
                        subresource: Some(subresource.clone()),
                        name: None,
                        scope: scope.clone(),
                        why: why.clone(),
                    });
                }
            }
        }
    }

    /// The host itself reports what fails for good, so that each plugin needs these.
    fn events(&mut self, scope: &Scope) {
        let kind = Gvk::new("events.k8s.io", "v1", "Event");
        self.objects(&["create", "patch"], &kind, scope, "events");
    }

    fn definitions(&mut self, description: &Description) {
        let kind = Gvk::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        for (index, definition) in description.definitions().iter().enumerate() {
            let why = format!("setup.customResourceDefinitions[{index}]");
            // A create has no name yet that RBAC could look at.
            self.objects(&["create"], &kind, &Scope::All, &why);
            let name = definition
                .pointer("/metadata/name")
                .and_then(serde_json::Value::as_str);
            self.named(&["get", "patch"], &kind, name, &Scope::All, &why);
        }
    }

    fn lease(&mut self, lease: &Lease) {
        let kind = Gvk::new("coordination.k8s.io", "v1", "Lease");
        let scope = Scope::Only(vec![lease.namespace.clone()]);
        let why = "--leader-elect";
        self.objects(&["create"], &kind, &scope, why);
        self.named(&["get", "update"], &kind, Some(&lease.name), &scope, why);
    }

    /// These verbs on one object.
    fn named(
        &mut self,
        verbs: &[&'static str],
        kind: &Gvk,
        name: Option<&str>,
        scope: &Scope,
        why: &str,
    ) {
        for verb in verbs {
            self.add(Need {
                verb,
                kind: kind.clone(),
                subresource: None,
                name: name.map(ToOwned::to_owned),
                scope: scope.clone(),
                why: why.to_owned(),
            });
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
