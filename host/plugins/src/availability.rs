//! Whether a plugin works, and what the status says about it. It must not know how a status is
//! written.

use std::time::Duration;

use tokio::time::Instant;

use crate::conditions::Found;
use crate::keeper::Keeper;
use crate::object::Plugin;
use crate::status::{Host, Status};

/// The most bytes of what a host says about itself.
const MESSAGE: usize = 1024;

impl Keeper {
    /// Adds whether something runs and is ready. Returns whether that is about to change.
    pub(crate) fn available(&mut self, plugin: &Plugin, found: &mut Found) -> bool {
        let Some(running) = self.running() else {
            self.ready_since = None;
            let text = "nothing runs: the other conditions say why".to_owned();
            found.not("Available", "NotRunning", text);
            return false;
        };
        let revision = self.runs(plugin).unwrap_or_default();
        let trouble = match (running.waiting.is_empty(), running.is_paused) {
            (false, _) => Some(("StoresNotFilled", running.waiting.join("; "))),
            (_, true) => Some((
                "CallsFail",
                format!("all calls of revision {revision} fail"),
            )),
            _ => None,
        };
        if let Some((reason, text)) = trouble {
            self.ready_since = None;
            found.not("Available", reason, text);
            return true;
        }
        let since = *self.ready_since.get_or_insert_with(Instant::now);
        let least = Duration::from_secs(plugin.spec.rollout.min_ready_seconds);
        if since.elapsed() < least {
            let text = format!("revision {revision} is ready for less than {least:?}");
            found.not("Available", "MinReadySeconds", text);
            return true;
        }
        let text = format!("revision {revision} is ready");
        found.done("Available", "Available", text);
        self.candidate.is_some()
    }

    /// What this host says about itself. The conditions are the leader's, so that another host
    /// says here what keeps it back, such as a component that it cannot have.
    pub(crate) fn host(&self, plugin: &Plugin, found: &Found) -> Host {
        let trouble = found.trouble().filter(|_| !self.shared.given.leads());
        let trouble = trouble.unwrap_or_default();
        Host {
            name: self.shared.options.host.clone(),
            revision: self.runs(plugin).unwrap_or_default(),
            ready: self.ready_since.is_some(),
            message: vmhost_core::cut(&trouble, MESSAGE).to_owned(),
            seen: String::new(),
        }
    }

    /// What the leader says besides the conditions. What cannot be told at the moment stays as it
    /// was reported: another leader or the next start of this one goes on from there.
    pub(crate) fn status(&self, plugin: &Plugin) -> Status {
        let running = self.running();
        let before = &plugin.status;
        let content = self.lane.source.as_deref();
        let (image, digest, moved_to) = match content {
            Some(content) => (
                plugin.spec.image.as_ref().map(|_| content.origin.clone()),
                Some(content.digest.clone()),
                self.lane.known.moved_to.clone(),
            ),
            None => (
                before.image.clone(),
                before.digest.clone(),
                before.moved_to.clone(),
            ),
        };
        let current = self.runs(plugin).or(before.current_revision.clone());
        let candidate = self.tried_now(plugin, current.as_deref());
        let canary = running.as_ref().and_then(|running| running.canary.clone());
        let canary = canary.filter(|of| self.candidate.is_some() && of.state == "running");
        let weight = canary.map(|canary| canary.weight);
        let weight = weight.or(before.weight.clone());
        let weight = weight.filter(|_| candidate.is_some());
        let finalizers = running.map(|running| running.finalizers);
        Status {
            observed_generation: plugin.metadata.generation,
            plugin: self.plugin.clone().or(before.plugin.clone()),
            current_revision: current,
            refused_revision: self.refused.as_ref().map(|of| of.revision.clone()),
            step: weight.as_deref().and_then(|weight| step(plugin, weight)),
            weight,
            candidate_revision: candidate,
            image,
            digest,
            moved_to,
            signers: match content {
                Some(_) => self.lane.signers.clone(),
                None => before.signers.clone(),
            },
            finalizers: finalizers.unwrap_or_else(|| before.finalizers.clone()),
            hosts: Vec::new(),
            conditions: Vec::new(),
        }
    }

    /// The revision that is tried: by this host, or by a leader before it, whose canary is to go
    /// on.
    fn tried_now(&self, plugin: &Plugin, current: Option<&str>) -> Option<String> {
        let reported = plugin.status.candidate_revision.as_ref();
        let goes_on = |of: &&String| {
            let is_wanted = self.wants.as_ref().is_none_or(|wants| wants == *of);
            is_wanted && Self::is_canary(plugin) && self.refused.is_none()
        };
        let candidate = self.candidate.as_ref();
        let candidate = candidate.or_else(|| reported.filter(goes_on));
        let candidate = candidate.filter(|of| current != Some(of.as_str()));
        candidate.cloned()
    }
}

/// The number of the step with this share, from 0.
fn step(plugin: &Plugin, weight: &str) -> Option<usize> {
    let mut steps = plugin.spec.rollout.steps.iter();
    steps.position(|step| format!("{}%", step.weight) == weight)
}
