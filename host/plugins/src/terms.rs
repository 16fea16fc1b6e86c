//! The terms that a plugin runs under: its settings, its limits, and what it is granted. It must
//! not know what runs now.

use serde_json::{Map, Value};
use tokio::time::Instant;
use vmhost_core::grants::ceiling::{Ceiling, Met};
use vmhost_core::{Description, LabelSelector, Limits, chain_line};
use vmhost_engine::Settings;
use vmhost_runtime::config::terms::{Account, Members, Terms};

use crate::conditions::{Found, Stop};
use crate::keeper::{CALM, Keeper};
use crate::lane::Code;
use crate::object::Plugin;
use crate::policy::Policy;
use crate::{quantity, scope, settings};

/// The reason while access control does not answer.
const REVIEW_FAILED: &str = "ReviewFailed";

/// The reason while a policy keeps the plugin's name for other namespaces.
pub(crate) const NAME_RESERVED: &str = "NameReserved";

impl Keeper {
    /// The terms that the plugin may run under. The error names what is not granted.
    pub(crate) fn terms(
        &self,
        plugin: &Plugin,
        description: &Description,
        policies: &[Policy],
        settings: Map<String, Value>,
        found: &mut Found,
    ) -> Result<Terms, Stop> {
        let (spec, home) = (&plugin.spec, &plugin.metadata.namespace);
        let config = &self.shared.given.plugins.loader.config;
        let settings = settings::texts(settings);
        let limits = limits(plugin, &config.limits);
        let limits = limits.map_err(|why| Stop::at("Loaded", "LimitsInvalid", why))?;
        scope::check(spec).map_err(|why| Stop::at("Granted", "GrantsInvalid", why))?;
        // --namespace: the host itself works in no other.
        let own = scope::within(&spec.grants, home, &config.namespaces);
        let ceilings = ceilings(policies);
        let met = Met::of(&placed(description, &settings), home, &own, &ceilings);
        if !met.denied.is_empty() {
            let text = format!(
                "the component needs what it is not granted: {}; see spec.grants and the \
                 PluginPolicy objects that match",
                met.denied.join("; ")
            );
            return Err(Stop::at("Granted", "Denied", text));
        }
        let watches = scope::watches(description, &met.namespaces);
        watches.map_err(|why| Stop::at("Loaded", "TooManyWatches", why))?;
        let terms = Terms {
            settings: Some(settings),
            limits: Some(limits),
            permissions: Some(met.permissions),
            namespaces: Some(met.namespaces),
            members: members(plugin).map_err(|why| Stop::at("Loaded", "ClustersInvalid", why))?,
            account: spec.service_account_name.as_ref().map(|name| Account {
                namespace: home.clone(),
                name: name.clone(),
            }),
            is_granted: true,
        };
        match met.narrowed.is_empty() {
            true => found.done("Granted", "Granted", "all that it needs".to_owned()),
            false => {
                let text = format!("it goes without {}", met.narrowed.join("; "));
                found.done("Granted", "Narrowed", text);
            }
        }
        Ok(terms)
    }

    /// Asks whether the rights that the plugin needs are those of its service account, or of its
    /// own namespace. A yes counts for a while.
    pub(crate) async fn review(
        &mut self,
        code: &Code,
        terms: &Terms,
        home: &str,
    ) -> Result<(), Stop> {
        if let Some((component, reviewed, at)) = &self.reviewed
            && *component == code.component
            && reviewed == terms
            && at.elapsed() < CALM
        {
            return Ok(());
        }
        let given = self.shared.given.clone();
        let outside = given.outside(&code.description, terms, home).await;
        let outside =
            outside.map_err(|error| Stop::at("Granted", REVIEW_FAILED, chain_line(&error)))?;
        let outside = [outside.lines, outside.unserved].concat();
        if outside.is_empty() {
            self.reviewed = Some((code.component.clone(), terms.clone(), Instant::now()));
            return Ok(());
        }
        let outside = outside.join("; ");
        let text = match &terms.account {
            None => {
                format!("without serviceAccountName a plugin stays in its own namespace: {outside}")
            }
            Some(_) => outside,
        };
        Err(Stop::at("Granted", "OutsideScope", text))
    }
}

