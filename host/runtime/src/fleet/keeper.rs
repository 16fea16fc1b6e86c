//! Keeps one cluster: connects to it, finds out which cluster it is, lets plugins work in it, looks
//! again now and then whether it answers, and leaves it.
//!
//! ```text
//! connect -> check -> identify --new, or another cluster--> (leave) -> engage -> first lists
//!    ^                    \------the same cluster---------> new credentials under the old stores
//!    |                                                          |
//!    \--- kubeconfig changed; or it failed: back-off <--- look again, every 20 s
//! ```
//! It must not know where kubeconfigs come from.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};
use vmhost_cluster::{Connection, Target};
use vmhost_core::chain_line;

use super::found::Found;
use super::identity::{check, identify, uid};
use super::line::Spot;
use super::report::Trouble;
use super::shared::Fleet;
use crate::observe::informers::Observer;
use crate::observe::trace::CurrentSpan;
use crate::site::member::{Labels, Member};
use crate::site::place::Site;

/// The pause between two looks at a cluster that works.
const LOOK: Duration = Duration::from_secs(20);

/// The first pause after a failure. Each further one is twice as long.
const FIRST: Duration = Duration::from_secs(1);

/// The longest pause after a failure. With the time of a check, what is mended is noticed within a
/// minute.
const LONGEST: Duration = Duration::from_secs(30);

/// How long the first lists of a cluster may hold up those of others.
const FIRST_LISTS: Duration = Duration::from_secs(10);

/// How long the first lists of the host's own cluster may hold up the members.
const HOME_FIRST: Duration = Duration::from_secs(10);

/// Keeps one cluster.
struct Keeper {
    fleet: Arc<Fleet>,
    /// The name of the cluster.
    name: String,
    engaged: Option<Engaged>,
    /// Its place in the line, until it has a cluster.
    spot: Option<Spot>,
    /// The next pause after a failure.
    pause: Duration,
}

/// A cluster that plugins work in.
struct Engaged {
    site: Arc<Site>,
    identity: String,
    /// The way to its server, as the kubeconfig names it.
    route: String,
    target: Target,
    stamp: u64,
    labels: Labels,
}

/// Prepares for members: the stores of the host's own cluster are filled first, for a while, and it
/// is found out which cluster that is.
pub(super) async fn prepare(fleet: &Fleet) {
    let _ = timeout(HOME_FIRST, fleet.plugins.filled_at_home()).await;
    // A home that cannot be asked now is asked again before a cluster is engaged.
    know_home(fleet).await;
}

/// Finds out which cluster is the host's own one, unless that is known. Without an answer it stays
/// unknown; its stores tell what is wrong.
async fn know_home(fleet: &Fleet) {
    if fleet.home.get().is_none()
        && let Ok(identity) = identify(&fleet.at_home).await
    {
        // Another task may have been first, with the same answer.
        let _ = fleet.home.set(identity);
    }
}

/// Keeps a cluster until nobody finds it any more. `before` ends when a cluster of the same name
/// that was there before has been left.
pub(super) async fn keep(
    fleet: Arc<Fleet>,
    mut found: watch::Receiver<Found>,
    before: Option<oneshot::Receiver<()>>,
) {
    if let Some(before) = before {
        // It tells by its end.
        let _ = before.await;
    }
    let name = found.borrow().name.clone();
    fleet.reporter.begins(&found.borrow());
    let spot = fleet.line.enter(&found.borrow());
    let mut keeper = Keeper {
        fleet,
        name,
        engaged: None,
        spot: Some(spot),
        pause: FIRST,
    };
    loop {
        let wanted = found.borrow_and_update().clone();
        let pause = tokio::select! {
            biased;
            changed = found.changed() => match changed {
                Ok(()) => continue,
                Err(_) => break,
            },
            pause = keeper.look(&wanted) => pause,
        };
        tokio::select! {
            changed = found.changed() => if changed.is_err() {
                break;
            },
            () = sleep(pause) => {}
        }
    }
    keeper.leave();
    keeper.fleet.reporter.gone(&keeper.name);
}

