//! Derives the verbs, kinds and namespaces that a plugin needs from its description. Plain data:
//! other modules ask for the rights or grant them.

use vmhost_core::{ControllerDescription, Description, Gvk, Role, Verb};

use crate::config::Config;
use crate::rights::access::Access;
use crate::rights::names::Name;

/// One needed access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The verb in RBAC's form.
    pub(crate) verb: &'static str,
    /// The kind.
    pub kind: Gvk,
    /// The subresource, such as `status` or `scale`. `None` for the object itself.
    pub(crate) subresource: Option<String>,
    /// The name of the only object. `None` for all objects.
    pub(crate) name: Option<String>,
    pub(crate) scope: Scope,
    /// The field of the description, or the flag, that needs it.
    pub(crate) why: String,
}

/// The namespaces of an access. Without meaning for a cluster-scoped kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All namespaces.
    All,
    /// These namespaces.
    Only(Vec<String>),
}

/// The host's flags that affect the needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The values of `--namespace`. Empty for all namespaces.
    pub namespaces: Vec<String>,
    /// The Lease of the leader election. `None` without an election.
    pub lease: Option<Lease>,
    /// Whether the host installs the definitions that the plugin carries.
    pub install_crds: bool,
}

impl Options {
    /// The options of this host, without an election.
    pub fn of(config: &Config) -> Self {
        Self {
            namespaces: config.namespaces.clone(),
            lease: None,
            install_crds: config.install_crds,
        }
    }
}

/// The name of a Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The Lease's namespace.
    pub namespace: String,
    /// The Lease's name.
    pub name: String,
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

impl Need {
    /// The access for a kind of this name.
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

    /// Returns whether both are the same access, whatever needs it.
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

    /// Adds these verbs on all objects of a kind.
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
            // The host reads an object when the response to a write was lost, and before an apply
            // that may not create the object.
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

    /// The host itself reports terminal failures as Events, so each plugin needs these.
    fn events(&mut self, scope: &Scope) {
        let kind = Gvk::new("events.k8s.io", "v1", "Event");
        self.objects(&["create", "patch"], &kind, scope, "events");
    }

    fn definitions(&mut self, description: &Description) {
        let kind = Gvk::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        for (index, definition) in description.definitions().iter().enumerate() {
            let why = format!("setup.customResourceDefinitions[{index}]");
            // RBAC cannot restrict a create by name.
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

    /// Adds these verbs on one object.
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
