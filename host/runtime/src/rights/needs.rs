//! Derives the verbs, kinds and namespaces that a plugin needs from its description. Plain data:
//! other modules ask for the rights or grant them.

use vmhost_core::description::webhook::WebhookType;
use vmhost_core::{ControllerDescription, Description, Gvk, Role, Verb, Watched};

use crate::config::Config;
use crate::config::terms::Terms;
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

/// How a host serves webhooks, as far as it needs rights for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Webhooks {
    /// The Secret with the host's own certificate authority, by namespace and name. `None` if the
    /// certificates come from a folder.
    pub secret: Option<(String, String)>,
    /// Whether the host registers the webhooks itself.
    pub register: bool,
}

/// The name of a Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The Lease's namespace.
    pub namespace: String,
    /// The Lease's name.
    pub name: String,
}

/// Returns the part of a description that concerns the host's own cluster. Controllers in members
/// need their rights there, where a missing one shows when it is used. If all controllers are in
/// members, no effect is written at home.
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
            self.objects(verbs_of(watched), &watched.gvk(), scope, &why);
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

    /// The host reads the Secrets whose values are headers of HTTP requests.
    fn headers(&mut self, description: &Description) {
        let kind = Gvk::new("", "v1", "Secret");
        for (index, grant) in description.http.iter().enumerate() {
            for secret in grant
                .headers
                .iter()
                .filter_map(|header| header.secret.as_ref())
            {
                let scope = Scope::Only(vec![secret.namespace.clone()]);
                let why = format!("http[{index}].headers");
                self.named(&["get"], &kind, Some(&secret.name), &scope, &why);
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

    /// Kinds that a webhook or conversion reads.
    fn reads(&mut self, at: &str, reads: &[Watched], scope: &Scope) {
        for (index, watched) in reads.iter().enumerate() {
            let why = format!("{at}.reads[{index}]");
            self.objects(verbs_of(watched), &watched.gvk(), scope, &why);
        }
    }

    /// The objects that register webhooks are named after the plugin, so that the host can be
    /// limited to them. It creates them by server-side apply, whose path has the name, so that RBAC
    /// can limit that too; the Secret is posted, which RBAC cannot limit.
    fn webhooks(&mut self, description: &Description, webhooks: &Webhooks) {
        if !description.answers_reviews() {
            return;
        }
        if let Some((namespace, name)) = &webhooks.secret {
            let (kind, why) = (Gvk::new("", "v1", "Secret"), "--webhook-bind-address");
            let scope = Scope::Only(vec![namespace.clone()]);
            self.objects(&["create"], &kind, &scope, why);
            self.named(&["get", "update"], &kind, Some(name), &scope, why);
        }
        let name = format!("vmhost-{}", description.name);
        for (index, webhook) in description.webhooks.iter().enumerate() {
            let kind = match webhook.kind {
                WebhookType::Validating => "ValidatingWebhookConfiguration",
                WebhookType::Mutating => "MutatingWebhookConfiguration",
            };
            let kind = Gvk::new("admissionregistration.k8s.io", "v1", kind);
            let why = format!("webhooks[{index}]");
            let verbs: &[&str] = match webhooks.register {
                true => &["create", "get", "patch"],
                false => &["get", "patch"],
            };
            self.named(verbs, &kind, Some(&name), &Scope::All, &why);
        }
        let kind = Gvk::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        for (index, conversion) in description.conversions.iter().enumerate() {
            let (why, name) = (format!("conversions[{index}]"), conversion.definition());
            self.named(&["get", "patch"], &kind, Some(&name), &Scope::All, &why);
        }
    }

    fn lease(&mut self, lease: &Lease) {
        let kind = Gvk::new("coordination.k8s.io", "v1", "Lease");
        let scope = Scope::Only(vec![lease.namespace.clone()]);
        let why = "--leader-elect";
        self.objects(&["create"], &kind, &scope, why);
        self.named(&["get", "update"], &kind, Some(&lease.name), &scope, why);
    }

    /// Reviews of its callers' tokens and rights.
    fn callers(&mut self) {
        for (group, kind) in [
            ("authentication.k8s.io", "TokenReview"),
            ("authorization.k8s.io", "SubjectAccessReview"),
        ] {
            let kind = Gvk::new(group, "v1", kind);
            self.objects(&["create"], &kind, &Scope::All, "--metrics-access");
        }
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

/// The verbs with which the host reads a kind.
fn verbs_of(watched: &Watched) -> &'static [&'static str] {
    match watched.live {
        true => &["get", "list"],
        false => &["get", "list", "watch"],
    }
}

#[cfg(test)]
pub(crate) mod tests;
