//! All webhooks and policies of a cluster, ready for use.
//!
//! A snapshot: a write of a configuration makes a new one, and a request keeps that with which it
//! began. Must not know requests.

use std::sync::Arc;

use super::policy::{Binding, Policy};
use super::review::GROUP;
use super::webhook::Webhook;
use crate::store::Store;

/// The webhooks and policies, in the order in which they are asked.
#[derive(Debug, Default)]
pub(crate) struct Registered {
    pub mutating: Vec<Webhook>,
    pub validating: Vec<Webhook>,
    /// The validating policies with a binding.
    pub policies: Vec<Policy>,
    /// The mutating policies with a binding.
    pub mutating_policies: Vec<Policy>,
}

impl Registered {
    /// Reads the configurations of a cluster.
    pub fn of(store: &Store) -> Arc<Registered> {
        let webhooks = |plural: &str| {
            let configurations = store.list(&format!("{GROUP}/{plural}"), None);
            let all = configurations.flat_map(|(_, object)| Webhook::read_all(&object));
            all.collect::<Vec<_>>()
        };
        Arc::new(Registered {
            mutating: webhooks("mutatingwebhookconfigurations"),
            validating: webhooks("validatingwebhookconfigurations"),
            policies: policies(store, "validating"),
            mutating_policies: policies(store, "mutating"),
        })
    }

    pub fn is_empty(&self) -> bool {
        self.validating.is_empty() && self.policies.is_empty() && !self.mutates()
    }

    /// Returns whether there is anything that may change an object.
    pub fn mutates(&self) -> bool {
        !(self.mutating.is_empty() && self.mutating_policies.is_empty())
    }
}

/// Returns the policies of a kind that have a binding, in the order of their names.
fn policies(store: &Store, kind: &str) -> Vec<Policy> {
    let storage = |plural: &str| format!("{GROUP}/{kind}admission{plural}");
    let bindings = store.list(&storage("policybindings"), None);
    let mut bindings: Vec<Binding> = bindings.map(|(_, one)| Binding::read(&one)).collect();
    let mut found = Vec::new();
    for (_, object) in store.list(&storage("policies"), None) {
        let name = object.pointer("/metadata/name").and_then(|n| n.as_str());
        let is_of = |binding: &mut Binding| Some(binding.policy.as_str()) == name;
        let own: Vec<Binding> = bindings.extract_if(.., is_of).collect();
        if !own.is_empty() {
            found.push(Policy {
                bindings: own,
                ..Policy::read(&object)
            });
        }
    }
    found
}
