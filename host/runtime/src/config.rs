//! How plugins are run, as the operator wants it. Plain data: the command line makes it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use vmhost_cluster::{EventLimit, WATCH_SILENCE};
use vmhost_core::Limits;
use vmhost_engine::{Compiler, Settings};

/// How plugins are run, whichever cluster it is.
#[derive(Clone, Debug)]
pub struct Config {
    /// Watched namespaces; empty: all.
    pub namespaces: Vec<String>,
    /// How long a watch may be silent.
    pub watch_silence: Duration,
    /// Workers of each controller, if given.
    pub workers: Option<u32>,
    /// Limits of each plugin.
    pub limits: Limits,
    /// How many Normal Events each plugin may write; none: all.
    pub events: Option<EventLimit>,
    /// Bytes of changes that each plugin may keep until it has mapped them.
    pub map_buffer: usize,
    /// Settings by plugin.
    pub settings: HashMap<String, Settings>,
    /// Folder of compiled images; none: nowhere.
    pub cache: Option<PathBuf>,
    /// Where components are compiled: in a child process only if this one's program can be one.
    pub compiler: Compiler,
    /// After how long without a call a plugin is unloaded; none: never.
    pub idle_unload: Option<Duration>,
    /// How long a swap waits for the objects of kinds that are new to the plugin, before it is
    /// tried again.
    pub cache_sync_timeout: Duration,
    /// How long a shutdown may take.
    pub shutdown_timeout: Duration,
    /// Watch the plugins' files?
    pub reload: bool,
    /// May a swap ask for more than the first generation did?
    pub allow_wider: bool,
    /// May a plugin install the CustomResourceDefinitions that it carries?
    pub install_crds: bool,
}

impl Config {
    /// For commands that load a plugin and run nothing.
    pub fn inspecting() -> Self {
        Self {
            namespaces: Vec::new(),
            watch_silence: WATCH_SILENCE,
            workers: None,
            limits: Limits::default(),
            events: None,
            map_buffer: 64 << 20,
            settings: HashMap::new(),
            cache: None,
            compiler: Compiler::Here,
            idle_unload: None,
            cache_sync_timeout: Duration::from_secs(30),
            shutdown_timeout: Duration::ZERO,
            reload: false,
            allow_wider: false,
            install_crds: false,
        }
    }
}
