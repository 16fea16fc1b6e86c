//! The finalizer of a `Plugin`, and its end: while it is being deleted, it is held as long as
//! objects carry the finalizers of its plugin, which nothing else would remove, and let go then, or
//! if its annotation says so. It must not know how a plugin cleans up.

use vmhost_core::chain_line;

use crate::conditions::{Found, Stop};
use crate::keeper::Keeper;
use crate::names;
use crate::object::Plugin;
use crate::report::set_finalizers;

/// How many objects a condition names.
const NAMED: usize = 10;

impl Keeper {
    /// Adds the finalizer that keeps the object until the plugin has cleaned up.
    pub(crate) async fn hold(&mut self, plugin: &Plugin) -> Result<(), Stop> {
        let (finalizers, own) = (&plugin.metadata.finalizers, names::finalizer());
        if !self.shared.given.leads() || plugin.is_deleting() || finalizers.contains(&own) {
            return Ok(());
        }
        let all = [finalizers.clone(), vec![own]].concat();
        self.set_finalizers(plugin, all).await
    }

    /// Returns whether a plugin whose object is being deleted has to run again, because only its
    /// stores show what it still has to clean up: after a restart.
    pub(crate) fn has_to_return(&self, plugin: &Plugin) -> bool {
        self.plugin.is_none()
            && !self.has_left
            && !is_abandoned(plugin)
            && plugin.metadata.finalizers.contains(&names::finalizer())
            && !plugin.status.finalizers.is_empty()
    }

    /// Ends a plugin whose object is being deleted. The error says what holds it.
    pub(crate) async fn leave(&mut self, plugin: &Plugin, found: &mut Found) -> Result<(), Stop> {
        let given = self.shared.given.clone();
        let name = self.plugin.as_deref();
        if let Some(name) = name.filter(|_| !is_abandoned(plugin)) {
            let holding = given.holding(name);
            if !holding.is_empty() {
                return Err(Stop::at("Progressing", "FinalizersOut", told(&holding)));
            }
        }
        self.end().await;
        self.has_left = true;
        found.done("Progressing", "Removed", "the plugin is removed".to_owned());
        let own = names::finalizer();
        if given.leads() && plugin.metadata.finalizers.contains(&own) {
            let mut rest = plugin.metadata.finalizers.clone();
            rest.retain(|finalizer| *finalizer != own);
            self.set_finalizers(plugin, rest).await?;
        }
        Ok(())
    }

    /// Sets the finalizers of the object. If it has just been changed from elsewhere, the next look
    /// does that.
    async fn set_finalizers(&mut self, plugin: &Plugin, all: Vec<String>) -> Result<(), Stop> {
        let set = set_finalizers(&self.shared, plugin, all).await;
        let set = set.map_err(|error| {
            let (own, why) = (names::finalizer(), chain_line(&error));
            let text = format!("cannot add or remove the finalizer {own}: {why}");
            Stop::at("Progressing", "FinalizerFailed", text)
        })?;
        self.looks_soon |= !set;
        Ok(())
    }

    /// Takes the plugin off this host.
    pub(crate) async fn end(&mut self) {
        if let Some(name) = self.plugin.take()
            && let Err(error) = self.shared.given.remove(&name).await
        {
            tracing::debug!("Plugin {}: {error}", self.key);
        }
        self.candidate = None;
        self.shared.free(&self.key);
    }
}

fn is_abandoned(plugin: &Plugin) -> bool {
    plugin.annotation(&names::abandon()) == Some("true")
}

/// What holds a plugin, and what to do.
fn told(holding: &[String]) -> String {
    let named = holding.iter().take(NAMED).cloned().collect::<Vec<_>>();
    let more = match holding.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "{} objects carry the plugin's finalizers and could not be deleted without it: {}{more}; \
         delete them first, or give the Plugin the annotation {}: \"true\"",
        holding.len(),
        named.join(", "),
        names::abandon()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_names_some_objects() {
        let all: Vec<String> = (0..12).map(|number| format!("a/{number}")).collect();
        let told = told(&all);
        assert!(
            told.starts_with("12 objects") && told.contains("a/9 and 2 more"),
            "{told}"
        );
        assert!(told.contains("vmhost.dev/abandon"));
    }
}
