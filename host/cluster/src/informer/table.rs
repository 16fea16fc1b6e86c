//! Groups subscriptions that share a watch. Plain data: `groups` starts and stops the informers.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use vmhost_core::Gvk;

use super::hold::Hold;
use super::running::Running;
use super::spec::WatchSpec;

#[derive(Default)]
pub(super) struct Table {
    pub groups: HashMap<Key, Group>,
    /// All started informers; some may have ended.
    pub running: Vec<Weak<Running>>,
    /// Cluster-scoped kinds: a requested namespace is ignored for them.
    pub cluster_scoped: HashSet<Gvk>,
    pub next: u64,
    /// Whether all informers were ended: one that starts ends at once.
    pub stopped: bool,
}

/// Subscriptions with the same key share a watch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub kind: Gvk,
    pub namespace: Option<String>,
    pub label_selector: Option<String>,
    pub field_selector: Option<String>,
}

/// The subscriptions that share a watch.
#[derive(Default)]
pub(super) struct Group {
    pub holds: Vec<Arc<Hold>>,
    /// The informer that keeps what all of them want now. Some may still use its predecessors.
    pub target: Option<Arc<Running>>,
}

impl Group {
    /// Sets the informer that all subscriptions of the group should use.
    pub fn aim_at(&mut self, target: &Arc<Running>) {
        for hold in &self.holds {
            hold.aim_at(target);
        }
        self.target = Some(target.clone());
    }
}

impl Table {
    /// Returns the group of a subscription with this wish.
    pub fn key_of(&self, wish: &WatchSpec) -> Key {
        // An empty selector selects everything, like a missing one.
        let some = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        Key {
            kind: wish.kind.clone(),
            namespace: some(&wish.namespace).filter(|_| !self.cluster_scoped.contains(&wish.kind)),
            label_selector: some(&wish.label_selector),
            field_selector: some(&wish.field_selector),
        }
    }

    /// Moves the subscriptions of a kind to their groups. Returns the groups whose members changed.
    pub fn regroup(&mut self, kind: &Gvk) -> HashSet<Key> {
        let (mut affected, mut lost) = (HashSet::new(), Vec::new());
        let keys: Vec<Key> = self.groups.keys().cloned().collect();
        for key in keys.into_iter().filter(|key| key.kind == *kind) {
            let Some(mut group) = self.groups.remove(&key) else {
                continue;
            };
            let (stay, leave): (Vec<_>, Vec<_>) = std::mem::take(&mut group.holds)
                .into_iter()
                .partition(|hold| self.key_of(hold.wish()) == key);
            if !leave.is_empty() {
                affected.insert(key.clone());
            }
            lost.extend(leave);
            group.holds = stay;
            self.groups.insert(key, group);
        }
        for hold in lost {
            let key = self.key_of(hold.wish());
            affected.insert(key.clone());
            self.groups.entry(key).or_default().holds.push(hold);
        }
        affected
    }
}
