//! Asks the webhooks of a version that does not run about requests that nobody has sent, for
//! `vmhost audit`. Nothing is written, and no key is woken.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::runtime::Handle;
use vmhost_cluster::{Connection, Informers, NoInformerObserver};
use vmhost_engine::Plugin;
use vmhost_webhook::{Unanswered, Verdict};

use super::question::Question;
use super::{call, verdict};
use crate::deploy::error::ReloadError;
use crate::deploy::loader::Loader;
use crate::observe::metrics::Metrics;
use crate::wake::live::Live;
use crate::wake::readers;
use crate::wake::resources::Resources;
use crate::wake::sources::Sources;

/// A version and what its webhooks read.
pub struct Audit {
    plugin: Arc<Plugin>,
    readers: HashMap<String, Arc<Sources>>,
    guests: Handle,
    // The informers end when this is dropped.
    _informers: Informers,
}

impl Audit {
    /// Watches what the webhooks of a plugin read, on the runtime that this is called on, and waits
    /// until it is known.
    pub async fn start(
        loader: &Loader,
        plugin: Plugin,
        connection: &Connection,
        metrics: &Metrics,
    ) -> Result<Self, ReloadError> {
        let config = &loader.config;
        let (reader, silence) = (connection.reader(), config.watch_silence);
        let informers =
            Informers::with_silence(reader.clone(), Arc::new(NoInformerObserver), silence);
        let resources = Arc::new(Resources::new(reader));
        let live = Live::new(resources, metrics.live_reads.clone()).reads();
        let wanted = plugin.description().readers();
        let readers: HashMap<String, Arc<Sources>> = wanted
            .map(|wanted| {
                let namespaces = &config.namespaces;
                let sources = readers::subscribe(&informers, live.clone(), &wanted, namespaces);
                (wanted.name, Arc::new(sources))
            })
            .collect();
        let filled = async {
            for sources in readers.values() {
                sources.synced().await;
            }
        };
        let after = config.cache_sync_timeout;
        if tokio::time::timeout(after, filled).await.is_err() {
            let waiting = readers.values().flat_map(|sources| sources.waiting());
            let waiting = BTreeSet::from_iter(waiting);
            return Err(ReloadError::NotSynced {
                after,
                waiting: Vec::from_iter(waiting).join("; "),
            });
        }
        Ok(Self {
            plugin: Arc::new(plugin),
            readers,
            guests: loader.guests.clone(),
            _informers: informers,
        })
    }

    /// The plugin.
    pub fn plugin(&self) -> &Plugin {
        &self.plugin
    }

    /// Asks a webhook about a request.
    pub async fn ask(
        &self,
        webhook: &str,
        uid: &str,
        namespace: Option<&str>,
        request: &RawValue,
    ) -> Result<Verdict, Unanswered> {
        let sources = self.readers.get(webhook);
        let sources = sources.cloned().ok_or(Unanswered::NoSuchWebhook)?;
        let question = Question::admission(webhook, uid, namespace, request);
        let plugin = self.plugin.clone();
        let task = self.guests.spawn(async move {
            let outcome = call::call(&plugin, sources, 0, (&question, None), || {}).await?;
            verdict::admission(plugin.description(), &question.name, outcome)
        });
        let cut_off = |error| Err(Unanswered::Failed(format!("the call was cut off: {error}")));
        task.await.unwrap_or_else(cut_off)
    }
}
