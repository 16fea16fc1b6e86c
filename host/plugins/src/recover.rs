//! The way back to a revision that ran: after a start in the middle of a rollout, when the wanted
//! revision is refused or cannot be had, and on a host that runs what another one rolled back.
//!
//! The `spec` of a revision is its template, and its component is had again by its digest: out of
//! this host's history, or from where it came. It must not know why a host has to go back.

use vmhost_runtime::given::RunningPlugin;

use crate::conditions::{Found, Stop};
use crate::keeper::Keeper;
use crate::lane::{Lane, Wanted};
use crate::object::Plugin;
use crate::past::{self, Past};
use crate::settle::stop;
use crate::source::{Content, Known, origin_of};
use crate::terms::is_denial;

/// The condition of a component that cannot be had.
const PULLED: &str = "Pulled";

impl Keeper {
    /// Runs the current revision, where nothing runs. Returns what the condition says if it is not
    /// granted any more, so that there is nothing to go back to. The error says why it cannot run
    /// now.
    pub(crate) async fn base(&mut self, plugin: &Plugin) -> Result<Option<Stop>, Stop> {
        let current = plugin.status.current_revision.clone().unwrap_or_default();
        let stop = match self.recover(plugin, &current).await {
            Ok(before) => return self.install(plugin, &before).await.map(|()| None),
            Err(stop) => stop,
        };
        let why = &stop.message;
        if is_denial(&stop) {
            let text =
                format!("revision {current}, which ran last, is not granted any more: {why}");
            return Ok(Some(Stop::at("Progressing", "CurrentRevoked", text)));
        }
        let text = format!(
            "revision {current}, which ran last, has to run before another one is tried, and \
             cannot: {why}; put its component back, or set spec.rollout.strategy to Swap and \
             change spec"
        );
        Err(Stop::at("Progressing", "CurrentLost", text))
    }

    /// Runs the current revision, if nothing runs because what is wanted cannot be had.
    pub(crate) async fn returns(&mut self, plugin: &Plugin) {
        let has_run = plugin.status.current_revision.is_some();
        if self.plugin.is_none()
            && has_run
            && let Ok(Some(stop)) | Err(stop) = self.base(plugin).await
        {
            tracing::debug!("Plugin {}: {}", self.key, stop.message);
        }
    }

    /// Goes back to the current revision from a refused one.
    pub(crate) async fn back(&mut self, plugin: &Plugin) -> Result<(), Stop> {
        let (Some(name), Some(current)) = (&self.plugin, &plugin.status.current_revision) else {
            return Ok(());
        };
        let (name, current) = (name.clone(), current.clone());
        let given = self.shared.given.clone();
        match self.recover(plugin, &current).await {
            Ok(before) => {
                let runs = |of: RunningPlugin| {
                    of.digest == before.code.component && *of.terms == before.terms
                };
                if self.running().is_some_and(runs) {
                    return Ok(());
                }
                given.plugins.lift(&name, &plugin.metadata.uid).await;
                let loaded = self.loaded(&before).await?;
                let swapped = given.swap(&name, loaded, before.terms).await;
                swapped.map(drop).map_err(stop)
            }
            // Its code may still be in memory, if only the component cannot be had.
            Err(why) if why.kind == PULLED => {
                let past = self.past(plugin, &current).await?;
                // It runs under the terms of what it replaces: they are looked at at once.
                self.overseen = None;
                let back = given.roll_back(&name, past.component()).await;
                let back = back.map(drop);
                back.map_err(|error| astray(&current, &format!("{error}; {}", why.message)))
            }
            Err(why) => Err(astray(&current, &why.message)),
        }
    }

    /// What an earlier revision wants to run.
    async fn recover(&mut self, plugin: &Plugin, revision: &str) -> Result<Wanted, Stop> {
        let past = self.past(plugin, revision).await?;
        let malformed = |error: serde_json::Error| {
            Stop::at("Progressing", "RevisionFailed", format!("{error}"))
        };
        let earlier = match past.template() {
            Some(template) => plugin.with_template(template).map_err(malformed)?,
            None => plugin.clone(),
        };
        let mut kept = self.kept_content(plugin, &earlier, &past).await;
        // An image is read again if it can be: this host keeps its component without the
        // signatures, which a policy may ask for.
        let first = match kept.take_if(|_| earlier.spec.image.is_none()) {
            Some(kept) => Known::held(kept),
            None => Known::pinned(&past.digest),
        };
        match (self.wanted_of(&earlier, first).await, kept) {
            (Err(away), Some(kept)) if away.kind == PULLED => {
                match self.wanted_of(&earlier, Known::held(kept)).await {
                    // Without its signatures the version cannot be verified, which says nothing
                    // about it.
                    Err(stop) if stop.kind == "Verified" => Err(away),
                    had => had,
                }
            }
            (had, _) => had,
        }
    }

    async fn wanted_of(&mut self, earlier: &Plugin, known: Known) -> Result<Wanted, Stop> {
        let (mut lane, mut found) = (Lane::of(known), Found::default());
        self.wanted(earlier, &mut lane, &mut found).await
    }

    /// The component of a revision, as this host keeps it.
    async fn kept_content(
        &self,
        plugin: &Plugin,
        earlier: &Plugin,
        past: &Past,
    ) -> Option<Content> {
        let name = self.plugin.as_deref().or(plugin.status.plugin.as_deref())?;
        let plugins = &self.shared.given.plugins;
        let uid = &plugin.metadata.uid;
        let component = plugins.kept(name, uid, past.component()).await?;
        Some(Content {
            // As reading it would say, whatever the revision says.
            origin: origin_of(earlier)?,
            digest: past.digest.clone(),
            component: component.into(),
            signed: None,
        })
    }

    async fn past(&self, plugin: &Plugin, revision: &str) -> Result<Past, Stop> {
        let unknown = |why: String| Stop::at("Progressing", "RevisionFailed", why);
        let all = past::all(&self.shared, plugin).await.map_err(unknown)?;
        let mut all = all.into_iter();
        all.find(|past| past.name == revision)
            .ok_or_else(|| unknown(format!("there is no PluginRevision {revision} any more")))
    }
}

/// What the condition says while a host cannot go back.
fn astray(current: &str, why: &str) -> Stop {
    let text = format!("cannot go back to revision {current}: {why}");
    Stop::at("Progressing", "TryingAgain", text)
}
