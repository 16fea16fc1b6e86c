//! From an image to a plugin that has described itself. It must not know where a component comes
//! from, nor how a plugin is called.

use std::collections::HashMap;
use std::sync::Arc;

use vmhost_core::{Description, Limits};

use super::Plugin;
use super::pool::Pool;
use crate::engine::Engine;
use crate::error::LoadError;
use crate::image::Image;
use crate::instance::Instance;
use crate::script::Script;
use crate::state::Settings;
use crate::world::World;

impl Plugin {
    /// Instantiates an image and calls `describe`. Runs guest code on the calling runtime.
    /// `settings` are those of all plugins, by name: only the description tells which of them
    /// belong to this plugin, so `describe` sees no settings.
    pub async fn load(
        engine: &Engine,
        image: Arc<Image>,
        limits: Limits,
        settings: &HashMap<String, Settings>,
    ) -> Result<Self, LoadError> {
        let own = |name: &str| of_plugin(settings, name);
        Self::instantiated(engine, image, limits, own).await
    }

    /// Like [`Plugin::load`], with the settings of this plugin, whatever its name is.
    pub async fn load_with(
        engine: &Engine,
        image: Arc<Image>,
        limits: Limits,
        settings: Settings,
    ) -> Result<Self, LoadError> {
        Self::instantiated(engine, image, limits, |_: &str| settings).await
    }

    /// Like [`Plugin::load`], with the image of an interpreter whose instances each load a script.
    pub async fn load_script(
        engine: &Engine,
        image: Arc<Image>,
        limits: Limits,
        settings: &HashMap<String, Settings>,
        script: Script,
    ) -> Result<Self, LoadError> {
        let world = World::Real;
        let started =
            Instance::with_script(engine, &image, &limits, Arc::default(), world, &script);
        let (instance, loaded) = started.await.map_err(LoadError::Instantiate)?;
        loaded.problem()?;
        let script = Some(script.of_used(&loaded));
        let own = |name: &str| of_plugin(settings, name);
        Self::described(engine, image, limits, own, instance, script).await
    }

    /// `settings` returns those of the plugin with this name.
    async fn instantiated(
        engine: &Engine,
        image: Arc<Image>,
        limits: Limits,
        settings: impl FnOnce(&str) -> Settings,
    ) -> Result<Self, LoadError> {
        let instance = Instance::new(engine, &image, &limits, Arc::default(), World::Real)
            .await
            .map_err(LoadError::Instantiate)?;
        Self::described(engine, image, limits, settings, instance, None).await
    }

    async fn described(
        engine: &Engine,
        image: Arc<Image>,
        limits: Limits,
        settings: impl FnOnce(&str) -> Settings,
        mut instance: Instance,
        script: Option<Script>,
    ) -> Result<Self, LoadError> {
        let text = instance
            .describe(engine, &limits)
            .await
            .map_err(LoadError::Describe)?
            .map_err(LoadError::Refused)?;
        let description = Description::parse(&text)?;
        let settings = visible(&description, settings(&description.name));
        instance.configure(settings.clone());
        let (component, size, imports) = (image.digest.clone(), image.size, image.imports());
        let digest = match &script {
            Some(script) => script.digest(&component),
            None => component.clone(),
        };
        let pool = Pool::new(image);
        if let Some(image) = pool.image() {
            pool.give_back(pool.count(&image, instance));
        }
        Ok(Self {
            engine: engine.clone(),
            limits,
            settings,
            description,
            imports,
            digest,
            component,
            script,
            size,
            pool,
            mapping: tokio::sync::Mutex::default(),
        })
    }
}

/// The settings of the plugin with this name.
fn of_plugin(settings: &HashMap<String, Settings>, name: &str) -> Settings {
    settings.get(name).cloned().unwrap_or_default()
}

/// Returns what an instance sees of these settings: not those that only the host uses.
pub(super) fn visible(description: &Description, mut settings: Settings) -> Arc<Settings> {
    for hidden in description.hidden_settings() {
        settings.remove(hidden);
    }
    Arc::new(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_instance_sees_the_setting_of_a_header() {
        let description = Description::parse(
            r#"{
                "apiVersion": "vmhost/v1",
                "name": "p",
                "controllers": [{ "name": "c", "timer": { "once": true } }],
                "http": [{ "host": "a.com", "headers": [{ "name": "A", "setting": "token" }] }]
            }"#,
        )
        .unwrap();
        let settings = ["token", "url"].map(|name| (name.to_owned(), "x".to_owned()));
        let seen = visible(&description, settings.into());
        assert_eq!(seen.keys().collect::<Vec<_>>(), ["url"]);
    }
}
