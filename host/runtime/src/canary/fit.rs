//! Decides whether a version can be tried beside the live one. Both versions use the same queues,
//! stores and key memory, so everything that these depend on has to be equal.
//!
//! This module owns the rules, which are pure functions of two descriptions. It must not know what
//! is done with the answer.

use vmhost_core::{ControllerDescription, Description, Grants, Watched};

/// Why a version cannot be a candidate.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Misfit {
    /// The component is another plugin.
    #[error("the candidate is the plugin {found:?}, and the running one is {expected:?}")]
    OtherName {
        /// The name in the candidate's description.
        found: String,
        /// The name of the running plugin.
        expected: String,
    },
    /// The candidate is the live version.
    #[error("the candidate has the same bytes as the live version")]
    Same,
    /// One of the versions has a controller that the other one lacks.
    #[error(
        "the controller {0:?} is only in one of the two versions: a canary needs the same controllers; swap the plugin's file instead"
    )]
    Controllers(String),
    /// The versions describe a controller differently.
    #[error(
        "the {what} of the controller {controller:?} differs: the candidate shares queue and stores with the live version, so that it has to be the same; swap the plugin's file instead"
    )]
    Differs {
        /// The controller.
        controller: String,
        /// What differs.
        what: &'static str,
    },
    /// The candidate declares more permissions than the live version.
    #[error(
        "the candidate asks for more than the live version declares ({0}); swap the plugin's file instead"
    )]
    Wider(String),
    /// The candidate brings other CustomResourceDefinitions.
    #[error(
        "the candidate's CustomResourceDefinitions differ from those of the live version, and a definition is for all objects; swap the plugin's file instead"
    )]
    Definitions,
    /// The versions do not answer the same reviews.
    #[error(
        "the webhooks or conversions of the two versions differ, and the live version alone answers them; swap the plugin's file instead"
    )]
    Reviews,
    /// No controller has objects in the host's own cluster.
    #[error(
        "no controller has objects in the host's own cluster: timers, webhooks and controllers in member clusters stay with the live version"
    )]
    OnlyTimers,
}

/// Returns an error if a version with this description cannot be tried beside the live one.
pub(crate) fn fit(live: &Description, candidate: &Description) -> Result<(), Misfit> {
    if live.name != candidate.name {
        return Err(Misfit::OtherName {
            found: candidate.name.clone(),
            expected: live.name.clone(),
        });
    }
    let pairs = [(live, candidate), (candidate, live)];
    for (one, other) in pairs {
        let mut names = one.controllers.iter().map(|controller| &controller.name);
        if let Some(name) = names.find(|name| other.controller(name).is_none()) {
            return Err(Misfit::Controllers(name.clone()));
        }
    }
    for controller in &live.controllers {
        if let Some(other) = candidate.controller(&controller.name)
            && let Some(what) = difference(controller, other)
        {
            return Err(Misfit::Differs {
                controller: controller.name.clone(),
                what,
            });
        }
    }
    let stays = |one: &ControllerDescription| one.timer.is_some() || !one.clusters.is_home();
    if live.controllers.iter().all(stays) {
        return Err(Misfit::OnlyTimers);
    }
    if live.definitions() != candidate.definitions() {
        return Err(Misfit::Definitions);
    }
    if live.webhooks != candidate.webhooks || live.conversions != candidate.conversions {
        return Err(Misfit::Reviews);
    }
    Grants::of(live)
        .check_description(candidate)
        .map_err(|wider| Misfit::Wider(wider.0.join(", ")))
}

/// Returns what differs between two descriptions of one controller.
fn difference(
    live: &ControllerDescription,
    candidate: &ControllerDescription,
) -> Option<&'static str> {
    // Listed field by field, so that the compiler names each new field of a description here.
    let ControllerDescription {
        name: _,
        primary,
        timer,
        owns,
        watches,
        reads,
        finalizer,
        previous,
        event_source,
        concurrency,
        retry,
        clusters,
    } = live;
    let primaries = primary.as_ref().zip(candidate.primary.as_ref());
    if primary.is_some() != candidate.primary.is_some() || *timer != candidate.timer {
        return Some("timer or primary kind");
    }
    let of_primary = primaries.and_then(|(live, candidate)| of_watched(live, candidate));
    let of_watches = || {
        let pairs = || watches.iter().zip(&candidate.watches);
        let is_map = watches.len() == candidate.watches.len()
            && pairs().all(|(one, other)| one.gvk() == other.gvk())
            && pairs().any(|(one, other)| one.map != other.map);
        if is_map { "map" } else { "list `watches`" }
    };
    let rest = [
        (*finalizer != candidate.finalizer, "finalizer"),
        (*owns != candidate.owns, "list `owns`"),
        (*watches != candidate.watches, of_watches()),
        (*reads != candidate.reads, "list `reads`"),
        (*previous != candidate.previous, "field `previous`"),
        (*event_source != candidate.event_source, "event source"),
        (*concurrency != candidate.concurrency, "concurrency"),
        (*retry != candidate.retry, "retry"),
        (*clusters != candidate.clusters, "field `clusters`"),
    ];
    let of_rest = rest.iter().find(|(differs, _)| *differs);
    of_primary.or(of_rest.map(|(_, what)| *what))
}

/// Returns what differs between two descriptions of the primary kind.
fn of_watched(live: &Watched, candidate: &Watched) -> Option<&'static str> {
    let fields = |watched: &Watched| (watched.wanted_fields.clone(), watched.metadata_only);
    let selector = |watched: &Watched| {
        (
            watched.label_selector.clone(),
            watched.field_selector.clone(),
        )
    };
    let all = [
        (live.gvk() != candidate.gvk(), "primary kind"),
        (selector(live) != selector(candidate), "selector"),
        (live.predicates != candidate.predicates, "predicate"),
        (fields(live) != fields(candidate), "wanted fields"),
        (live.indexes != candidate.indexes, "indexes"),
        (live != candidate, "primary"),
    ];
    let found = all.iter().find(|(differs, _)| *differs);
    found.map(|(_, what)| *what)
}

#[cfg(test)]
mod tests;
