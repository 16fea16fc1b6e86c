//! Which reviews a plugin may answer: a webhook sees the objects that it is asked about and decides
//! what others may do, so that a new version may not ask about more.

use crate::description::Description;
use crate::description::webhook::WebhookType;

/// One kind of review that a plugin answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    /// A webhook is asked about a resource.
    Webhook {
        name: String,
        kind: WebhookType,
        /// `*` for all.
        group: String,
        /// As in a rule.
        resource: String,
    },
    /// A conversion of the objects of a CustomResourceDefinition.
    Conversion(String),
}

/// What a description answers.
pub(super) fn answered(description: &Description) -> Vec<Answered> {
    let mut all = Vec::new();
    for webhook in &description.webhooks {
        for rule in &webhook.rules {
            for group in &rule.api_groups {
                for resource in &rule.resources {
                    all.push(Answered::Webhook {
                        name: webhook.name.clone(),
                        kind: webhook.kind,
                        group: group.clone(),
                        resource: resource.clone(),
                    });
                }
            }
        }
    }
    let conversions = description.conversions.iter();
    all.extend(conversions.map(|conversion| Answered::Conversion(conversion.definition())));
    all
}

impl Answered {
    /// Returns whether this grant covers another.
    pub(super) fn covers(&self, wanted: &Self) -> bool {
        let (
            Self::Webhook {
                name,
                kind,
                group,
                resource,
            },
            Self::Webhook {
                name: wanted_name,
                kind: wanted_kind,
                group: wanted_group,
                resource: wanted_resource,
            },
        ) = (self, wanted)
        else {
            return self == wanted;
        };
        let may_change = *kind == WebhookType::Mutating || kind == wanted_kind;
        name == wanted_name
            && may_change
            && (group == "*" || group == wanted_group)
            && covers(resource, wanted_resource)
    }
}

/// Returns whether a resource of a rule covers another. As in Kubernetes, `pods/*` covers the
/// subresources of pods and not pods themselves, and `*/*` covers everything.
fn covers(granted: &str, wanted: &str) -> bool {
    if granted == "*/*" {
        return true;
    }
    let ((resource, subresource), (wanted, below)) = (split(granted), split(wanted));
    let is_below = subresource == below || (subresource == "*" && !below.is_empty());
    (resource == "*" || resource == wanted) && is_below
}

/// The plural and the subresource, which may be empty.
fn split(resource: &str) -> (&str, &str) {
    resource.split_once('/').unwrap_or((resource, ""))
}

/// `validating webhook image-policy on pods` is the text of a grant.
impl std::fmt::Display for Answered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Webhook {
                name,
                kind,
                group,
                resource,
            } => {
                write!(f, "{} webhook {name} on {resource}", kind.as_str())?;
                match group.as_str() {
                    "" => Ok(()),
                    group => write!(f, " of {group}"),
                }
            }
            Self::Conversion(definition) => write!(f, "conversion of {definition}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grants::Grants;

    fn plugin(webhooks: &str) -> Description {
        Description::parse(&format!(
            r#"{{"apiVersion":"vmhost/v1","name":"p","webhooks":[{webhooks}]}}"#
        ))
        .unwrap()
    }

    fn webhook(name: &str, kind: &str, group: &str, resource: &str) -> String {
        format!(
            r#"{{"name":"{name}","type":"{kind}","rules":[{{"apiGroups":["{group}"],"apiVersions":["*"],"resources":["{resource}"],"operations":["CREATE"]}}]}}"#
        )
    }

    #[test]
    fn a_new_version_asks_about_no_more() {
        for (granted, wanted, wider) in [
            (("validating", "", "pods"), ("validating", "", "pods"), ""),
            (("mutating", "", "pods"), ("validating", "", "pods"), ""),
            (
                ("validating", "*", "*"),
                ("validating", "apps", "deployments"),
                "",
            ),
            (
                ("validating", "", "pods/*"),
                ("validating", "", "pods/exec"),
                "",
            ),
            (
                ("validating", "", "*/*"),
                ("validating", "", "pods/exec"),
                "",
            ),
            (
                ("validating", "", "pods"),
                ("mutating", "", "pods"),
                "mutating webhook w on pods",
            ),
            (
                ("validating", "", "pods"),
                ("validating", "apps", "pods"),
                "validating webhook w on pods of apps",
            ),
            (
                ("validating", "", "*"),
                ("validating", "", "pods/exec"),
                "validating webhook w on pods/exec",
            ),
            (
                ("validating", "", "pods/*"),
                ("validating", "", "pods"),
                "validating webhook w on pods",
            ),
        ] {
            let of = |(kind, group, resource): (&str, &str, &str)| {
                plugin(&webhook("w", kind, group, resource))
            };
            let found = Grants::of(&of(granted)).check_description(&of(wanted));
            let found = found.map_or_else(|wider| wider.0.join("; "), |()| String::new());
            assert_eq!(found, wider);
        }
        let of = |name: &str| plugin(&webhook(name, "validating", "", "pods"));
        assert!(Grants::of(&of("w")).check_description(&of("x")).is_err());
    }
}
