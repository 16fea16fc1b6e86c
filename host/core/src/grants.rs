//! What a plugin may do, and whether an effect or a new description stays within it.
//!
//! Until an operator writes grants of his own, what the first generation declared is the grant.

use crate::description::{Description, Permission, Verb, Watched};
use crate::effect::{Effect, Target};

/// The permissions and kinds that a plugin was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grants {
    permissions: Vec<Permission>,
    watched: Vec<Watched>,
    claims: Vec<String>,
}

/// An effect outside the grants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// Position of the effect.
    pub effect: u32,
    /// What is not granted, or what is wrong with it; names verb and kind.
    pub reason: String,
}

/// What a new description asks for beyond the grants, one line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wider(pub Vec<String>);

impl Grants {
    /// What a description asks for.
    pub fn of(description: &Description) -> Self {
        Self {
            permissions: description.permissions.clone(),
            watched: watched_kinds(description),
            claims: claims(description),
        }
    }

    /// Does the description ask for more than this? The parts that are not granted.
    pub fn check_description(&self, description: &Description) -> Result<(), Wider> {
        let mut wider: Vec<String> = watched_kinds(description)
            .into_iter()
            .filter(|wanted| !self.watched.iter().any(|granted| shows(granted, wanted)))
            .map(|wanted| format!("watch {}", seen(&wanted)))
            .collect();
        wider.extend(
            claims(description)
                .into_iter()
                .filter(|claim| !self.claims.contains(claim)),
        );
        for permission in &description.permissions {
            wider.extend(self.missing_of(permission));
        }
        if wider.is_empty() {
            Ok(())
        } else {
            Err(Wider(wider))
        }
    }

    /// May all of these effects be carried out? Where each of them writes; the first that may not be is named.
    pub fn check_effects(&self, effects: &[Effect]) -> Result<Vec<Option<Target>>, Denied> {
        let checked = effects.iter().enumerate().map(|(index, effect)| {
            self.check_effect(effect).map_err(|reason| Denied {
                effect: index as u32,
                reason,
            })
        });
        checked.collect()
    }

    fn check_effect(&self, effect: &Effect) -> Result<Option<Target>, String> {
        let verbs: &[Verb] = match effect {
            Effect::Apply(apply) if apply.create_if_absent => &[Verb::Patch, Verb::Create],
            Effect::Apply(_) | Effect::Patch(_) => &[Verb::Patch],
            Effect::Create(_) => &[Verb::Create],
            Effect::Delete(_) => &[Verb::Delete],
            Effect::Event(_) => &[],
            Effect::Other(name) => return Err(format!("effect {name:?} is unknown to this host")),
        };
        let Some(target) = effect.target()? else {
            return Ok(None);
        };
        for &verb in verbs {
            if !self
                .permissions
                .iter()
                .any(|permission| permission.allows(verb, &target))
            {
                return Err(format!(
                    "the plugin's description has no permission to {}",
                    asked(verb, &target)
                ));
            }
        }
        Ok(Some(target))
    }

    fn missing_of(&self, permission: &Permission) -> Vec<String> {
        let some_or = |list: &[String]| -> Vec<Option<String>> {
            if list.is_empty() {
                vec![None]
            } else {
                list.iter().cloned().map(Some).collect()
            }
        };
        let mut missing = Vec::new();
        for &verb in &permission.verbs {
            for subresource in some_or(&permission.subresources) {
                for namespace in some_or(&permission.namespaces) {
                    let target = Target {
                        kind: permission.gvk(),
                        namespace,
                        name: None,
                        subresource: subresource.clone(),
                    };
                    let granted = self
                        .permissions
                        .iter()
                        .any(|granted| granted.allows(verb, &target));
                    if !granted {
                        missing.push(asked(verb, &target));
                    }
                }
            }
        }
        missing
    }
}

impl Permission {
    fn allows(&self, verb: Verb, target: &Target) -> bool {
        self.kind == target.kind.kind
            && self.group == target.kind.group
            && self.version == target.kind.version
            && self.verbs.contains(&verb)
            && match &target.subresource {
                None => self.subresources.is_empty(),
                Some(subresource) => self.subresources.contains(subresource),
            }
            // Cluster-scoped objects are in no namespace: only a permission that is not limited covers them.
            && (self.namespaces.is_empty()
                || target
                    .namespace
                    .as_ref()
                    .is_some_and(|namespace| self.namespaces.contains(namespace)))
    }
}

fn watched_kinds(description: &Description) -> Vec<Watched> {
    description
        .controllers
        .iter()
        .flat_map(|controller| controller.kinds().map(|(_, watched)| watched.clone()))
        .collect()
}

/// Does whoever may watch the one see all that the other shows? Which fields of an object are kept is a question of memory, not of rights.
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

