//! Takes off what runs and is not granted any more: an account that lost a right or is gone, a
//! policy that allows less. What a new version lacks only keeps that version back; but what runs
//! reads with the host's credentials, and must not go on doing so. It must not know what is wanted
//! to run instead.

use tokio::time::Instant;
use vmhost_core::chain_line;
use vmhost_core::grants::ceiling::{ALL, Ceiling, Met};
use vmhost_engine::Settings;
use vmhost_runtime::given::Version;

use crate::conditions::Found;
use crate::keeper::{CALM, Keeper};
use crate::object::Plugin;
use crate::policy::Policy;
use crate::terms::{ceilings, placed};

impl Keeper {
    /// Compares what runs with the policies, and from time to time with access control. If it is
    /// not granted any more, a canary is aborted, or the plugin is taken off this host.
    pub(crate) async fn revoke(&mut self, plugin: &Plugin, found: &mut Found) {
        let Some(name) = self.plugin.clone() else {
            self.overseen = None;
            return;
        };
        let home = &plugin.metadata.namespace;
        // While they are not known, access control alone decides. A change of a policy rings the
        // bell.
        let policies = self.shared.policies_of(home).await;
        let is_due = self.overseen.is_none_or(|at| at.elapsed() >= CALM);
        if is_due {
            self.overseen = Some(Instant::now());
        }
        let given = self.shared.given.clone();
        for version in given.versions(&name) {
            let mut lost = match &policies {
                Ok(policies) => {
                    let mut lost = beyond(&version, home, policies);
                    lost.extend(self.shared.reserved(&name, home));
                    lost
                }
                Err(_) => Vec::new(),
            };
            if is_due && !self.was_reviewed(&version) {
                lost.extend(self.lost_rights(&version, home).await);
            }
            if lost.is_empty() {
                continue;
            }
            let lost = lost.join("; ");
            if version.is_candidate {
                tracing::warn!(plugin = name, "the candidate is aborted: {lost}");
                if let Err(error) = given.abort(&name).await {
                    tracing::debug!("Plugin {}: {error}", self.key);
                }
                // Nothing is held against the version: it may be granted again.
                self.candidate = None;
                self.looks_soon = true;
                continue;
            }
            tracing::warn!(plugin = name, "taken off this host: {lost}");
            self.end().await;
            (self.reviewed, self.overseen) = (None, None);
            // What is wanted may be granted all the same.
            self.looks_soon = true;
            let text =
                format!("what ran is not granted any more, and was taken off this host: {lost}");
            found.not("Granted", "Revoked", text);
            return;
        }
    }

    /// Returns whether access reviews have just allowed this version.
    fn was_reviewed(&self, version: &Version) -> bool {
        self.reviewed
            .as_ref()
            .is_some_and(|(component, terms, at)| {
                component == version.plugin.digest()
                    && *terms == *version.terms
                    && at.elapsed() < CALM
            })
    }

    /// The rights of a running version that access control refuses. An API server that does not
    /// answer takes nothing away.
    async fn lost_rights(&self, version: &Version, home: &str) -> Vec<String> {
        let description = version.plugin.description();
        let asked = self.shared.given.outside(description, &version.terms, home);
        match asked.await {
            Ok(outside) => outside.lines,
            Err(error) => {
                tracing::warn!(
                    "cannot ask whether Plugin {} is still granted what it does: {}",
                    self.key,
                    chain_line(&error)
                );
                Vec::new()
            }
        }
    }
}

/// What a running version does beyond what policies allow now.
fn beyond(version: &Version, home: &str, policies: &[Policy]) -> Vec<String> {
    let terms = &version.terms;
    let none = Settings::default();
    let settings = terms.settings.as_ref().unwrap_or(&none);
    let mut description = placed(version.plugin.description(), settings);
    if let Some(permissions) = &terms.permissions {
        description.permissions.clone_from(permissions);
    }
    let namespaces = match terms.namespaces.as_deref().unwrap_or_default() {
        [] => vec![ALL.to_owned()],
        some => some.to_vec(),
    };
    let own = Ceiling {
        namespaces: Some(namespaces),
        ..Ceiling::default()
    };
    let met = Met::of(&description, home, &own, &ceilings(policies));
    let mut lost = [met.denied, met.narrowed].concat();
    let is_less = terms.namespaces.as_ref() != Some(&met.namespaces);
    if lost.is_empty() && is_less {
        lost.push("work in all of its namespaces".to_owned());
    }
    lost
}
