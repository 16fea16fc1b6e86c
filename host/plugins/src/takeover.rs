//! What a keeper does first if the task before it panicked: what that one left running was overseen
//! by nobody since. It must not know what panicked.

use crate::conditions::Found;
use crate::keeper::Keeper;
use crate::object::Plugin;

impl Keeper {
    /// Takes over what a task left that panicked, and asks first whether it is still granted. A
    /// canary does not go on by itself: its steps would promote it.
    pub(crate) async fn takes_over(&mut self, plugin: &Plugin) {
        let given = self.shared.given.clone();
        let uid = &plugin.metadata.uid;
        // The task before may have taken a name under which somebody else's plugin runs.
        let taken = self.shared.taken_by(&self.key);
        self.plugin = taken.filter(|name| given.is_of(name, uid));
        if let Some(name) = &self.plugin
            && let Err(error) = given.abort(name).await
        {
            // It installed nothing.
            tracing::debug!("Plugin {}: {error}", self.key);
            self.plugin = None;
        }
        if self.plugin.is_none() {
            self.shared.free(&self.key);
        }
        let mut found = Found::default();
        let text =
            "vmhost failed while it looked at this Plugin, and tries again: its log says how";
        found.not("Progressing", "HostFailed", text.to_owned());
        self.revoke(plugin, &mut found).await;
        self.available(plugin, &mut found);
        self.tell(plugin, &found).await;
    }
}
