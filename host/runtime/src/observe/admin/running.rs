//! The running controllers, as far as questions about turns need them, and the names by which a
//! user may call their kinds (as for kubectl). Plain data. This module must not know queues or
//! stores.

use std::sync::Arc;

use vmhost_core::Gvk;

/// The controllers of a host.
#[derive(Clone, Debug, Default)]
pub(crate) struct Running {
    /// Whether the host is the leader. A standby has no turns.
    pub(crate) leading: bool,
    /// The controllers, by label.
    pub(crate) controllers: Vec<Keyed>,
}

/// A running controller, and the kind of its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Keyed {
    /// The controller's label.
    pub(crate) controller: Arc<str>,
    /// Whether its workers have been started.
    pub(crate) started: bool,
    /// The kind of its keys.
    pub(crate) kind: Gvk,
    /// The plural of the kind.
    pub(crate) plural: String,
    /// The names of one object of the kind and the short names, as far as the API server has told
    /// them.
    pub(crate) aliases: Aliases,
    /// Whether the kind's objects are in namespaces.
    pub(crate) namespaced: bool,
    /// Whether a generation of its plugin may have read or written objects with sensitive values.
    pub(crate) reads_sensitive: bool,
}

/// Further names of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Aliases {
    /// Empty if there is none besides the kind in lower case.
    pub(crate) singular: String,
    /// As in `kubectl api-resources`.
    pub(crate) short: Vec<String>,
}

impl Running {
    /// Returns the controllers of a kind. As for kubectl, a short name counts only if no kind has
    /// this name itself.
    pub(crate) fn of_kind(&self, asked: &str) -> Vec<&Keyed> {
        let found = self.called(|keyed| keyed.is(asked));
        match found.is_empty() {
            true => self.called(|keyed| keyed.is_short(asked)),
            false => found,
        }
    }

    fn called(&self, is_meant: impl Fn(&Keyed) -> bool) -> Vec<&Keyed> {
        let controllers = self.controllers.iter();
        controllers.filter(|keyed| is_meant(keyed)).collect()
    }

    /// Returns whether the plugin of a controller may have read or written objects with sensitive
    /// values. If the controller does not run any more, the answer is yes.
    pub(crate) fn reads_sensitive(&self, label: &str) -> bool {
        let mut controllers = self.controllers.iter();
        let found = controllers.find(|keyed| &*keyed.controller == label);
        found.is_none_or(|keyed| keyed.reads_sensitive)
    }

    /// Lists the kinds of the controllers for an error text: `virtualmachines
    /// (VirtualMachine.v1.cloud.waibizi.com)`.
    pub(crate) fn kinds(&self) -> String {
        let mut names: Vec<String> = self
            .controllers
            .iter()
            .map(|keyed| format!("{} ({})", keyed.plural, keyed.kind))
            .collect();
        names.sort();
        names.dedup();
        listed(&names)
    }

    /// Lists the labels of the controllers for an error text.
    pub(crate) fn labels(&self) -> String {
        let controllers = self.controllers.iter();
        let labels: Vec<String> = controllers
            .map(|keyed| keyed.controller.to_string())
            .collect();
        listed(&labels)
    }
}

fn listed(names: &[String]) -> String {
    match names.is_empty() {
        true => "none, since no plugin runs".to_owned(),
        false => names.join(", "),
    }
}

impl Keyed {
    /// Returns whether a user means this kind: by its plural, singular or name, alone or with
    /// `.group`, `.version` or `.version.group` behind it, in upper or lower case.
    pub(crate) fn is(&self, asked: &str) -> bool {
        let names = [&self.plural, &self.aliases.singular, &self.kind.kind];
        self.is_one_of(names, asked)
    }

    /// Like [`Keyed::is`], by a short name.
    pub(crate) fn is_short(&self, asked: &str) -> bool {
        self.is_one_of(&self.aliases.short, asked)
    }

