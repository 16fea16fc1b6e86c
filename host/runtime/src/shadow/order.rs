//! Starts and ends the shadows of a host, at most one of each plugin at a time. The last shadow of
//! a plugin is kept for its results. This module must not know how turns are compared.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use vmhost_core::{ObjectName, chain_line};

use crate::deploy::loader::Loader;
use crate::deploy::orders::OrderError;
use crate::deploy::plugins::Plugins;
use crate::journal::redact::Redact;
use crate::observe::metrics::Metrics;
use crate::shadow::door::Shadowing;
use crate::shadow::report::{ShadowReport, ShadowTurn};
use crate::shadow::run::{self, Work};
use crate::shadow::running::Shadow;

/// The shadows of a host.
pub struct Shadows {
    plugins: Weak<Plugins>,
    redact: Arc<Redact>,
    all: Mutex<All>,
}

#[derive(Default)]
struct All {
    /// The present or last shadow of each plugin, by the plugin's name.
    of: HashMap<String, Arc<Shadow>>,
    /// Whether the host shuts down, so that no further shadow may start.
    is_closed: bool,
}

impl Shadows {
    /// Creates the shadows of these plugins. `redact` hides sensitive values in their results.
    pub(crate) fn new(plugins: &Arc<Plugins>, redact: Arc<Redact>) -> Arc<Self> {
        Arc::new(Self {
            plugins: Arc::downgrade(plugins),
            redact,
            all: Mutex::default(),
        })
    }

    /// Starts the shadow of a plugin together with the host. The candidate loads in the background:
    /// if that fails, it is logged, and the live version runs on.
    pub fn start_with_host(&self, plugin: &str, component: Vec<u8>) -> anyhow::Result<()> {
        Ok(self.start(plugin, component.into(), None).map(drop)?)
    }

    /// Returns the report on the plugin's present or last shadow. `None` if it had none.
    pub fn report(&self, plugin: &str) -> Option<ShadowReport> {
        self.last(plugin).map(|shadow| shadow.report())
    }

    /// Ends all shadows for good, without waiting for their threads.
    pub(crate) fn close(&self) {
        let all: Vec<Arc<Shadow>> = {
            let mut all = self.all.lock();
            all.is_closed = true;
            all.of.values().cloned().collect()
        };
        for shadow in all {
            shadow.end("vmhost stops");
        }
    }

    /// The plugin's present or last shadow.
    fn last(&self, plugin: &str) -> Option<Arc<Shadow>> {
        self.all.lock().of.get(plugin).cloned()
    }

    /// Adds a new shadow of a plugin. Returns an error if the plugin has a running one.
    fn add(&self, plugins: &Plugins, plugin: &str, lasts: Option<Duration>) -> Added {
        let mut slots = plugins.slots().into_iter();
        let slot = slots
            .find(|slot| slot.name == plugin)
            .ok_or_else(|| OrderError::Refused(format!("no plugin is named {plugin:?}")))?;
        let mut all = self.all.lock();
        if all.is_closed {
            return Err(OrderError::Dropped);
        }
        if all
            .of
            .get(plugin)
            .is_some_and(|last| last.ended().is_none())
        {
            return Err(OrderError::Refused(format!(
                "the plugin {plugin} has a shadow already: end it first (vmhost shadow stop {plugin})"
            )));
        }
        let threads = plugins.loader.guests.metrics().num_workers();
        let shadow = Shadow::new(&slot, threads, lasts);
        all.of.insert(plugin.to_owned(), shadow.clone());
        Ok(shadow)
    }
}

/// The new shadow, or why it was refused.
type Added = Result<Arc<Shadow>, OrderError>;

impl Shadowing for Shadows {
    fn start(
        &self,
        plugin: &str,
        component: Bytes,
        lasts: Option<Duration>,
    ) -> Result<ShadowReport, OrderError> {
        let plugins = self.plugins.upgrade().ok_or(OrderError::Dropped)?;
        let shadow = self.add(&plugins, plugin, lasts)?;
        let attended = attend(
            shadow.clone(),
            plugins.loader.clone(),
            plugins.metrics.clone(),
            self.redact.clone(),
            component,
        );
        tokio::spawn(attended);
        Ok(shadow.report())
    }

    fn stop(&self, plugin: &str) -> Result<ShadowReport, OrderError> {
        match self.last(plugin) {
            Some(shadow) if shadow.ended().is_none() => {
                shadow.end("stopped by an order");
                Ok(shadow.report())
            }
            _ => Err(OrderError::Refused(format!(
                "no shadow of the plugin {plugin} runs"
            ))),
        }
    }

    fn report(&self, plugin: &str) -> Option<ShadowReport> {
        Shadows::report(self, plugin)
    }

    fn turns(&self, controller: &str, key: &ObjectName) -> Option<Vec<ShadowTurn>> {
        // A label is `plugin/controller`, or just the plugin's name if both are the same.
        let plugin = controller.split('/').next().unwrap_or_default();
        let shadow = self.last(plugin)?;
        let turns = shadow.results.lock().of(controller, key);
        Some(turns)
    }
}

/// Compiles the candidate and starts the thread of the shadow, unless the shadow ends before; then
/// waits for its end.
async fn attend(
    shadow: Arc<Shadow>,
    loader: Arc<Loader>,
    metrics: Arc<Metrics>,
    redact: Arc<Redact>,
    component: Bytes,
) {
    let limit = loader.config.limits.component;
    let engine = loader.engine.clone();
    tokio::select! {
        biased;
        () = shadow.stopped() => {}
        compiled = engine.compile(component, limit) => match compiled {
            Ok(image) => {
                let work = Work { shadow: shadow.clone(), image, loader, redact, metrics };
                if let Err(error) = run::start(work) {
                    shadow.end(&format!("its thread could not be started: {error}"));
                }
            }
            Err(error) => {
                shadow.end(&format!("the candidate was refused: {}", chain_line(&error)));
            }
        },
    }
    shadow.over().await;
    let why = shadow.ended().unwrap_or_default();
    tracing::info!(plugin = shadow.plugin, "the shadow has ended: {why}");
}