/// Returns whether a stop says that something is not granted, the name among it, rather than that
/// access control did not answer.
pub(crate) fn is_denial(stop: &Stop) -> bool {
    stop.reason == NAME_RESERVED || (stop.kind == "Granted" && stop.reason != REVIEW_FAILED)
}

/// What the policies allow at most.
pub(crate) fn ceilings(policies: &[Policy]) -> Vec<Ceiling> {
    let policies = policies.iter();
    policies.map(|policy| policy.spec.grants.clone()).collect()
}

/// The description with the hosts that settings name, which are what is granted.
pub(crate) fn placed(description: &Description, settings: &Settings) -> Description {
    let mut placed = description.clone();
    for grant in &mut placed.http {
        *grant = grant.placed(|name| settings.get(name).map(String::as_str));
    }
    placed
}

/// The member clusters that the object names. `None` for all.
fn members(plugin: &Plugin) -> Result<Option<Members>, String> {
    let clusters = &plugin.spec.clusters;
    let selector = clusters.selector.text();
    let selector = selector.and_then(|text| LabelSelector::parse(&text).map(|_| text));
    let members = Members {
        names: clusters.names.clone(),
        selector: selector.map_err(|why| format!("spec.clusters: {why}"))?,
    };
    Ok(Some(members).filter(|members| *members != Members::default()))
}

/// The limits of calls: those of the host, or less.
fn limits(plugin: &Plugin, host: &Limits) -> Result<Limits, String> {
    let mut limits = host.clone();
    if let Some(text) = &plugin.spec.limits.memory {
        let memory = quantity::size(text).map_err(|why| format!("spec.limits.memory: {why}"))?;
        if memory > host.memory {
            return Err(format!(
                "spec.limits.memory: {text} is more than the host's --memory-limit of {} bytes",
                host.memory
            ));
        }
        limits.memory = memory;
    }
    if let Some(text) = &plugin.spec.limits.call_timeout {
        let timeout =
            quantity::duration(text).map_err(|why| format!("spec.limits.callTimeout: {why}"))?;
        if timeout > host.call_timeout {
            return Err(format!(
                "spec.limits.callTimeout: {text} is more than the host's --call-timeout of {:?}",
                host.call_timeout
            ));
        }
        limits.call_timeout = timeout;
    }
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugin(spec: &str) -> Plugin {
        Plugin::parse(&format!(r#"{{"metadata":{{"name":"p"}},"spec":{spec}}}"#)).unwrap()
    }

    #[test]
    fn what_is_not_granted_is_a_denial() {
        for (kind, reason, wanted) in [
            ("Granted", "Denied", true),
            ("Granted", REVIEW_FAILED, false),
            ("Loaded", NAME_RESERVED, true),
            ("Loaded", "NameTaken", false),
            ("Pulled", "PullFailed", false),
        ] {
            let is = is_denial(&Stop::at(kind, reason, ""));
            assert_eq!(is, wanted, "{kind} {reason}");
        }
    }

    #[test]
    fn clusters_are_named_or_selected() {
        let of = |spec: &str| members(&plugin(spec));
        assert_eq!(of("{}"), Ok(None));
        let some = r#"{"clusters":{"names":["east"],"matchLabels":{"env":"prod"}}}"#;
        let some = of(some).unwrap().unwrap();
        assert_eq!(
            (some.names, some.selector.as_str()),
            (vec!["east".to_owned()], "env=prod")
        );
        let wrong =
            r#"{"clusters":{"matchExpressions":[{"key":"a=b,c in (","operator":"Exists"}]}}"#;
        assert!(of(wrong).unwrap_err().contains("spec.clusters"));
    }

    #[test]
    fn limits_stay_below_those_of_the_host() {
        let host = Limits::default();
        let of = |spec: &str| limits(&plugin(spec), &host);
        assert_eq!(of("{}").unwrap(), host);
        let less = of(r#"{"limits":{"memory":"1Mi","callTimeout":"1s"}}"#).unwrap();
        assert_eq!((less.memory, less.call_timeout.as_secs()), (1 << 20, 1));
        for (spec, words) in [
            (r#"{"limits":{"memory":"1Gi"}}"#, "--memory-limit"),
            (r#"{"limits":{"callTimeout":"1h"}}"#, "--call-timeout"),
            (r#"{"limits":{"memory":"much"}}"#, "spec.limits.memory"),
        ] {
            let why = of(spec).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }
}