impl Keeper {
    /// Looks at the cluster once, and reports what it finds. Returns the pause until the next look.
    async fn look(&mut self, wanted: &Found) -> Duration {
        let followed = self.follow(wanted).await;
        // A cluster that does not answer yet keeps its place for a while.
        let is_ill = matches!(followed, Err(Trouble::Ill(_)));
        self.spot.take_if(|spot| !is_ill || spot.is_old());
        match followed {
            Ok(about) => {
                self.pause = FIRST;
                if let Some(engaged) = &self.engaged {
                    engaged.site.member.answers();
                }
                self.fleet.reporter.works(wanted, &about);
                spread(LOOK)
            }
            Err(trouble) => {
                if matches!(trouble, Trouble::Refused(_)) {
                    self.leave();
                }
                self.fleet.reporter.fails(wanted, &trouble);
                let pause = self.pause;
                self.pause = (pause * 2).min(LONGEST);
                spread(pause)
            }
        }
    }

    /// Does what the found cluster asks for. Returns what it came to, in words. It may be dropped
    /// at any time.
    async fn follow(&mut self, wanted: &Found) -> Result<String, Trouble> {
        // A look that was dropped may have left a claim to a cluster in which nothing works.
        let engaged = self.engaged.as_ref();
        self.free_all_but(engaged.map_or("", |engaged| engaged.identity.as_str()));
        let target = wanted.target.as_ref();
        let target = target.map_err(|why| Trouble::Refused(why.clone()))?;
        let is_known =
            |engaged: &&Engaged| engaged.target == *target && engaged.stamp == wanted.stamp;
        let Some(engaged) = self.engaged.as_ref().filter(is_known) else {
            return self.connect(target, wanted).await;
        };
        // A kubeconfig that named another server may have been taken back.
        engaged.site.member.doubt(false);
        if engaged.labels != wanted.labels {
            let connection = engaged.site.connection.clone();
            let cluster = (engaged.identity.clone(), engaged.route.clone());
            // Its labels say which plugins work there, whether it answers or not.
            let checked = check(&connection).await;
            let about = self.engage(connection, cluster, target, wanted).await;
            return checked.map(|()| about);
        }
        let connection = &engaged.site.connection;
        check(connection).await?;
        // Each time: a cluster may be replaced behind its address between two looks, and the stores
        // of the old one must not go on from its versions. Without an answer it is as it was.
        if let Some(now) = uid(connection).await?
            && now != engaged.identity
        {
            return self.connect(target, wanted).await;
        }
        Ok(connection.describe().to_owned())
    }

    /// Connects by a kubeconfig that is new.
    async fn connect(&mut self, target: &Target, wanted: &Found) -> Result<String, Trouble> {
        let connection = target.connect().await;
        // What is wrong with a kubeconfig stays so until it changes, but files may be mended.
        let refused = |text: String| match target {
            Target::Text(_) => Trouble::Refused(text),
            Target::Files(_) => Trouble::Ill(text),
        };
        let connection = connection.map_err(|error| refused(chain_line(&error)))?;
        // Until the new server says which cluster it is, the old one gets no write: the name may
        // stand for another cluster already.
        if let Some(engaged) = &self.engaged {
            let is_elsewhere = engaged.route != connection.route();
            engaged.site.member.doubt(is_elsewhere);
        }
        check(&connection).await?;
        let identity = identify(&connection).await?;
        know_home(&self.fleet).await;
        if let Some(spot) = &self.spot {
            spot.turn().await;
        }
        self.claim(&identity, wanted)?;
        // The first lists may take long.
        self.spot = None;
        if let Some(engaged) = &self.engaged {
            engaged.site.member.doubt(engaged.identity != identity);
        }
        let route = connection.route().to_owned();
        if let Some(engaged) = &mut self.engaged
            && engaged.identity == identity
            && engaged.labels == wanted.labels
        {
            let changed = engaged.site.connection.change(target).await;
            changed.map_err(|error| refused(chain_line(&error)))?;
            (engaged.target, engaged.stamp) = (target.clone(), wanted.stamp);
            engaged.route = route;
            let name = &wanted.name;
            tracing::info!("cluster {name}: new credentials, with the same stores and watches");
            return Ok(connection.describe().to_owned());
        }
        let cluster = (identity, route);
        Ok(self.engage(connection, cluster, target, wanted).await)
    }

