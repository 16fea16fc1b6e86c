//! Brings what runs to what is wanted: installs, swaps, tries, goes back. What runs is asked of the
//! host each time, since an operator changes it too. It must not know how something is wanted.

use vmhost_runtime::given::{GivenError, RunningPlugin};

use crate::conditions::{Found, Stop};
use crate::keeper::Keeper;
use crate::lane::Wanted;
use crate::object::Plugin;
use crate::refused::{ROLLED_BACK, Refused};
use crate::revision::Revision;
use crate::way::{Case, Way};
use crate::{past, revision};

/// The number of a digest's characters that a person is shown.
const SHORT: usize = 12;

impl Keeper {
    /// Brings what runs to what is wanted, and keeps its revision.
    pub(crate) async fn settle(
        &mut self,
        plugin: &Plugin,
        wanted: Wanted,
        found: &mut Found,
    ) -> Result<(), Stop> {
        let revision = wanted.revision.name.clone();
        self.give_up_another(&revision).await?;
        let is_another = |refused: &Refused| refused.revision != revision;
        if self.refused.as_ref().is_some_and(is_another) {
            self.refused = None;
            // Another spec lifts it, with the same component, too.
            let (plugins, name) = (&self.shared.given.plugins, &wanted.code.description.name);
            plugins.lift(name, &plugin.metadata.uid).await;
        }
        let mut way = self.way(plugin, &revision);
        if way == Way::Base {
            way = match self.base(plugin).await? {
                None => self.way(plugin, &revision),
                // There is nothing that it could be compared with, or that could run instead.
                Some(_) if self.shared.given.leads() && self.refused.is_none() => Way::Install,
                Some(revoked) => return Err(revoked),
            };
        }
        let done = match way {
            Way::Keep => Ok(true),
            Way::Lift => {
                self.refused = None;
                Ok(true)
            }
            Way::Install => self.install(plugin, &wanted).await.map(|()| true),
            Way::Swap => self.swap(plugin, &wanted).await.map(|()| true),
            Way::Try => self.tries(plugin, &wanted, found).await.map(|()| false),
            Way::Wait => {
                let text = format!("the leader tries revision {revision} first");
                found.done("Progressing", "Canary", text);
                Ok(false)
            }
            Way::Back => match self.back(plugin).await {
                Ok(()) => Err(self.stays()),
                Err(stop) => Err(stop),
            },
            // After a base, what runs is known.
            Way::Stay | Way::Base => Err(self.stays()),
        };
        let kept = self.keep_revisions(plugin, &wanted).await;
        if done? {
            self.candidate = None;
            found.done("Loaded", "Loaded", format!("revision {revision} runs"));
            let text = format!("revision {revision} runs");
            found.done("Progressing", "Complete", text);
        }
        kept
    }

    /// Which way this host goes to what is wanted.
    fn way(&self, plugin: &Plugin, wanted: &str) -> Way {
        let runs = self.runs(plugin);
        let case = Case {
            wanted,
            runs: runs.as_deref(),
            current: plugin.status.current_revision.as_deref(),
            is_refused: self.refused.is_some(),
            was_obeyed: self.refused.as_ref().is_some_and(|of| of.was_obeyed),
            leads: self.shared.given.leads(),
            is_canary: Self::is_canary(plugin),
        };
        case.way()
    }

    /// Aborts a canary of what is not wanted any more: its steps would promote it.
    async fn give_up_another(&mut self, wanted: &str) -> Result<(), Stop> {
        let is_another = |candidate: &String| candidate != wanted;
        if let Some(name) = self.plugin.clone()
            && self.candidate.as_ref().is_some_and(is_another)
        {
            self.shared.given.abort(&name).await.map_err(stop)?;
            self.candidate = None;
        }
        Ok(())
    }

    /// Runs what is wanted, where nothing runs.
    pub(crate) async fn install(&mut self, plugin: &Plugin, wanted: &Wanted) -> Result<(), Stop> {
        let name = wanted.code.description.name.clone();
        let uid = plugin.metadata.uid.as_str();
        let current = plugin.status.current_revision.as_ref();
        if current.is_none_or(|current| *current == wanted.revision.name) {
            // What was rolled back here was decided about again since.
            self.shared.given.plugins.lift(&name, uid).await;
        }
        let loaded = self.loaded(wanted).await?;
        let source = format!("Plugin {}", self.key);
        tracing::debug!(plugin = name, "installing from {source}");
        let given = self.shared.given.clone();
        let origin = (source.as_str(), uid);
        let installed = given.install(origin, loaded, wanted.terms.clone()).await;
        installed.map_err(stop)?;
        self.plugin = Some(name);
        Ok(())
    }