    fn is_one_of<'a>(&self, names: impl IntoIterator<Item = &'a String>, asked: &str) -> bool {
        let asked = asked.to_lowercase();
        let (name, rest) = match asked.split_once('.') {
            Some((name, rest)) => (name, Some(rest)),
            None => (asked.as_str(), None),
        };
        let mut names = names.into_iter();
        let named = !name.is_empty() && names.any(|known| name == known.to_lowercase());
        let (group, version) = (
            self.kind.group.to_lowercase(),
            self.kind.version.to_lowercase(),
        );
        named
            && rest.is_none_or(|rest| {
                rest == group || rest == version || rest == format!("{version}.{group}")
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyed(kind: Gvk, plural: &str) -> Keyed {
        Keyed {
            controller: "vm".into(),
            started: true,
            kind,
            plural: plural.into(),
            aliases: Aliases::default(),
            namespaced: true,
            reads_sensitive: false,
        }
    }

    #[test]
    fn a_kind_is_named_as_for_kubectl() {
        let vm = keyed(
            Gvk::new("cloud.waibizi.com", "v1", "VirtualMachine"),
            "virtualmachines",
        );
        for asked in [
            "VirtualMachine",
            "virtualmachine",
            "VIRTUALMACHINES",
            "virtualmachines.cloud.waibizi.com",
            "VirtualMachine.v1.cloud.waibizi.com",
            "virtualmachine.v1",
        ] {
            assert!(vm.is(asked), "{asked}");
        }
        for asked in [
            "",
            "vm",
            "virtual",
            "virtualmachine.",
            "virtualmachines.waibizi.com",
            "virtualmachines.v2.cloud.waibizi.com",
            ".cloud.waibizi.com",
        ] {
            assert!(!vm.is(asked), "{asked}");
        }
    }

    #[test]
    fn a_short_name_is_one_of_the_kind_unless_another_kind_has_that_name() {
        let aliases = |singular: &str, short: &[&str]| Aliases {
            singular: singular.into(),
            short: short.iter().map(ToString::to_string).collect(),
        };
        let kind = Gvk::new("cloud.waibizi.com", "v1", "VirtualMachine");
        let mut vm = keyed(kind, "virtualmachines");
        vm.aliases = aliases("machine", &["vm", "vms"]);
        let mut running = Running {
            leading: true,
            controllers: vec![vm],
        };
        for asked in ["vm", "VMs", "vm.cloud.waibizi.com", "machine"] {
            assert_eq!(running.of_kind(asked).len(), 1, "{asked}");
        }
        for asked in ["", "v", "vm.other.com", "machines"] {
            assert!(running.of_kind(asked).is_empty(), "{asked}");
        }
        let other = keyed(Gvk::new("other.com", "v1", "Vm"), "vms");
        running.controllers.push(other.clone());
        for asked in ["vm", "vms"] {
            assert_eq!(running.of_kind(asked), [&other], "{asked}");
        }
        assert_eq!(running.of_kind("vm.cloud.waibizi.com").len(), 1);
    }

    #[test]
    fn the_core_group_has_no_name() {
        let pod = keyed(Gvk::new("", "v1", "Pod"), "pods");
        for asked in ["pod", "pods", "Pod.v1"] {
            assert!(pod.is(asked), "{asked}");
        }
        assert!(!pod.is("pods.apps") && !pod.is("pod.v1.apps"));
    }

    #[test]
    fn a_kind_may_have_several_controllers() {
        let pod = || keyed(Gvk::new("", "v1", "Pod"), "pods");
        let node = keyed(Gvk::new("", "v1", "Node"), "nodes");
        let running = Running {
            leading: true,
            controllers: vec![pod(), node, pod()],
        };
        assert_eq!(running.of_kind("pods").len(), 2);
        assert_eq!(running.kinds(), "nodes (Node.v1), pods (Pod.v1)");
        assert!(Running::default().kinds().starts_with("none"));
        assert!(!running.reads_sensitive("vm") && running.reads_sensitive("gone"));
    }
}
