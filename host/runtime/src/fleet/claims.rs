//! Which name has which cluster: two names of one cluster must not both work in it.
//!
//! The first name that claims a cluster has it. If an object that carries a kubeconfig is older
//! than the one that has the cluster, the cluster goes over to it at the next look of the other, so
//! that a host that starts again ends with the same names, and nobody takes over a cluster by a new
//! object. This module must not know how a cluster is reached.

use std::collections::HashMap;

use parking_lot::Mutex;

/// The claims, by the identity of the cluster: equal clusters have equal ones.
#[derive(Default)]
pub(super) struct Claims(Mutex<HashMap<String, Claim>>);

struct Claim {
    holder: Claimant,
    /// An older one that waits until the holder has left.
    older: Option<Claimant>,
    /// Whether the holder was given the cluster and has not claimed it since.
    given: bool,
}

/// A name that claims a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claimant {
    /// The name of the cluster.
    pub(super) name: String,
    /// When the object that carries the kubeconfig was created, as the API server writes times.
    /// `None` if no object carries it.
    pub(super) since: Option<String>,
}

impl Claimant {
    /// Returns whether this one was there before the other. Times are whole seconds: of two with
    /// the same time, none was.
    fn is_older(&self, other: &Self) -> bool {
        match (&self.since, &other.since) {
            (Some(one), Some(other)) => one < other,
            _ => false,
        }
    }
}

impl Claims {
    /// Takes a cluster for a name. Fails with the name that has it.
    pub(super) fn take(&self, identity: &str, by: &Claimant) -> Result<(), String> {
        let mut claims = self.0.lock();
        let Some(claim) = claims.get_mut(identity) else {
            let claim = Claim {
                holder: by.clone(),
                older: None,
                given: false,
            };
            claims.insert(identity.to_owned(), claim);
            return Ok(());
        };
        if claim.holder.name == by.name {
            (claim.holder, claim.given) = (by.clone(), false);
            return Ok(());
        }
        let best = claim.older.as_ref().unwrap_or(&claim.holder);
        if by.is_older(best) {
            claim.older = Some(by.clone());
        }
        Err(claim.holder.name.clone())
    }

    /// Returns whether an older one waits for a cluster that this name has.
    pub(super) fn has_older(&self, identity: &str, name: &str) -> bool {
        let claims = self.0.lock();
        let claim = claims.get(identity);
        claim.is_some_and(|claim| claim.holder.name == name && claim.older.is_some())
    }

    /// Gives a cluster that this name has to an older one that waits for it. Returns the name of
    /// that one. Nothing may work in the cluster under the first name any more.
    pub(super) fn give_way(&self, identity: &str, name: &str) -> Option<String> {
        let mut claims = self.0.lock();
        let claim = claims.get_mut(identity)?;
        if claim.holder.name != name {
            return None;
        }
        claim.holder = claim.older.take()?;
        claim.given = true;
        Some(claim.holder.name.clone())
    }

    /// Frees what this name has, but for one cluster, and for one that it was given.
    pub(super) fn free_all_but(&self, identity: &str, name: &str) {
        let mut claims = self.0.lock();
        claims.retain(|of, claim| claim.holder.name != name || of == identity || claim.given);
    }

    /// Frees all that this name has. It goes on waiting for what it waits for.
    pub(super) fn free(&self, name: &str) {
        let mut claims = self.0.lock();
        claims.retain(|_, claim| claim.holder.name != name);
    }

    /// Frees all that this name has or waits for.
    pub(super) fn leave(&self, name: &str) {
        self.free(name);
        for claim in self.0.lock().values_mut() {
            claim.older.take_if(|older| older.name == name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claimant(name: &str, since: Option<&str>) -> Claimant {
        Claimant {
            name: name.to_owned(),
            since: since.map(str::to_owned),
        }
    }

    const EARLY: Option<&str> = Some("2026-01-01T00:00:00Z");
    const LATE: Option<&str> = Some("2026-01-01T00:00:01Z");

    #[test]
    fn the_second_name_of_a_cluster_is_refused() {
        for since in [None, EARLY, LATE] {
            let claims = Claims::default();
            assert_eq!(claims.take("c", &claimant("east", EARLY)), Ok(()));
            let twin = claimant("a-twin", since);
            assert_eq!(claims.take("c", &twin), Err("east".to_owned()));
            assert_eq!(claims.give_way("c", "east"), None, "{since:?}");
            assert_eq!(claims.take("c", &claimant("east", EARLY)), Ok(()));
            claims.leave("east");
            assert_eq!(claims.take("c", &twin), Ok(()));
        }
    }

    #[test]
    fn a_cluster_goes_over_to_the_older_object() {
        let claims = Claims::default();
        let (east, twin) = (claimant("east", EARLY), claimant("a-twin", LATE));
        assert_eq!(claims.take("c", &twin), Ok(()));
        assert_eq!(claims.take("c", &east), Err("a-twin".to_owned()));
        claims.free("east");
        assert!(claims.has_older("c", "a-twin"));
        assert_eq!(claims.give_way("c", "a-twin").as_deref(), Some("east"));
        // The former holder leaves, and tries again before the new one has come.
        claims.free("a-twin");
        claims.free_all_but("", "east");
        assert_eq!(claims.take("c", &twin), Err("east".to_owned()));
        assert_eq!(claims.take("c", &east), Ok(()));
        assert_eq!(claims.give_way("c", "east"), None);
        claims.free_all_but("", "east");
        assert_eq!(claims.take("c", &twin), Ok(()));
    }

    #[test]
    fn one_that_is_gone_is_not_waited_for() {
        let claims = Claims::default();
        let (east, twin) = (claimant("east", EARLY), claimant("a-twin", LATE));
        assert_eq!(claims.take("c", &twin), Ok(()));
        assert!(claims.take("c", &east).is_err());
        claims.leave("east");
        assert_eq!(claims.give_way("c", "a-twin"), None);
        // It was given the cluster, and its object is gone before it came.
        assert!(claims.take("c", &east).is_err());
        assert!(claims.give_way("c", "a-twin").is_some());
        claims.leave("east");
        assert_eq!(claims.take("c", &twin), Ok(()));
    }
}
