//! What this host keeps of the versions of a plugin that ran, for a task outside of this crate that
//! decides which version runs. This module must not know why it goes back to one.

use crate::deploy::history;
use crate::deploy::plugins::Plugins;

impl Plugins {
    /// The component of a version that ran on this host for this owner, by its digest. `None` if it
    /// is not kept.
    pub async fn kept(&self, plugin: &str, owner: &str, digest: &str) -> Option<Vec<u8>> {
        let [name, owner, digest] = [plugin, owner, digest].map(str::to_owned);
        let history = &self.loader.history;
        let bytes = history::with(history, move |history| history.kept(&name, &owner, &digest));
        bytes.await.flatten()
    }

    /// Ends all refusals of this host for an owner's plugin, since its versions are decided about
    /// anew.
    pub async fn lift(&self, plugin: &str, owner: &str) {
        let [name, owner] = [plugin, owner].map(str::to_owned);
        let history = &self.loader.history;
        history::with(history, move |history| history.lift_of(&name, &owner)).await;
    }
}