/// What it wants of the cluster besides watches and permissions, in a person's words.
fn claims(description: &Description) -> Vec<String> {
    let finalizers = description.controllers.iter().filter_map(|controller| {
        let finalizer = controller.finalizer.as_deref()?;
        Some(format!("finalizer {finalizer} on {}", controller.kind()))
    });
    let definitions = description.definitions().iter().filter_map(|definition| {
        let name = definition.pointer("/metadata/name")?.as_str()?;
        Some(format!("install CustomResourceDefinition {name}"))
    });
    finalizers.chain(definitions).collect()
}

fn asked(verb: Verb, target: &Target) -> String {
    let mut text = format!("{} {}", verb.as_str(), target.kind);
    if let Some(subresource) = &target.subresource {
        text.push('/');
        text.push_str(subresource);
    }
    if let Some(namespace) = &target.namespace {
        text.push_str(" in namespace ");
        text.push_str(namespace);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::{Apply, Patch, PatchType};
    use crate::key::{Gvk, ObjectKey, ObjectName};

    fn description(permissions: &str) -> Description {
        Description::parse(&format!(
            r#"{{"apiVersion":"vmhost/v1","name":"p","controllers":[{{"name":"c","primary":{{"version":"v1","kind":"Pod"}}}}],"permissions":{permissions}}}"#
        ))
        .unwrap()
    }

    fn patch(kind: &str, namespace: &str, subresource: Option<&str>) -> Effect {
        Effect::Patch(Patch {
            key: ObjectKey {
                kind: Gvk::new("", "v1", kind),
                name: ObjectName::new(Some(namespace), "x"),
            },
            subresource: subresource.map(Into::into),
            kind: PatchType::Merge,
            body: "{}".into(),
            if_version: None,
        })
    }

    #[test]
    fn effects_stay_within_the_permissions() {
        let grants = Grants::of(&description(
            r#"[{"version":"v1","kind":"Pod","verbs":["patch"],"subresources":["status"]},
                {"version":"v1","kind":"ConfigMap","verbs":["patch"],"namespaces":["a"]}]"#,
        ));
        for (effect, allowed) in [
            (patch("Pod", "a", Some("status")), true),
            (patch("Pod", "a", None), false),
            (patch("Pod", "a", Some("scale")), false),
            (patch("ConfigMap", "a", None), true),
            (patch("ConfigMap", "b", None), false),
            (patch("ConfigMap", "", None), false),
            (patch("Secret", "a", None), false),
            (Effect::Other("teleport".into()), false),
        ] {
            assert_eq!(
                grants.check_effects(std::slice::from_ref(&effect)).is_ok(),
                allowed,
                "{effect:?}"
            );
        }
    }

    #[test]
    fn an_apply_that_may_create_needs_both_verbs() {
        let apply = |create_if_absent| {
            Effect::Apply(Apply {
                object: r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"a"}}"#.into(),
                subresource: None,
                force: true,
                create_if_absent,
                if_version: None,
            })
        };
        let grants = Grants::of(&description(
            r#"[{"version":"v1","kind":"ConfigMap","verbs":["patch"]}]"#,
        ));
        assert!(grants.check_effects(&[apply(false)]).is_ok());
        let denied = grants
            .check_effects(&[apply(false), apply(true)])
            .unwrap_err();
        assert_eq!(denied.effect, 1);
        assert!(
            denied.reason.contains("create ConfigMap.v1 in namespace a"),
            "{}",
            denied.reason
        );
    }

    #[test]
    fn only_a_wider_description_is_refused() {
        let narrow =
            description(r#"[{"version":"v1","kind":"Pod","verbs":["patch"],"namespaces":["a"]}]"#);
        let wide = description(r#"[{"version":"v1","kind":"Pod","verbs":["patch","delete"]}]"#);
        assert!(Grants::of(&wide).check_description(&narrow).is_ok());
        let wider = Grants::of(&narrow).check_description(&wide).unwrap_err();
        assert_eq!(wider.0, ["patch Pod.v1", "delete Pod.v1"]);
        let mut other = narrow.clone();
        other.controllers[0]
            .reads
            .push(crate::description::Watched {
                version: "v1".into(),
                kind: "Secret".into(),
                ..Default::default()
            });
        assert_eq!(
            Grants::of(&narrow).check_description(&other).unwrap_err().0,
            ["watch Secret.v1"]
        );
        let mut metadata = other.clone();
        metadata.controllers[0].reads[0].metadata_only = true;
        assert!(Grants::of(&other).check_description(&metadata).is_ok());
        assert_eq!(
            Grants::of(&metadata)
                .check_description(&other)
                .unwrap_err()
                .0,
            ["watch Secret.v1"],
            "more of each object"
        );
        other.controllers[0].reads.clear();
        other.controllers[0].finalizer = Some("example.com/x".into());
        assert_eq!(
            Grants::of(&narrow).check_description(&other).unwrap_err().0,
            ["finalizer example.com/x on Pod.v1"]
        );
    }
}
