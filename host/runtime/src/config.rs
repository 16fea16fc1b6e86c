//! The operator's settings for running plugins. Plain data, filled in by the command line. It must
//! not know the flags.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use vmhost_cluster::{EventLimit, WATCH_SILENCE};
use vmhost_core::Limits;
use vmhost_engine::{Compiler, Settings};
use vmhost_http::{Allow, Authorities};

use crate::deploy::history::keep::Keep;
use crate::journal::sensitive::Sensitive;

pub mod book;
pub mod terms;

/// The settings for running plugins. They do not depend on the cluster.
#[derive(Clone, Debug)]
pub struct Config {
    /// The watched namespaces. Empty for all namespaces.
    pub namespaces: Vec<String>,
    /// How long a watch may stay silent before it is restarted.
    pub watch_silence: Duration,
    /// Workers per controller. `None` if each description decides.
    pub workers: Option<u32>,
    /// Limits of each plugin.
    pub limits: Limits,
    /// How many Normal Events each plugin may write. `None` for no limit.
    pub events: Option<EventLimit>,
    /// Bytes of turn records that are kept. 0 keeps none.
    pub record_bytes: usize,
    /// Bytes of unmapped changes that each plugin may buffer.
    pub map_buffer: usize,
    /// The settings of each plugin, by its name.
    pub settings: HashMap<String, Settings>,
    /// The services that plugins may send HTTP requests to, of those that their descriptions name.
    /// Empty for all.
    pub allow_http: Vec<Allow>,
    /// Certificate authorities of these services, besides the machine's.
    pub http_authorities: Authorities,
    /// The values that records show only as hashes, besides those of Secrets and settings: a kind
    /// as for kubectl, or `kind=path` for one field of it.
    pub sensitive: Vec<Sensitive>,
    /// The folder for compiled images. `None` disables the cache.
    pub cache: Option<PathBuf>,
    /// Where the versions of plugins are kept.
    pub history: Keep,
    /// Whether a version that fails all calls soon after its swap is rolled back by itself.
    pub auto_rollback: bool,
    /// Where components are compiled. A child process needs a program that can act as one.
    pub compiler: Compiler,
    /// How long a plugin may go without a call before it is unloaded. `None` disables unloading.
    pub idle_unload: Option<Duration>,
    /// How long a swap waits for the first lists of kinds that are new to the plugin, before the
    /// host retries it.
    pub cache_sync_timeout: Duration,
    /// The time limit of a shutdown.
    pub shutdown_timeout: Duration,
    /// Whether plugin files are watched and reloaded.
    pub reload: bool,
    /// Whether a reloaded plugin may ask for more rights than its first generation did.
    pub allow_wider: bool,
    /// Whether plugins may install the CustomResourceDefinitions that they carry.
    pub install_crds: bool,
    /// Whether the API server can reach the webhooks and conversions of plugins on this host.
    pub serve_webhooks: bool,
    /// Whether the host registers webhooks itself.
    pub register_webhooks: bool,
}

impl Config {
    /// The settings of commands that load a plugin and run nothing.
    pub fn inspecting() -> Self {
        Self {
            namespaces: Vec::new(),
            watch_silence: WATCH_SILENCE,
            workers: None,
            limits: Limits::default(),
            events: None,
            record_bytes: 0,
            map_buffer: 64 << 20,
            settings: HashMap::new(),
            allow_http: Vec::new(),
            http_authorities: Authorities::default(),
            sensitive: Vec::new(),
            cache: None,
            history: Keep::Off,
            auto_rollback: false,
            compiler: Compiler::Here,
            idle_unload: None,
            cache_sync_timeout: Duration::from_secs(30),
            shutdown_timeout: Duration::ZERO,
            reload: false,
            allow_wider: false,
            install_crds: false,
            serve_webhooks: false,
            register_webhooks: false,
        }
    }
}
