//! Finds clusters besides the host's own, connects to them, and keeps the plugins' controllers in
//! them: `--clusters`.
//!
//! ```text
//! source      where kubeconfigs are: contexts, files, Secrets, ClusterProfiles, a field of any
//!   |         object
//!   |
//! found       a cluster: its name, its labels, its kubeconfig
//!   |
//! roster      which clusters begin, change and end; a task for each
//!   |
//! keeper      connect, check, tell clusters apart, engage, look again, leave
//!   |
//! line        the order in which they are told apart: of two names the older one has a cluster
//! ```
//! No cluster hurts another: each has a task, a connection and informers of its own, and only the
//! first lists have a limit in common, four at a time, after those of home. A cluster that does not
//! answer is reported by its name, and tried again for ever.
//!
//! All clusters are fenced by the one lease at home: a host that does not lead writes to none of
//! them. So two hosts that work in one member must have the same home and the same lease.
//!
//! This room must not know what runs in a cluster.

use std::sync::Arc;

use tokio::sync::Notify;
use vmhost_cluster::{Connection, Recorder};

use crate::deploy::plugins::Plugins;

mod files;
mod found;
mod identity;
mod keeper;
mod line;
mod objects;
mod profiles;
mod report;
mod roster;
mod settings;
mod shared;
pub mod source;

use files::Files;
use objects::Objects;
use profiles::Profiles;
use roster::Look;
pub use settings::Settings;
use shared::Fleet;
use source::Source;

/// Finds clusters and keeps them from now on, until the host closes. `home` is the connection to
/// the host's own cluster.
pub fn start(plugins: &Arc<Plugins>, home: &Connection, settings: Settings) {
    if settings.sources.is_empty() {
        return warn_of_members(plugins);
    }
    let bell = Arc::new(Notify::new());
    let allowed: Arc<[String]> = settings.allowed.clone().into();
    let look = |source: &Source| -> Look {
        let informers = &plugins.informers;
        let (bell, allowed) = (bell.clone(), allowed.clone());
        match source {
            Source::Contexts => Look::Polled(Files::contexts(&settings.home)),
            Source::Files(pattern) => Look::Polled(Files::matching(pattern)),
            Source::Secrets(namespace) => {
                let namespace = namespace.as_deref().unwrap_or(home.default_namespace());
                Look::Watched(Objects::secrets(informers, namespace, allowed, bell))
            }
            Source::Profiles(namespace) => {
                let namespace = namespace.as_deref().unwrap_or(home.default_namespace());
                Look::Profiles(Profiles::watch(informers, namespace, allowed, &bell))
            }
            Source::Field(kind, path) => {
                Look::Watched(Objects::field(informers, kind, path, allowed, bell))
            }
        }
    };
    let looks: Vec<Look> = settings.sources.iter().map(look).collect();
    let config = &plugins.loader.config;
    let recorder = Recorder::new(
        home.events(),
        "vmhost",
        plugins.metrics.clone(),
        config.events,
    );
    let fleet = Fleet::new(plugins.clone(), home.clone(), settings, recorder);
    plugins.follow(async move {
        keeper::prepare(&fleet).await;
        let keep = |(found, before): roster::Given| keeper::keep(fleet.clone(), found, before);
        roster::run(looks, bell, keep).await;
    });
}

/// Warns about controllers that have no cluster to work in.
fn warn_of_members(plugins: &Plugins) {
    for slot in plugins.slots() {
        let generation = slot.current();
        let mut controllers = generation.description().controllers.iter();
        if let Some(controller) = controllers.find(|of| !of.clusters.is_home()) {
            tracing::warn!(
                plugin = slot.name,
                "the controller {} works in member clusters, and there are none without --clusters",
                controller.name
            );
        }
    }
}
