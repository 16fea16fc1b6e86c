//! Which accesses each part of a description needs, and each part of the host, without duplicates.
//! This module must not know which parts count.

use vmhost_core::description::webhook::WebhookType;
use vmhost_core::{ControllerDescription, Description, Gvk, Role, Verb, Watched};

use super::need::{Need, Scope};

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

/// The accesses that were added so far.
#[derive(Default)]
pub(super) struct Needs(pub(super) Vec<Need>);

impl Needs {
    pub(super) fn add(&mut self, need: Need) {
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

    pub(super) fn controller(
        &mut self,
        at: &str,
        controller: &ControllerDescription,
        scope: &Scope,
    ) {
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

    pub(super) fn permissions(&mut self, description: &Description, scope: &Scope) {
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
    pub(super) fn headers(&mut self, description: &Description) {
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
    pub(super) fn events(&mut self, scope: &Scope) {
        let kind = Gvk::new("events.k8s.io", "v1", "Event");
        self.objects(&["create", "patch"], &kind, scope, "events");
    }

    pub(super) fn definitions(&mut self, description: &Description) {
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
    pub(super) fn reads(&mut self, at: &str, reads: &[Watched], scope: &Scope) {
        for (index, watched) in reads.iter().enumerate() {
            let why = format!("{at}.reads[{index}]");
            self.objects(verbs_of(watched), &watched.gvk(), scope, &why);
        }
    }

    /// The objects that register webhooks are named after the plugin, so that the host can be
    /// limited to them. It creates them by server-side apply, whose path has the name, so that RBAC
    /// can limit that too; the Secret is posted, which RBAC cannot limit.
    pub(super) fn webhooks(&mut self, description: &Description, webhooks: &Webhooks) {
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

    pub(super) fn lease(&mut self, lease: &Lease) {
        let kind = Gvk::new("coordination.k8s.io", "v1", "Lease");
        let scope = Scope::Only(vec![lease.namespace.clone()]);
        let why = "--leader-elect";
        self.objects(&["create"], &kind, &scope, why);
        self.named(&["get", "update"], &kind, Some(&lease.name), &scope, why);
        // The Events about the Lease. Those of the plugins may be in its namespace, too.
        let kind = Gvk::new("events.k8s.io", "v1", "Event");
        let is_there = |need: &Need| match &need.scope {
            Scope::All => need.kind == kind,
            Scope::Only(namespaces) => need.kind == kind && namespaces.contains(&lease.namespace),
        };
        if !self.0.iter().any(is_there) {
            self.objects(&["create", "patch"], &kind, &scope, why);
        }
    }

    /// Reviews of its callers' tokens and rights.
    pub(super) fn callers(&mut self) {
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
