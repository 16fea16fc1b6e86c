//! Decides whether a version can be tried beside the live one. The two share their queues, stores
//! and memory, so that everything that these depend on has to be equal. Pure functions.

use vmhost_core::{ControllerDescription, Description, Grants, Watched};

/// Why a version cannot be a candidate.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Misfit {
    /// The content is another plugin.
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
    /// The versions do not have the same controllers.
    #[error(
        "the controller {0:?} is only in one of the two versions: a canary needs the same controllers; swap the plugin's file instead"
    )]
    Controllers(String),
    /// A controller is described differently.
    #[error(
        "the {what} of the controller {controller:?} differs: the candidate shares queue and stores with the live version, so that it has to be the same; swap the plugin's file instead"
    )]
    Differs {
        /// The controller.
        controller: String,
        /// What differs.
        what: &'static str,
    },
    /// The candidate asks for more than the live version.
    #[error(
        "the candidate asks for more than the live version declares ({0}); swap the plugin's file instead"
    )]
    Wider(String),
    /// The candidate carries other definitions.
    #[error(
        "the candidate's CustomResourceDefinitions differ from those of the live version, and a definition is for all objects; swap the plugin's file instead"
    )]
    Definitions,
    /// No controller has objects.
    #[error("all controllers are timers, and a timer stays with the live version")]
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
    if live.controllers.iter().all(|one| one.timer.is_some()) {
        return Err(Misfit::OnlyTimers);
    }
    if live.definitions() != candidate.definitions() {
        return Err(Misfit::Definitions);
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
    // Field by field, so that a new field of a description is not forgotten.
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
mod tests {
    use super::*;

    const PRIMARY: &str = r#""primary":{"version":"v1","kind":"Pod"}"#;

    fn description(name: &str, controllers: &[&str], more: &str) -> Description {
        let controllers: Vec<String> = controllers
            .iter()
            .enumerate()
            .map(|(number, fields)| format!(r#"{{"name":"c{number}",{fields}}}"#))
            .collect();
        let controllers = controllers.join(",");
        let text = format!(
            r#"{{"apiVersion":"vmhost/v1","name":"{name}","controllers":[{controllers}]{more}}}"#
        );
        Description::parse(&text).unwrap()
    }

    fn one(fields: &str) -> Description {
        description("p", &[fields], "")
    }

    fn differs(live: &str, candidate: &str) -> Option<&'static str> {
        match fit(&one(live), &one(candidate)) {
            Err(Misfit::Differs { what, .. }) => Some(what),
            Ok(()) => None,
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn an_equal_description_fits_and_its_version_does_not_matter() {
        assert_eq!(differs(PRIMARY, PRIMARY), None);
        let newer = description("p", &[PRIMARY], r#","version":"2""#);
        assert_eq!(fit(&one(PRIMARY), &newer), Ok(()));
    }

    #[test]
    fn what_queue_stores_and_memory_depend_on_has_to_be_equal() {
        let primary = |more: &str| format!(r#""primary":{{"version":"v1","kind":"Pod"{more}}}"#);
        let with = |more: &str| format!("{PRIMARY},{more}");
        let watch = |more: &str| with(&format!(r#""watches":[{{"version":"v1",{more}}}]"#));
        let kind = r#""primary":{"version":"v1","kind":"Secret"}"#.to_owned();
        for (live, candidate, what) in [
            (PRIMARY.to_owned(), kind, "primary kind"),
            (
                PRIMARY.to_owned(),
                primary(r#","labelSelector":"a=b""#),
                "selector",
            ),
            (
                PRIMARY.to_owned(),
                primary(r#","fieldSelector":"metadata.name=x""#),
                "selector",
            ),
            (
                PRIMARY.to_owned(),
                primary(r#","predicates":{"changed":["generation"]}"#),
                "predicate",
            ),
            (
                PRIMARY.to_owned(),
                primary(r#","wantedFields":["spec"]"#),
                "wanted fields",
            ),
            (
                PRIMARY.to_owned(),
                primary(r#","metadataOnly":true"#),
                "wanted fields",
            ),
            (
                PRIMARY.to_owned(),
                primary(r#","indexes":{"i":"spec.x"}"#),
                "indexes",
            ),
            (
                PRIMARY.to_owned(),
                with(r#""finalizer":"example.com/x""#),
                "finalizer",
            ),
            (
                PRIMARY.to_owned(),
                with(r#""previous":true"#),
                "field `previous`",
            ),
            (
                PRIMARY.to_owned(),
                with(r#""eventSource":"x""#),
                "event source",
            ),
            (
                PRIMARY.to_owned(),
                with(r#""concurrency":9"#),
                "concurrency",
            ),
            (
                PRIMARY.to_owned(),
                with(r#""retry":{"maxRetries":2}"#),
                "retry",
            ),
            (
                watch(r#""kind":"ConfigMap","map":"name""#),
                watch(r#""kind":"ConfigMap","map":{"label":"l"}"#),
                "map",
            ),
            (
                watch(r#""kind":"ConfigMap","map":"name""#),
                watch(r#""kind":"Secret","map":"name""#),
                "list `watches`",
            ),
            (
                with(r#""owns":[{"version":"v1","kind":"ConfigMap"}]"#),
                with(r#""owns":[{"version":"v1","kind":"Secret"}]"#),
                "list `owns`",
            ),
            (
                with(r#""reads":[{"version":"v1","kind":"ConfigMap"}]"#),
                with(r#""reads":[{"version":"v1","kind":"ConfigMap","live":true}]"#),
                "list `reads`",
            ),
            (
                PRIMARY.to_owned(),
                r#""timer":{"everyMs":500}"#.to_owned(),
                "timer or primary kind",
            ),
        ] {
            assert_eq!(differs(&live, &candidate), Some(what), "{candidate}");
            assert_eq!(differs(&candidate, &live), Some(what), "{live}");
        }
    }

    #[test]
    fn other_controllers_other_names_and_timers_alone_are_refused() {
        let two = description("p", &[PRIMARY, PRIMARY], "");
        let refused = Err(Misfit::Controllers("c1".into()));
        assert_eq!(fit(&one(PRIMARY), &two), refused);
        assert_eq!(fit(&two, &one(PRIMARY)), refused);
        let other = description("q", &[PRIMARY], "");
        let refused = fit(&one(PRIMARY), &other).unwrap_err().to_string();
        assert!(
            refused.contains("\"q\"") && refused.contains("\"p\""),
            "{refused}"
        );
        let timer = r#""timer":{"everyMs":500}"#;
        assert_eq!(fit(&one(timer), &one(timer)), Err(Misfit::OnlyTimers));
        let mixed = description("p", &[PRIMARY, timer], "");
        assert_eq!(fit(&mixed, &mixed), Ok(()));
    }

    #[test]
    fn more_rights_are_refused_and_fewer_pass() {
        let verbs = |verbs: &str| {
            let pods =
                format!(r#","permissions":[{{"version":"v1","kind":"Pod","verbs":[{verbs}]}}]"#);
            description("p", &[PRIMARY], &pods)
        };
        let (narrow, wide) = (verbs(r#""patch""#), verbs(r#""patch","delete""#));
        assert_eq!(fit(&wide, &narrow), Ok(()));
        let refused = fit(&narrow, &wide).unwrap_err().to_string();
        assert!(
            refused.contains("delete") && refused.contains("Pod"),
            "{refused}"
        );
    }
}