    /// Replaces what runs by what is wanted.
    async fn swap(&mut self, plugin: &Plugin, wanted: &Wanted) -> Result<(), Stop> {
        let given = self.shared.given.clone();
        let (name, revision) = (&wanted.code.description.name, &wanted.revision.name);
        let is_current = plugin.status.current_revision.as_ref() == Some(revision);
        if !given.leads() && is_current {
            // The leader runs it, whatever was rolled back here.
            given.plugins.lift(name, &plugin.metadata.uid).await;
        }
        let loaded = self.loaded(wanted).await?;
        match given.swap(name, loaded, wanted.terms.clone()).await {
            Ok(_) => Ok(()),
            Err(GivenError::RolledBack(_)) => {
                let digest = vmhost_core::cut(&wanted.code.component, SHORT);
                let why = format!(
                    "it was rolled back; `vmhost rollback {name} --to {digest}` runs it again"
                );
                let refused = Refused::new(revision, ROLLED_BACK, &why);
                let stop = refused.stop();
                self.refused = Some(refused);
                Err(stop)
            }
            Err(error) => Err(stop(error)),
        }
    }

    /// What the condition says while the wanted revision is refused. From now on, an operator that
    /// makes it run lifts that.
    fn stays(&mut self) -> Stop {
        let Some(refused) = &mut self.refused else {
            return Stop::at(
                "Progressing",
                "TryingAgain",
                "the versions have just changed",
            );
        };
        refused.was_obeyed = true;
        refused.stop()
    }

    /// Keeps the revision that runs, and the one that is tried. What is refused or did not start is
    /// no revision.
    async fn keep_revisions(&mut self, plugin: &Plugin, wanted: &Wanted) -> Result<(), Stop> {
        let Some(running) = self.running().filter(|_| self.shared.given.leads()) else {
            return Ok(());
        };
        let current = revision::name(plugin, &running.digest, &running.terms);
        let is_candidate = self.candidate.as_ref() == Some(&wanted.revision.name);
        let shared = self.shared.clone();
        let mut used = vec![current.as_str(), wanted.revision.name.as_str()];
        let hosts = plugin.status.hosts.iter();
        used.extend(hosts.map(|host| host.revision.as_str()));
        used.extend(plugin.status.current_revision.as_deref());
        let mut pairs = Vec::new();
        if current == wanted.revision.name {
            pairs.push((wanted.revision.clone(), &wanted.terms));
        } else if let Some(earlier) = self.earlier(plugin, &running, wanted).await {
            pairs.push((earlier, &*running.terms));
        }
        if is_candidate {
            pairs.push((wanted.revision.clone(), &wanted.terms));
        }
        for (revision, terms) in pairs {
            let pair = (&revision, terms);
            let kept = revision::keep(&mut self.kept, &shared, plugin, pair, &used).await;
            kept.map_err(|why| Stop::at("Progressing", "RevisionFailed", why))?;
        }
        Ok(())
    }

    /// The revision of a component that ran before, under the terms of now: what a rollback by an
    /// operator runs. `None` if its object exists, or nothing is known of the component.
    async fn earlier(
        &self,
        plugin: &Plugin,
        running: &RunningPlugin,
        wanted: &Wanted,
    ) -> Option<Revision> {
        let name = revision::name(plugin, &running.digest, &running.terms);
        if past::exists(&self.shared, plugin, &name) {
            return None;
        }
        let all = past::all(&self.shared, plugin).await.ok()?;
        let mut newest = all.iter().rev();
        let past = newest.find(|past| past.component() == running.digest)?;
        let mut template = wanted.revision.template.clone();
        let mut before = past.template().unwrap_or_default();
        for field in ["image", "configMapRef", "path"] {
            template.remove(field);
            if let Some(place) = before.remove(field) {
                template.insert(field.to_owned(), place);
            }
        }
        Some(Revision {
            name,
            source: past.source.clone(),
            digest: past.digest.clone(),
            component: running.digest.clone(),
            signers: Vec::new(),
            template,
        })
    }
}

/// Where a plugin that the host does not take stops.
pub(crate) fn stop(error: GivenError) -> Stop {
    let text = error.to_string();
    match error {
        GivenError::RolledBack(_) => Stop::at("Progressing", ROLLED_BACK, text),
        GivenError::Unfit { .. } => Stop::at("Loaded", "Unfit", text),
        GivenError::Refused(_) | GivenError::NoPlugin(_) => {
            Stop::at("Progressing", "TryingAgain", text)
        }
    }
}
