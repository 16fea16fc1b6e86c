//! Rolls a version out by a canary: the leader tries it on a share of the objects, and the other
//! hosts wait until it is the current one. A canary that ended because the leader changed goes on
//! at the step that was reported, and with the same objects. It must not know how versions are
//! compared.

use vmhost_runtime::canary::rules::{Rules, Tuning};
use vmhost_runtime::canary::steps::Steps;

use crate::conditions::{Found, Stop};
use crate::keeper::Keeper;
use crate::lane::Wanted;
use crate::object::Plugin;
use crate::quantity;
use crate::refused::{ABORTED, ROLLED_BACK, Refused};
use crate::revision;
use crate::settle::stop;

/// How a canary of this host is.
#[derive(Debug, PartialEq, Eq)]
enum Tried {
    /// It runs, with this share of the objects.
    Runs(String),
    /// It ended for a reason that is the version's own.
    Refused(Refused),
    /// It does not run, and nothing is held against the version.
    Not,
}

impl Keeper {
    /// Rolls a version out by a canary, on the leader.
    pub(crate) async fn tries(
        &mut self,
        plugin: &Plugin,
        wanted: &Wanted,
        found: &mut Found,
    ) -> Result<(), Stop> {
        let revision = &wanted.revision.name;
        match self.tried(wanted) {
            Tried::Runs(weight) => {
                found.done("Loaded", "Loaded", format!("revision {revision} is tried"));
                let text = format!("revision {revision} runs {weight} of the objects");
                found.done("Progressing", "Canary", text);
                return Ok(());
            }
            Tried::Refused(refused) => {
                let stop = refused.stop();
                self.refused = Some(refused);
                self.candidate = None;
                return Err(stop);
            }
            Tried::Not => self.candidate = None,
        }
        let reached = plugin.status.weight.as_deref();
        let is_it = plugin.status.candidate_revision.as_ref() == Some(revision);
        let steps = steps(plugin, reached.filter(|_| is_it));
        let steps = steps.map_err(|why| Stop::at("Progressing", "RolloutInvalid", why))?;
        let loaded = self.loaded(wanted).await?;
        let tuning = Tuning {
            rules: rules(plugin),
            seed: Some(revision::seed(revision)),
        };
        let (given, name) = (&self.shared.given, &wanted.code.description.name);
        let terms = wanted.terms.clone();
        let tried = given.try_out(name, loaded, terms, (steps, tuning)).await;
        tried.map_err(stop)?;
        self.candidate = Some(revision.clone());
        found.done("Loaded", "Loaded", format!("revision {revision} is tried"));
        let text = match is_it {
            true => {
                format!("revision {revision} is tried again, from the step that it had reached")
            }
            false => format!("revision {revision} is tried"),
        };
        found.done("Progressing", "Canary", text);
        Ok(())
    }

    /// How the canary of this version is that this host started.
    fn tried(&self, wanted: &Wanted) -> Tried {
        let revision = &wanted.revision.name;
        let canary = self.running().and_then(|running| running.canary);
        let canary = canary.filter(|canary| {
            self.candidate.as_ref() == Some(revision)
                && canary.digest.strip_prefix("sha256:") == Some(wanted.code.component.as_str())
        });
        let Some(canary) = canary else {
            return Tried::Not;
        };
        match (canary.state.as_str(), canary.end.as_deref()) {
            ("running", _) => Tried::Runs(canary.weight),
            ("aborted", Some("operator" | "score")) => {
                let why = canary.reason.unwrap_or_default();
                Tried::Refused(Refused::new(revision, ABORTED, &why))
            }
            // It is asked only while something else runs.
            ("promoted", _) => {
                let why = "it was promoted, and rolled back";
                Tried::Refused(Refused::new(revision, ROLLED_BACK, why))
            }
            // The host did not lead any more, or what it was compared with was replaced.
            _ => Tried::Not,
        }
    }
}

/// When a canary is aborted.
fn rules(plugin: &Plugin) -> Rules {
    let (abort, rules) = (plugin.spec.rollout.abort_on, Rules::default());
    Rules {
        broken: abort.broken_keys.unwrap_or(rules.broken).max(1),
        above: abort.failing_percent.unwrap_or(rules.above),
        enough: abort.min_keys.unwrap_or(rules.enough),
        hot: abort.hot_keys.unwrap_or(rules.hot),
        warnings: abort.warnings.unwrap_or(rules.warnings),
    }
}

/// The steps of a canary, from the share that it had `reached`.
fn steps(plugin: &Plugin, reached: Option<&str>) -> Result<Steps, String> {
    let rollout = &plugin.spec.rollout;
    let reached = reached.and_then(|weight| weight.trim_end_matches('%').parse::<u16>().ok());
    let all: Vec<u16> = rollout.steps.iter().map(|step| step.weight).collect();
    let left = all
        .iter()
        .filter(|weight| reached.is_none_or(|reached| **weight >= reached));
    let mut weights: Vec<String> = left.map(u16::to_string).collect();
    if weights.is_empty() {
        // The steps are others by now.
        weights.extend(all.last().map(u16::to_string));
    }
    let every = rollout.every.as_deref().map(quantity::duration).transpose();
    let every = every.map_err(|why| format!("spec.rollout.every: {why}"))?;
    let parsed = match every {
        Some(every) => Steps::parse(None, Some(&weights.join(",")), Some(every)),
        None => Steps::parse(weights.first().map(String::as_str), None, None),
    };
    parsed.map_err(|error| format!("spec.rollout: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugin(spec: &str) -> Plugin {
        Plugin::parse(&format!(r#"{{"metadata":{{"name":"p"}},"spec":{spec}}}"#)).unwrap()
    }

    #[test]
    fn a_rollout_is_the_steps_of_a_canary() {
        let timed = r#"{"rollout":{"strategy":"Canary","steps":[{"weight":5},{"weight":100}],"every":"1m"}}"#;
        let all = steps(&plugin(timed), None).unwrap();
        assert_ne!(all, steps(&plugin(timed), Some("100%")).unwrap());
        assert_eq!(all, steps(&plugin(timed), Some("5%")).unwrap());
        let by_hand = r#"{"rollout":{"strategy":"Canary","steps":[{"weight":5}]}}"#;
        let one = steps(&plugin(by_hand), None).unwrap();
        assert_eq!(one, steps(&plugin(by_hand), Some("50%")).unwrap());
        let falling = r#"{"rollout":{"steps":[{"weight":50},{"weight":5}],"every":"1m"}}"#;
        let why = steps(&plugin(falling), None).unwrap_err();
        assert!(why.contains("spec.rollout"), "{why}");
    }

    #[test]
    fn what_aborts_a_canary_is_said() {
        let none = rules(&plugin("{}"));
        assert_eq!(none, Rules::default());
        let some =
            r#"{"rollout":{"abortOn":{"brokenKeys":1,"failingPercent":0,"warnings":false}}}"#;
        let some = rules(&plugin(some));
        assert_eq!((some.broken, some.above, some.warnings), (1, 0, false));
        assert_eq!((some.enough, some.hot), (none.enough, none.hot));
    }
}
