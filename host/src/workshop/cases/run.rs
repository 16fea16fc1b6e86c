//! Runs one case: makes the call and returns the result. It must not know files, or what is
//! expected.

use std::sync::Arc;

use serde::de::IgnoredAny;
use vmhost_core::{
    Effect, Grants, Gvk, MapRequest, Next, ObjectName, ObjectReader, Outcome, Request,
};
use vmhost_engine::{CallError, Draws, Plugin};

use super::cluster::Cluster;
use super::form::Expectation;
use super::http::Reader;
use super::lines::Lines;
use super::prepare::{Call, Prepared, Turn};
use vmhost_runtime::journal::case::Ask;
use vmhost_runtime::turn::effects::check::{Refused, check};
use vmhost_runtime::turn::finalizer::NOT_DELETING;

/// The result of a call.
#[derive(Debug)]
pub(crate) struct Ran {
    /// The outcome and the log lines, in the form of an expectation.
    pub(crate) actual: Expectation,
    /// What the host would refuse of the outcome, if anything.
    pub(crate) refused: Option<String>,
    /// The question that is not in `reads.json`, if there was one.
    pub(crate) unread: Option<String>,
    /// What was sent and is not in `http.json`, or would be refused, if anything.
    pub(crate) unsent: Option<String>,
    /// How the drawn clock readings and random numbers differ from the recorded ones, if they do.
    pub(crate) draws: Option<&'static str>,
    /// The questions of a recorded turn's reads, in order.
    pub(crate) asked: Vec<Ask>,
}

/// Calls the plugin on a fresh instance.
pub(crate) async fn run(plugin: &Plugin, grants: &Grants, case: Prepared, lines: &Lines) -> Ran {
    let Prepared {
        controller,
        call,
        cluster,
        reads,
        requests,
        settings,
        told,
    } = case;
    lines.take();
    let mut refused = None;
    let mut draws = None;
    let mut asked = Vec::new();
    let reader: Arc<dyn ObjectReader> = match &reads {
        Some(reads) => reads.clone(),
        None => cluster.clone(),
    };
    let reader = Arc::new(Reader {
        reads: reader,
        requests: requests.clone(),
    });
    let mut actual = match call {
        Call::Turn(turn) => {
            let request = request(&controller, &turn);
            let called = match &told {
                None => plugin.call_still(&request, reader, settings).await,
                Some(told) => {
                    let (called, trace, drawn) =
                        plugin.call_told(&request, reader, settings, told).await;
                    draws = difference(drawn);
                    asked = trace.reads.iter().map(Ask::of).collect();
                    called
                }
            };
            match called {
                Ok(outcome) => {
                    refused = refusal(&outcome, grants, &cluster, turn.deleting);
                    returned(&outcome)
                }
                Err(error) => failed(&error),
            }
        }
        Call::Map(changes) => {
            let request = MapRequest {
                controller: &controller,
                changes: &changes,
            };
            let called = plugin.map_changes_still(&request, reader, settings);
            called.await.map_or_else(|error| failed(&error), mapped)
        }
    };
    actual.logs = Some(lines.take());
    Ran {
        actual,
        refused,
        unread: reads.and_then(|reads| reads.problem()),
        unsent: requests.problem(),
        draws,
        asked,
    }
}

/// What the plugin's mapping function returned.
fn mapped(returned: Result<Vec<ObjectName>, String>) -> Expectation {
    match returned {
        Ok(names) => Expectation {
            keys: Some(names.iter().map(Into::into).collect()),
            ..Expectation::default()
        },
        Err(error) => Expectation {
            error: Some(error),
            ..Expectation::default()
        },
    }
}

/// Describes how the draws of a call differ from those of its record.
fn difference(draws: Draws) -> Option<&'static str> {
    match (draws.more, draws.less) {
        (false, false) => None,
        (true, false) => Some(
            "it drew more of clock or chance than recorded: clocks went on, and random bytes were 0",
        ),
        (false, true) => Some("it drew less of clock or chance than recorded"),
        (true, true) => Some("it drew otherwise from clock and chance than recorded"),
    }
}

fn request<'a>(controller: &'a str, turn: &'a Turn) -> Request<'a> {
    Request {
        controller,
        kind: &turn.kind,
        name: &turn.name,
        object: turn.object.clone(),
        previous: turn.previous.clone(),
        deleting: turn.deleting,
        attempt: turn.attempt,
        last: turn.last.as_ref(),
    }
}