    /// Lets plugins work in the cluster of this connection, identity and route, and in no other.
    /// Waits a while for its first lists.
    async fn engage(
        &mut self,
        connection: Connection,
        (identity, route): (String, String),
        target: &Target,
        wanted: &Found,
    ) -> String {
        let fleet = self.fleet.clone();
        let plugins = &fleet.plugins;
        // The semaphore is never closed.
        let _place = fleet.lists.acquire().await;
        // From here to the end of the engagement nothing is awaited: either all of it happens, or
        // none.
        self.end();
        self.free_all_but(&identity);
        let is_home = fleet.home.get() == Some(&identity);
        let describe = match is_home {
            true => format!("{}, the host's own cluster", connection.describe()),
            false => connection.describe().to_owned(),
        };
        let metrics = plugins.metrics.clone();
        // Without an exporter no request has a span.
        let connection = connection
            .with_observer(metrics.clone())
            .with_traces(Arc::new(CurrentSpan))
            .with_streaming_lists(fleet.settings.streaming_lists);
        let site = Site::open(
            Member::new(&wanted.name, &wanted.labels, is_home),
            connection,
            Arc::new(Observer::of(metrics.clone(), &wanted.name)),
            plugins.loader.config.watch_silence,
            metrics.live_reads.clone(),
        );
        plugins.engage(&site);
        self.engaged = Some(Engaged {
            site: site.clone(),
            identity,
            route,
            target: target.clone(),
            stamp: wanted.stamp,
            labels: wanted.labels.clone(),
        });
        // A cluster that is slow to list holds up no other any longer.
        let _ = timeout(FIRST_LISTS, plugins.filled(&site)).await;
        describe
    }

    /// Takes an identity for this cluster. Refuses one that another cluster has.
    fn claim(&self, identity: &str, wanted: &Found) -> Result<(), Trouble> {
        // An object may name the host's own cluster; a file that does is another name for it.
        if wanted.carrier.is_none() && self.fleet.home.get().is_some_and(|home| home == identity) {
            return Err(Trouble::Refused(
                "it is the host's own cluster under another name".to_owned(),
            ));
        }
        let mut identities = self.fleet.identities.lock();
        match identities.get(identity) {
            Some(other) if *other != wanted.name => Err(Trouble::Refused(format!(
                "it is the same cluster as {other}, which has it already"
            ))),
            _ => {
                identities.insert(identity.to_owned(), wanted.name.clone());
                Ok(())
            }
        }
    }

    /// Frees what this cluster was before for another name, now that nothing works there.
    fn free_all_but(&self, identity: &str) {
        let mut identities = self.fleet.identities.lock();
        identities.retain(|of, name| *name != self.name || of == identity);
    }

    /// Ends all work in the cluster.
    fn end(&mut self) {
        if let Some(engaged) = self.engaged.take() {
            self.fleet.plugins.disengage(&engaged.site);
        }
    }

    /// Ends all work in the cluster, which may have another name from now on.
    fn leave(&mut self) {
        let mut identities = self.fleet.identities.lock();
        identities.retain(|_, name| *name != self.name);
        drop(identities);
        self.end();
    }
}

impl Drop for Keeper {
    /// After a panic the roster begins another task for the cluster: what this one worked in must
    /// have ended by then. At the host's end the turns that run are waited for instead.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.leave();
        }
    }
}

/// A pause of about this length, so that many clusters are not looked at in step.
fn spread(pause: Duration) -> Duration {
    pause.mul_f64(0.75 + fastrand::f64() / 4.0)
}
