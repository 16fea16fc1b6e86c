//! Which subscriptions belong together. Plain data: `groups` starts and stops what they share.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use vmhost_core::Gvk;

use super::WatchSpec;
use super::hold::Hold;
use super::running::Running;

#[derive(Default)]
pub(super) struct Table {
    pub groups: HashMap<Key, Group>,
    /// All that were started, and may have ended.
    pub running: Vec<Weak<Running>>,
    /// Kinds whose objects are in no namespace: for them a namespace that was asked for is left out.
    pub cluster_scoped: HashSet<Gvk>,
    pub next: u64,
}

/// What makes two subscriptions share a watch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub kind: Gvk,
    pub namespace: Option<String>,
    pub label_selector: Option<String>,
    pub field_selector: Option<String>,
}

/// Those who share a watch.
#[derive(Default)]
pub(super) struct Group {
    pub holds: Vec<Arc<Hold>>,
    /// The informer that keeps what they want now. Some may still be on its predecessors.
    pub target: Option<Arc<Running>>,
}

impl Group {
    /// From now on all of them are to use this one.
    pub fn aim_at(&mut self, target: &Arc<Running>) {
        for hold in &self.holds {
            hold.aim_at(target);
        }
        self.target = Some(target.clone());
    }
}

impl Table {
    /// Where a subscription with this wish belongs.
    pub fn key_of(&self, wish: &WatchSpec) -> Key {
        // An empty selector selects all, as none does.
        let some = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        Key {
            kind: wish.kind.clone(),
            namespace: some(&wish.namespace).filter(|_| !self.cluster_scoped.contains(&wish.kind)),
            label_selector: some(&wish.label_selector),
            field_selector: some(&wish.field_selector),
        }
    }

    /// Puts the subscriptions of a kind where they belong. Returns the groups that somebody left or came to.
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
