//! What the tasks of all clusters share. Each uses its own part of it only for a moment.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use vmhost_cluster::{Connection, Recorder};

use super::line::Line;
use super::report::Reporter;
use super::settings::Settings;
use crate::deploy::plugins::Plugins;

/// How many clusters fill their stores for the first time at once. All lists are read on one
/// thread.
const FIRST_LISTS: usize = 4;

/// What the tasks of all clusters share.
pub(super) struct Fleet {
    /// The plugins, which work in the clusters.
    pub(super) plugins: Arc<Plugins>,
    /// The operator's settings.
    pub(super) settings: Settings,
    /// Reports the state of clusters.
    pub(super) reporter: Reporter,
    /// The name of the cluster that has each identity: equal clusters have equal ones.
    pub(super) identities: Mutex<HashMap<String, String>>,
    /// Those that do not know yet which cluster they are.
    pub(super) line: Line,
    /// The connection to the host's own cluster.
    pub(super) at_home: Connection,
    /// The identity of the host's own cluster, once it is known.
    pub(super) home: OnceLock<String>,
    /// Held while a cluster fills its stores for the first time.
    pub(super) lists: Semaphore,
}

impl Fleet {
    /// A fleet without members. `home` is the connection to the host's own cluster.
    pub(super) fn new(
        plugins: Arc<Plugins>,
        home: Connection,
        settings: Settings,
        recorder: Recorder,
    ) -> Arc<Self> {
        Arc::new(Self {
            at_home: home,
            reporter: Reporter {
                sites: plugins.sites.clone(),
                leadership: plugins.leadership.clone(),
                recorder,
            },
            plugins,
            settings,
            identities: Mutex::default(),
            line: Line::default(),
            home: OnceLock::new(),
            lists: Semaphore::new(FIRST_LISTS),
        })
    }
}