fn returned(outcome: &Outcome) -> Expectation {
    Expectation {
        effects: Some(outcome.effects.iter().map(Into::into).collect()),
        next: Some(outcome.next.clone()),
        ..Expectation::default()
    }
}

fn failed(error: &CallError) -> Expectation {
    Expectation {
        error: Some(error.to_string()),
        ..Expectation::default()
    }
}

/// Returns what the host would refuse before it writes anything, and what any API server would
/// refuse.
fn refusal(
    outcome: &Outcome,
    grants: &Grants,
    cluster: &Cluster,
    deleting: bool,
) -> Option<String> {
    let Outcome { effects, next } = outcome;
    let may_show = |kind: &Gvk, _: Option<&str>, object: &str| cluster.may_show(kind, object);
    if let Err(refused) = check(effects, grants, may_show) {
        let verb = effects.get(refused.effect).map_or("", Effect::verb);
        let Refused {
            effect, message, ..
        } = refused;
        return Some(format!("effects[{effect}] ({verb}) is refused: {message}"));
    }
    for (index, effect) in effects.iter().enumerate() {
        if let Effect::Patch(patch) = effect
            && let Err(error) = serde_json::from_str::<IgnoredAny>(&patch.body)
        {
            return Some(format!(
                "effects[{index}] (patch): the body is not JSON: {error}"
            ));
        }
    }
    (*next == Next::Finalized && !deleting).then(|| format!("next is refused: {NOT_DELETING}"))
}

#[cfg(test)]
mod tests {
    use vmhost_core::{Create, Description, ObjectKey, Patch, PatchType};

    use super::*;

    fn refused(kind: &str, body: &str, next: Next) -> Option<String> {
        let patch = Effect::Patch(Patch {
            key: ObjectKey {
                kind: Gvk::new("", "v1", kind),
                name: ObjectName::new(Some("a"), "x"),
            },
            subresource: None,
            kind: PatchType::Merge,
            body: body.into(),
            if_version: None,
        });
        refused_of("", patch, next)
    }

    /// `selector` belongs to the controller's watch.
    fn refused_of(selector: &str, effect: Effect, next: Next) -> Option<String> {
        let description = Description::parse(&format!(
            r#"{{"apiVersion":"vmhost/v1","name":"p","controllers":[{{"name":"c","primary":{{"version":"v1","kind":"Pod"{selector}}}}}],
                "permissions":[{{"version":"v1","kind":"Pod","verbs":["patch","create"]}}]}}"#,
        ));
        let description = description.unwrap();
        let outcome = Outcome {
            effects: vec![effect],
            next,
        };
        let cluster = Cluster::new(&description.controllers[0]);
        refusal(&outcome, &Grants::of(&description), &cluster, false)
    }

    #[test]
    fn what_the_host_would_not_write_is_told() {
        assert_eq!(refused("Pod", "{}", Next::AwaitChange), None);
        for (kind, body, next, says) in [
            (
                "Secret",
                "{}",
                Next::AwaitChange,
                "effects[0] (patch) is refused: the plugin's description has no permission to patch Secret.v1",
            ),
            (
                "Pod",
                "{",
                Next::AwaitChange,
                "effects[0] (patch): the body is not JSON",
            ),
            ("Pod", "{}", Next::Finalized, "next is refused: `finalized`"),
        ] {
            let told = refused(kind, body, next).unwrap();
            assert!(told.starts_with(says), "{told}");
        }
    }
    #[test]
    fn a_name_is_only_made_for_what_the_watch_will_show() {
        let pod = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"a-","labels":{"app":"a"}}}"#;
        let created = |selector: &str| {
            let object = pod.into();
            refused_of(
                selector,
                Effect::Create(Create { object }),
                Next::AwaitChange,
            )
        };
        for shows in [
            "",
            r#","labelSelector":"app=a""#,
            r#","fieldSelector":"status.phase!=Failed""#,
        ] {
            assert_eq!(created(shows), None, "{shows}");
        }
        for hides in [
            r#","labelSelector":"app=b""#,
            r#","fieldSelector":"metadata.name=a""#,
        ] {
            let told = created(hides).unwrap();
            assert!(told.contains("generateName is only allowed"), "{told}");
        }
    }
}
