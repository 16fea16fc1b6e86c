//! The terms that one plugin runs under. Plain data, from the flags or from a `Plugin` object. It
//! must not know where they come from.

use vmhost_core::{LabelSelector, Limits, ObjectName, Permission};
use vmhost_engine::Settings;

/// The terms of one plugin. Two versions with equal bytes and equal terms are the same. What is
/// `None` is as the operator's flags say, and as the plugin declares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// The settings.
    pub settings: Option<Settings>,
    /// The limits of its calls.
    pub limits: Option<Limits>,
    /// What its effects may write.
    pub permissions: Option<Vec<Permission>>,
    /// The namespaces that it works in. Empty for all.
    pub namespaces: Option<Vec<String>>,
    /// The member clusters that it works in, of those that its description selects. `None` for all.
    pub members: Option<Members>,
    /// The service account that its writes are sent as.
    pub account: Option<Account>,
    /// Whether its grants were decided elsewhere, so that what an earlier version declared is no
    /// limit.
    pub is_granted: bool,
}

/// Some of the member clusters. A cluster has to meet both parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// Their names. Empty for any name.
    pub names: Vec<String>,
    /// A selector of their labels. Empty for any labels.
    pub selector: String,
}

/// A service account.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Account {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Account {
    /// The user name, as access control has it.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }

    /// The groups of the user.
    pub fn groups(&self) -> [String; 3] {
        [
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{}", self.namespace),
            "system:authenticated".to_owned(),
        ]
    }
}

impl Members {
    /// Returns whether the cluster of this name is one of them: `label` returns the value of one of
    /// its labels.
    pub(crate) fn take<'l>(&self, name: &str, label: impl Fn(&str) -> Option<&'l str>) -> bool {
        let is_named = self.names.is_empty() || self.names.iter().any(|of| of == name);
        is_named
            && (self.selector.is_empty()
                // One that makes no sense selects nothing.
                || LabelSelector::parse(&self.selector)
                    .is_ok_and(|selector| selector.matches_by(label)))
    }
}

impl Terms {
    /// The namespaces that the plugin works in. `flags` are those of the host.
    pub(crate) fn namespaces<'a>(&'a self, flags: &'a [String]) -> &'a [String] {
        self.namespaces.as_deref().unwrap_or(flags)
    }

    /// Returns whether the plugin may work in the member of this name: `label` returns the value of
    /// one of its labels.
    pub(crate) fn takes<'l>(&self, name: &str, label: impl Fn(&str) -> Option<&'l str>) -> bool {
        let members = self.members.as_ref();
        members.is_none_or(|members| members.take(name, label))
    }

    /// The object that an Event is about, named so that the Event is in a namespace of the plugin:
    /// one about an object without a namespace would be in `default`, whosever that is. `None` if
    /// the object is in another namespace.
    pub(crate) fn about(&self, object: &ObjectName) -> Option<ObjectName> {
        let namespaces = self.namespaces.as_deref().unwrap_or_default();
        let Some(first) = namespaces.first() else {
            return Some(object.clone());
        };
        match object.namespace() {
            None => Some(ObjectName::new(Some(first), object.name())),
            Some(namespace) => {
                let is_inside = namespaces.iter().any(|of| of == namespace);
                is_inside.then(|| object.clone())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_meets_the_names_and_the_labels() {
        let label = |key: &str| (key == "env").then_some("prod");
        let takes = |names: &[&str], selector: &str| {
            let terms = Terms {
                members: Some(Members {
                    names: names.iter().map(|name| (*name).to_owned()).collect(),
                    selector: selector.to_owned(),
                }),
                ..Terms::default()
            };
            terms.takes("east", label)
        };
        assert!(Terms::default().takes("east", label));
        for (names, selector, expected) in [
            (vec![], "", true),
            (vec!["east"], "", true),
            (vec!["west"], "", false),
            (vec![], "env in (prod,test)", true),
            (vec!["east"], "env=dev", false),
            (vec![], "env in (", false),
        ] {
            assert_eq!(takes(&names, selector), expected, "{names:?} {selector}");
        }
    }

    #[test]
    fn events_stay_in_the_namespaces_of_a_plugin() {
        let of = |namespaces: &[&str]| Terms {
            namespaces: Some(namespaces.iter().map(|name| (*name).to_owned()).collect()),
            ..Terms::default()
        };
        let (own, all) = (of(&["team-a", "team-b"]), of(&[]));
        let pod = ObjectName::new(Some("team-b"), "x");
        let foreign = ObjectName::new(Some("kube-system"), "x");
        let timer = ObjectName::new(None, "timer");
        assert_eq!(own.about(&pod), Some(pod.clone()));
        assert_eq!(own.about(&foreign), None);
        let moved = ObjectName::new(Some("team-a"), "timer");
        assert_eq!(own.about(&timer), Some(moved));
        for object in [pod, foreign, timer] {
            assert_eq!(all.about(&object), Some(object.clone()));
            assert_eq!(Terms::default().about(&object), Some(object));
        }
    }
}
