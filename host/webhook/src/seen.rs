//! What the objects that register webhooks said when they were read last.
//!
//! This module must not send anything.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::certificates::rotation::Held;
use crate::target::{Finding, Target};

/// An object as it was read.
pub(crate) enum Seen {
    Is(Value),
    Missing,
    Unread(String),
}

/// Which webhooks and conversions an API server asks, as far as their objects could be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registered(BTreeMap<Target, BTreeSet<String>>);

impl Registered {
    pub(crate) fn of(seen: &[(&Target, Seen)]) -> Self {
        let read = seen.iter().filter_map(|(target, object)| {
            let names = match object {
                Seen::Is(object) => target.registers(object),
                Seen::Missing => BTreeSet::new(),
                Seen::Unread(_) => return None,
            };
            Some(((*target).clone(), names))
        });
        Self(read.collect())
    }

    /// Returns whether an object registers the webhook or conversion of this name; `None` if the
    /// object was not read.
    pub fn has(&self, target: &Target, name: &str) -> Option<bool> {
        Some(self.0.get(target)?.contains(name))
    }
}

/// Returns whether all objects hold a bundle, as far as they exist and are this host's.
pub(crate) fn held(seen: &[(&Target, Seen)], bundle: &str) -> Held {
    let lacks = |(target, object): &(&Target, Seen)| match object {
        Seen::Is(object) => matches!(target.compare(object, bundle), Finding::Lacks(_)),
        Seen::Missing | Seen::Unread(_) => false,
    };
    let is_unread = |(_, object): &(&Target, Seen)| matches!(object, Seen::Unread(_));
    if seen.iter().any(lacks) {
        Held::NotEverywhere
    } else if seen.iter().any(is_unread) {
        Held::Unknown
    } else {
        Held::Everywhere
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_registered_is_known_by_its_name() {
        let validating = Target::validating("p");
        let mutating = Target::mutating("p");
        let converted = Target::definition("vms.g", "p", "vm");
        let elsewhere = Target::definition("others.g", "p", "other");
        let unread = Target::validating("q");
        let asks = |path: &str| {
            json!({"spec": {"conversion": {"strategy": "Webhook",
                "webhook": {"clientConfig": {"service": {"path": path}}}}}})
        };
        let configuration = json!({"webhooks": [
            {"name": "v.p.vmhost.dev", "clientConfig": {"url": "https://a/admit/p/v"}},
            {"name": "w.example.com", "clientConfig": {"url": "https://b"}},
        ]});
        let registered = Registered::of(&[
            (&validating, Seen::Is(configuration)),
            (&mutating, Seen::Missing),
            (&converted, Seen::Is(asks("/convert/p/vm"))),
            (&elsewhere, Seen::Is(asks("/convert/q/other"))),
            (&unread, Seen::Unread("no".to_owned())),
        ]);
        for (target, name, expected) in [
            (&validating, "v", Some(true)),
            (&validating, "w", Some(false)),
            (&mutating, "m", Some(false)),
            (&converted, "vm", Some(true)),
            (&elsewhere, "other", Some(false)),
            (&unread, "x", None),
        ] {
            assert_eq!(registered.has(target, name), expected, "{name}");
        }
    }
}
