//! The roster of clusters: looks where they are found, and begins, changes and ends a task for
//! each. It must not know what a task does.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{sleep, timeout};

use super::files::Files;
use super::found::{Found, is_name};
use super::objects::Objects;
use super::profiles::Profiles;

/// How often files are read. The cluster of a file that is removed is left within five seconds.
const POLL: Duration = Duration::from_secs(4);

/// How long the objects of a burst of changes are collected.
const SETTLE: Duration = Duration::from_millis(100);

/// How long a source whose objects are not listed holds up those of others at the start.
const FIRST_LISTS: Duration = Duration::from_secs(10);

/// The pause before the task of a cluster that panicked begins anew.
const AFTER_PANIC: Duration = Duration::from_secs(1);

/// The most warnings that are remembered: names of objects are in them, and there may always be
/// others.
const WARNED: usize = 1000;

/// Where clusters are found.
pub(super) enum Look {
    /// Files, which are read now and then.
    Polled(Files),
    /// Objects, which tell when they change.
    Watched(Objects),
    /// ClusterProfiles, which tell when they change, but not that there are no Secrets for them.
    Profiles(Profiles),
}

/// A cluster with a task.
struct Kept {
    found: watch::Sender<Found>,
    /// Ends with the task.
    ended: oneshot::Receiver<()>,
}

/// What a task is given: the cluster, and what ends when another one of the same name has been
/// left.
pub(super) type Given = (watch::Receiver<Found>, Option<oneshot::Receiver<()>>);

/// The clusters that have tasks.
struct Roster<B> {
    /// Makes the task of a cluster, which ends when the sender of the cluster is dropped.
    begin: B,
    kept: BTreeMap<String, Kept>,
    /// Clusters that are being left, by name.
    ending: BTreeMap<String, oneshot::Receiver<()>>,
    /// The tasks; dropped with this.
    tasks: JoinSet<()>,
    /// What was warned of.
    warned: HashSet<String>,
}

/// Follows where clusters are found, until the host closes. `begin` makes the task of a cluster.
pub(super) async fn run<B, F>(looks: Vec<Look>, bell: Arc<Notify>, begin: B)
where
    B: Fn(Given) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let is_watched = |look: &Look| matches!(look, Look::Watched(_));
    let is_polled = !looks.iter().all(is_watched);
    let looks = Arc::new(looks);
    let mut roster = Roster {
        begin,
        kept: BTreeMap::new(),
        ending: BTreeMap::new(),
        tasks: JoinSet::new(),
        warned: HashSet::new(),
    };
    // The older of two objects must not come later.
    let _ = timeout(FIRST_LISTS, join_all(looks.iter().map(Look::listed))).await;
    let mut last: Vec<Vec<Found>> = looks.iter().map(|_| Vec::new()).collect();
    loop {
        let looked = looks.clone();
        // Off this thread: files are read, and large objects parsed.
        let all = spawn_blocking(move || looked.iter().map(Look::look).collect::<Vec<_>>()).await;
        for (last, now) in last.iter_mut().zip(all.unwrap_or_default()) {
            match now {
                Ok(found) => *last = found,
                // What was found before stays.
                Err(why) => roster.warn(format!("--clusters: {why}; trying again")),
            }
        }
        let wanted = roster.unique(&last);
        roster.apply(wanted);
        let poll = async {
            match is_polled {
                true => sleep(POLL).await,
                false => std::future::pending().await,
            }
        };
        tokio::select! {
            () = bell.notified() => sleep(SETTLE).await,
            () = poll => {}
            // One that panicked begins anew, although nothing changes.
            ended = roster.tasks.join_next(), if !roster.tasks.is_empty() => {
                if let Some(Err(error)) = ended {
                    tracing::error!("the task of a cluster ended: {error}");
                    sleep(AFTER_PANIC).await;
                }
            }
        }
    }
}

impl Look {
    /// Waits until all objects of the source are there.
    async fn listed(&self) {
        match self {
            Self::Polled(_) => {}
            Self::Watched(objects) => objects.listed().await,
            Self::Profiles(profiles) => profiles.listed().await,
        }
    }

    fn look(&self) -> Result<Vec<Found>, String> {
        match self {
            Self::Polled(files) => files.look(),
            Self::Watched(objects) => Ok(objects.look()),
            Self::Profiles(profiles) => Ok(profiles.look()),
        }
    }
}

