//! The members of a host: those that are engaged, and what is known of each cluster that was found.
//! The state of each is shown in logs, metrics and `vmhost status`. This module must not know how a
//! cluster is found, nor what runs in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::site::place::Site;

/// A cluster besides the host's own, as the state document shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterState {
    /// Its name.
    pub name: String,
    /// `connecting` until its first lists, `up`, `ill` if it does not answer or refuses the host,
    /// `refused` if the host does not use it.
    pub phase: String,
    /// Since when it is in this phase: RFC 3339.
    pub since: String,
    /// What is wrong, on one line. Empty if nothing is.
    pub about: String,
    /// Where it was found: `Cluster.v1.openapi.example.com east`.
    pub found: String,
}

/// The members of a host.
#[derive(Default)]
pub(crate) struct Sites {
    engaged: Mutex<Vec<Arc<Site>>>,
    told: Mutex<BTreeMap<String, ClusterState>>,
}

impl Sites {
    /// The members that plugins may work in now.
    pub(crate) fn engaged(&self) -> Vec<Arc<Site>> {
        self.engaged.lock().clone()
    }

    /// The member of this number.
    pub(crate) fn of(&self, number: u64) -> Option<Arc<Site>> {
        let engaged = self.engaged.lock();
        let mut sites = engaged.iter();
        sites.find(|site| site.member.number == number).cloned()
    }

    /// Adds a member.
    pub(crate) fn add(&self, site: Arc<Site>) {
        self.engaged.lock().push(site);
    }

    /// Removes a member.
    pub(crate) fn remove(&self, site: &Arc<Site>) {
        self.engaged
            .lock()
            .retain(|other| !Arc::ptr_eq(other, site));
    }

    /// The state of each cluster that was found, by name.
    pub(crate) fn states(&self) -> Vec<ClusterState> {
        self.told.lock().values().cloned().collect()
    }

    /// Returns whether the cluster of this name works.
    pub(crate) fn is_up(&self, name: &str) -> bool {
        self.told
            .lock()
            .get(name)
            .is_some_and(|state| state.phase == UP)
    }

    /// Sets the state of a cluster. Returns whether that is news.
    pub(crate) fn tell(&self, name: &str, phase: &str, about: &str, found: &str) -> bool {
        let mut told = self.told.lock();
        let is_known = |state: &&mut ClusterState| state.phase == phase && state.found == found;
        let before = told.get_mut(name).filter(is_known);
        match before {
            Some(state) if state.about == about => false,
            Some(state) => {
                about.clone_into(&mut state.about);
                true
            }
            None => {
                let state = ClusterState {
                    name: name.to_owned(),
                    phase: phase.to_owned(),
                    since: Timestamp::now().to_string(),
                    about: about.to_owned(),
                    found: found.to_owned(),
                };
                told.insert(name.to_owned(), state);
                true
            }
        }
    }

    /// Forgets a cluster that is gone.
    pub(crate) fn forget(&self, name: &str) {
        self.told.lock().remove(name);
    }
}

/// The phase of a cluster whose first lists have not come yet.
pub(crate) const CONNECTING: &str = "connecting";
/// The phase of a cluster that works.
pub(crate) const UP: &str = "up";
/// The phase of a cluster that does not answer, or refuses the host.
pub(crate) const ILL: &str = "ill";
/// The phase of a cluster that the host does not use.
pub(crate) const REFUSED: &str = "refused";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_news() {
        let sites = Sites::default();
        assert!(sites.tell("east", CONNECTING, "", "a"));
        assert!(sites.tell("east", ILL, "no answer", "a"));
        assert!(!sites.tell("east", ILL, "no answer", "a"));
        let since = sites.states()[0].since.clone();
        assert!(sites.tell("east", ILL, "401", "a"));
        assert_eq!(sites.states()[0].since, since, "it is as ill as before");
        assert!(!sites.is_up("east"));
        assert!(sites.tell("east", UP, "", "a") && sites.is_up("east"));
        sites.forget("east");
        assert!(sites.states().is_empty() && !sites.is_up("east"));
    }
}
