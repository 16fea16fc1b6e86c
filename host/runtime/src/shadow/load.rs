//! Loads compiled code as a candidate, and checks that it can be the shadow of a plugin. This
//! module must not know how turns are compared.

use std::sync::Arc;
use std::time::Instant;

use vmhost_core::chain_line;
use vmhost_engine::{Image, Plugin};

use crate::deploy::loader::Loader;
use crate::deploy::slot::Generation;
use crate::shadow::fit::refusal;

/// Calls the candidate's `describe` on the calling thread, and checks that it can be the shadow of
/// this live version, whose settings and limits it has. The error says why it cannot.
pub(crate) async fn candidate(
    loader: &Loader,
    image: Arc<Image>,
    live: &Generation,
) -> Result<Plugin, String> {
    let limits = live.terms.limits.as_ref().unwrap_or(&loader.config.limits);
    let (limits, settings) = (limits.clone(), loader.settings.all());
    let loaded = Plugin::load(&loader.engine, image, limits, &settings).await;
    let plugin = loaded.map_err(|error| chain_line(&error))?;
    // Each turn gets a new instance, so the one that described itself is not needed any more.
    plugin.rest(Instant::now());
    if plugin.digest() == live.plugin.digest() {
        return Err("it is the version that runs".to_owned());
    }
    match refusal(live.description(), plugin.description()) {
        Some(why) => Err(why),
        None => Ok(plugin),
    }
}