impl<B, F> Roster<B>
where
    B: Fn(Given) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    /// The clusters by name. Of two with one name the one that has it already is taken, else the
    /// older one: a new object must not take over a cluster that is worked in.
    fn unique(&mut self, all: &[Vec<Found>]) -> BTreeMap<String, Found> {
        let has_it = |found: &Found| {
            let kept = self.kept.get(&found.name);
            kept.is_some_and(|kept| kept.found.borrow().place == found.place)
        };
        let (mut sorted, mut others): (Vec<&Found>, Vec<&Found>) =
            all.iter().flatten().partition(|found| has_it(found));
        others.sort_by(|a, b| a.born.cmp(&b.born));
        sorted.extend(others);
        let mut wanted: BTreeMap<String, Found> = BTreeMap::new();
        for found in sorted {
            match wanted.get(&found.name) {
                Some(first) => self.warn(format!(
                    "--clusters: {} and {} both name a cluster {:?}; using the first",
                    first.place, found.place, found.name
                )),
                None if !is_name(&found.name) => self.warn(format!(
                    "--clusters: {} names no cluster: its name has other characters than printable ASCII",
                    found.place
                )),
                None => drop(wanted.insert(found.name.clone(), found.clone())),
            }
        }
        wanted
    }

    /// Begins, changes and ends tasks, so that there is one for each of these clusters.
    fn apply(&mut self, mut wanted: BTreeMap<String, Found>) {
        while let Some(ended) = self.tasks.try_join_next() {
            if let Err(error) = ended {
                tracing::error!("the task of a cluster ended: {error}");
            }
        }
        let kept = std::mem::take(&mut self.kept);
        for (name, task) in kept {
            match wanted.remove(&name) {
                // A task that panicked begins anew.
                Some(found) if task.found.is_closed() => self.begin(found, None),
                Some(found) => {
                    task.found.send_if_modified(|present| {
                        let differs = *present != found;
                        *present = found;
                        differs
                    });
                    self.kept.insert(name, task);
                }
                // The task ends when its sender is dropped.
                None => drop(self.ending.insert(name, task.ended)),
            }
        }
        for (name, found) in wanted {
            let before = self.ending.remove(&name);
            self.begin(found, before);
        }
        self.ending.retain(|_, ended| {
            matches!(ended.try_recv(), Err(oneshot::error::TryRecvError::Empty))
        });
    }

    fn begin(&mut self, found: Found, before: Option<oneshot::Receiver<()>>) {
        let name = found.name.clone();
        let (sender, receiver) = watch::channel(found);
        let (ends, ended) = oneshot::channel();
        let task = (self.begin)((receiver, before));
        self.tasks.spawn(async move {
            task.await;
            // Tasks that wait for the end learn it from this.
            drop(ends);
        });
        let kept = Kept {
            found: sender,
            ended,
        };
        self.kept.insert(name, kept);
    }

    /// Warns of something once.
    fn warn(&mut self, text: String) {
        if !self.warned.contains(&text) {
            tracing::warn!("{text}");
            if self.warned.len() >= WARNED {
                self.warned.clear();
            }
            self.warned.insert(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::member::Labels;

    fn found(name: &str, place: &str) -> Found {
        Found {
            name: name.to_owned(),
            born: String::new(),
            labels: Labels::new(),
            target: Err("nowhere".to_owned()),
            stamp: 0,
            place: place.to_owned(),
            carrier: None,
        }
    }

    #[tokio::test]
    async fn a_name_stays_with_the_cluster_that_has_it() {
        let mut roster = Roster {
            begin: |given: Given| async move {
                let _given = given;
                std::future::pending::<()>().await;
            },
            kept: BTreeMap::new(),
            ending: BTreeMap::new(),
            tasks: JoinSet::new(),
            warned: HashSet::new(),
        };
        let (one, two) = (found("east", "a/east"), found("east", "b/east"));
        for (all, taken) in [
            (vec![two.clone()], "b/east"),
            (vec![one.clone(), two.clone()], "b/east"),
            (vec![one.clone()], "a/east"),
            (vec![one, two], "a/east"),
        ] {
            let wanted = roster.unique(&[all]);
            assert_eq!(wanted["east"].place, taken);
            roster.apply(wanted);
        }
        assert_eq!(roster.kept.len(), 1);
        assert_eq!(roster.warned.len(), 2);
    }
}
