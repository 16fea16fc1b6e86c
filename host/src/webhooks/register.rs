//! Registers what can answer: ready first, registered then. Only the leader does, so that two
//! versions of a plugin on two hosts do not take turns.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use vmhost_core::chain_line;
use vmhost_runtime::review::{Answering, Reviews};
use vmhost_webhook::{Keeper, Reach};

use super::described::registration;

/// How often it is looked whether a plugin was swapped. A look costs no request.
const LOOK: Duration = Duration::from_secs(1);

/// Registers plugins as they come and change.
pub(super) struct Registrar {
    pub(super) keeper: Arc<Keeper>,
    pub(super) reviews: Reviews,
    pub(super) reach: Reach,
    /// The namespace of the host's Pod, if it is known.
    pub(super) own_namespace: Option<String>,
}

/// What was last done for a plugin.
#[derive(Debug, PartialEq, Eq)]
enum Last {
    /// The conversions of this generation are registered; its webhooks wait for what they read.
    Converts(u64),
    /// This generation is registered.
    Registered(u64),
    /// It could not be registered, for this reason.
    Failed(String),
}

impl Registrar {
    /// Registers until stopped.
    pub(super) async fn run(self, stop: CancellationToken) {
        let mut last: HashMap<String, Last> = HashMap::new();
        loop {
            match self.reviews.leads() {
                true => self.look(&mut last).await,
                // Another host may register another version.
                false => last.clear(),
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    async fn look(&self, last: &mut HashMap<String, Last>) {
        if !self.keeper.is_ready() {
            return;
        }
        for answering in self.reviews.answering() {
            let name = answering.plugin.description().name.clone();
            let Some(done) = possible(&answering) else {
                continue;
            };
            if last.get(&name) == Some(&done) {
                continue;
            }
            let now = match self.register(&answering, &done).await {
                Ok(()) => {
                    if matches!(done, Last::Registered(_)) {
                        tracing::info!(plugin = name, "registered the webhooks of {name}");
                    }
                    // The keeper has new objects to look after.
                    self.keeper.wake();
                    done
                }
                Err(why) => Last::Failed(why),
            };
            if let Last::Failed(why) = &now
                && last.get(&name) != Some(&now)
            {
                tracing::warn!(plugin = name, "{why}; trying again");
            }
            last.insert(name, now);
        }
    }

    async fn register(&self, answering: &Answering, what: &Last) -> Result<(), String> {
        let description = answering.plugin.description();
        let own_namespace = self.own_namespace.as_deref();
        let registration = registration(description, &self.reach, own_namespace);
        let mut registration = registration.map_err(|error| format!("{error:#}"))?;
        if matches!(what, Last::Converts(_)) {
            registration.webhooks.clear();
        }
        let registered = self.keeper.register(&registration).await;
        registered.map_err(|error| chain_line(&error))
    }
}

/// What can be done for a plugin now. Conversions do not wait for what webhooks read: that may be
/// a kind which the API server can list only by the conversion.
fn possible(answering: &Answering) -> Option<Last> {
    match (answering.waiting.is_empty(), answering.converts) {
        (true, _) => Some(Last::Registered(answering.generation)),
        (false, true) => Some(Last::Converts(answering.generation)),
        (false, false) => None,
    }
}
