//! What hosts say about themselves in the status of a `Plugin`: each writes its own entry, and
//! again after a while, so that the leader can remove those of hosts that are gone. No clock is
//! compared with another host's. It must not know how a status is written.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::status::Host;

/// How often a host says again what it said.
pub(crate) const AGAIN: Duration = Duration::from_secs(600);

/// How long an entry stays that its host does not renew.
const GONE: Duration = Duration::from_secs(1800);

/// The entries that this host has seen, each with its own time, and when that changed last by the
/// clock of this host.
#[derive(Default)]
pub(crate) struct Seen(HashMap<String, (String, Instant)>);

impl Seen {
    /// Looks at the entries. Returns the names of the hosts that are gone.
    pub(crate) fn look(&mut self, hosts: &[Host], own: &str, now: Instant) -> Vec<String> {
        self.0
            .retain(|name, _| hosts.iter().any(|host| host.name == *name));
        let mut gone = Vec::new();
        for host in hosts.iter().filter(|host| host.name != own) {
            let entry = self.0.entry(host.name.clone());
            let (said, since) = entry.or_insert_with(|| (host.seen.clone(), now));
            if *said != host.seen {
                (*said, *since) = (host.seen.clone(), now);
            }
            if now.duration_since(*since) >= GONE {
                gone.push(host.name.clone());
            }
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, seen: &str) -> Host {
        Host {
            name: name.to_owned(),
            seen: seen.to_owned(),
            ..Host::default()
        }
    }

    #[test]
    fn a_host_that_says_nothing_any_more_is_gone() {
        let mut all = Seen::default();
        let start = Instant::now();
        let hosts = |live: &str| [host("own", "0"), host("live", live), host("dead", "0")];
        assert!(all.look(&hosts("0"), "own", start).is_empty());
        let later = start + GONE - Duration::from_secs(1);
        assert!(all.look(&hosts("1"), "own", later).is_empty());
        let at_last = start + GONE;
        assert_eq!(all.look(&hosts("1"), "own", at_last), ["dead"]);
        assert!(all.look(&[host("own", "0")], "own", at_last).is_empty());
        assert!(
            all.look(&hosts("1"), "own", at_last).is_empty(),
            "it came back"
        );
    }
}
