//! Turns a component's bytes into a plugin that can be called. It needs no cluster. It must not
//! know slots or generations.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use tokio::runtime::Handle;
use vmhost_engine::{Engine, EngineConfig, Image, LoadError, Plugin, Script};

use crate::config::Config;
use crate::config::book::SettingsBook;
use crate::config::terms::Terms;
use crate::deploy::files;
use crate::deploy::files::hub::Hub;
use crate::deploy::history::History;
use crate::deploy::loaded::Loaded;
use crate::journal::Journal;

/// Loads plugins.
pub struct Loader {
    /// The engine.
    pub engine: Engine,
    /// The operator's settings.
    pub config: Config,
    /// The settings of all plugins.
    pub settings: Arc<SettingsBook>,
    /// The runtime that guests run on.
    pub guests: Handle,
    /// The records of turns.
    pub(crate) journal: Arc<Journal>,
    /// The watcher of plugin files.
    pub(crate) files: Arc<Hub>,
    /// The versions that ran before.
    pub(crate) history: Arc<History>,
}

impl Loader {
    /// Creates the engine.
    pub fn new(config: Config, guests: Handle) -> anyhow::Result<Self> {
        let (engine, problem) = Engine::new(&EngineConfig {
            cache: config.cache.clone(),
            compiler: config.compiler.clone(),
        })?;
        if let Some(problem) = problem {
            tracing::warn!(
                "{:#}; compiled components are not cached",
                anyhow::Error::new(problem)
            );
        }
        let threads = guests.metrics().num_workers();
        Ok(Self {
            journal: Arc::new(Journal::new(config.record_bytes, threads)),
            engine,
            history: Arc::new(History::new(config.history.clone())),
            settings: SettingsBook::new(config.settings.clone()),
            config,
            guests,
            files: Hub::new(),
        })
    }

    /// Reads and loads a component file. Errors name the file.
    pub async fn load_file(&self, path: &Path) -> anyhow::Result<Loaded> {
        let plugin = || format!("plugin {}", path.display());
        let limit = self.config.limits.component;
        let bytes = files::read(path, limit).await.with_context(plugin)?;
        let (loaded, compile) = self.load(&bytes).await.with_context(plugin)?;
        Ok(Loaded {
            plugin: loaded,
            bytes,
            build: None,
            compile,
        })
    }

    /// Compiles the component, then calls `describe`. The plugin has the settings and limits of the
    /// flags. Also returns the compilation time.
    pub async fn load(&self, bytes: &[u8]) -> Result<(Plugin, Duration), LoadError> {
        self.load_under(bytes, &Terms::default()).await
    }

    /// Like [`Loader::load`], with the settings and limits of these terms.
    pub(crate) async fn load_under(
        &self,
        bytes: &[u8],
        terms: &Terms,
    ) -> Result<(Plugin, Duration), LoadError> {
        let (image, compiled) = self.compile(Bytes::copy_from_slice(bytes)).await?;
        Ok((self.describe(image, terms).await?, compiled))
    }

    /// Like [`Loader::load`], for an interpreter's component whose instances are given this script.
    pub async fn load_with(
        &self,
        bytes: &[u8],
        script: Option<Script>,
    ) -> Result<(Plugin, Duration), LoadError> {
        let Some(script) = script else {
            return self.load(bytes).await;
        };
        let (image, compiled) = self.compile(Bytes::copy_from_slice(bytes)).await?;
        let limits = self.config.limits.clone();
        let (engine, settings) = (self.engine.clone(), self.settings.all());
        let loading =
            async move { Plugin::load_script(&engine, image, limits, &settings, script).await };
        Ok((self.on_guests(loading).await?, compiled))
    }

    /// Compiles the component on threads outside the runtimes. Also returns the compilation time.
    pub async fn compile(&self, bytes: Bytes) -> Result<(Arc<Image>, Duration), LoadError> {
        let started = std::time::Instant::now();
        let limit = self.config.limits.component;
        let image = self.engine.compile(bytes, limit).await?;
        Ok((image, started.elapsed()))
    }

    /// Calls `describe` of compiled code on the guests' runtime. The plugin has the settings and
    /// limits of these terms.
    pub async fn describe(&self, image: Arc<Image>, terms: &Terms) -> Result<Plugin, LoadError> {
        let limits = terms.limits.clone();
        let limits = limits.unwrap_or_else(|| self.config.limits.clone());
        let (engine, flags) = (self.engine.clone(), self.settings.all());
        let own = terms.settings.clone();
        let loading = async move {
            match own {
                None => Plugin::load(&engine, image, limits, &flags).await,
                Some(own) => Plugin::load_with(&engine, image, limits, own).await,
            }
        };
        self.on_guests(loading).await
    }

    /// Calls a guest on the guests' runtime, which no other work waits for.
    async fn on_guests(
        &self,
        loading: impl Future<Output = Result<Plugin, LoadError>> + Send + 'static,
    ) -> Result<Plugin, LoadError> {
        let cut_off = |error| Err(LoadError::CutOff(format!("{error}")));
        self.guests.spawn(loading).await.unwrap_or_else(cut_off)
    }
}
