//! A turn as it would have been with the candidate: first as a record of the journal, then as a
//! document made from that. This module must not decide which values are sensitive: in between,
//! [`crate::journal::tell::trial`] hides them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use vmhost_queue::{Decision, Lane};

use crate::journal::record::withheld::Configured;
use crate::journal::record::{Act, Origin, TurnRecord};
use crate::journal::story::{Effect, Turn};
use crate::journal::tag::WakeTag;
use crate::observe::metrics::controller::TurnResult;
use crate::shadow::difference::{Difference, What};
use crate::shadow::job::{Called, Job};
use crate::shadow::report::{Differing, ShadowTurn};

/// Returns the record of a turn with what the candidate of this digest returned.
pub(crate) fn record(job: &Job, called: &Called, digest: &str) -> TurnRecord {
    let (act, effects) = match called {
        Ok(outcome) => (Act::Returned(outcome.next.clone()), outcome.effects.clone()),
        Err(error) => (Act::Broke(error.to_string()), Vec::new()),
    };
    let origin = Origin {
        controller: job.live.label().clone(),
        kind: job.live.kind().clone(),
        field_manager: String::new(),
        finalizer: None,
        generation: job.live.generation(),
        digest: digest.to_owned(),
        cluster: BTreeMap::new(),
        settings: Configured::default(),
    };
    TurnRecord {
        origin: Arc::new(origin),
        key: job.key.clone(),
        began: job.began,
        took: Duration::ZERO,
        call: Duration::ZERO,
        wait: Duration::ZERO,
        lane: Lane::High,
        tag: WakeTag::default(),
        attempt: job.attempt,
        last: job.last.clone(),
        deleting: job.deleting,
        version: job.object.as_ref().map(|object| object.version),
        object: job.object.clone(),
        previous: job.previous.clone(),
        trace: job.trace.clone(),
        act,
        effects,
        answers: Vec::new(),
        result: TurnResult::Success,
        decision: Decision::Forget,
        message: None,
        cut: None,
    }
}

/// Returns the document of a turn with these differences. `redacted` has the same differences in
/// the same order, with sensitive values hidden.
pub(crate) fn turn(
    turn: Turn,
    found: &[Difference],
    redacted: Vec<Effect>,
    result: &str,
) -> ShadowTurn {
    let differences = found.iter().zip(redacted);
    ShadowTurn {
        time: turn.time,
        controller: turn.controller,
        kind: turn.kind,
        key: turn.key,
        generation: turn.generation,
        candidate: turn.digest,
        result: result.to_owned(),
        act: turn.act,
        effects: turn.effects,
        next: turn.next,
        differences: differences
            .map(|(found, redacted)| differing(found, redacted))
            .collect(),
    }
}

fn differing(found: &Difference, redacted: Effect) -> Differing {
    let what = match found.what {
        What::Changed => "changed",
        What::Missing => "missing",
        What::Extra => "extra",
    };
    Differing {
        what: what.to_owned(),
        verb: redacted.verb,
        kind: found.kind.clone(),
        object: redacted.object,
        fields: redacted.fields,
        message: redacted.message,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::time::SystemTime;

    use serde_json::{Value, json};
    use vmhost_core::trace::{Asked, Read};
    use vmhost_core::{
        Create, Effect as Wanted, Gvk, Next, Object, ObjectName, Outcome, Patch, PatchType,
    };

    use super::*;
    use crate::journal::redact::{PluginSecrets, Redact};
    use crate::journal::tell::trial;
    use crate::shadow::compare::compare;
    use crate::shadow::job::tests::job;

    const SECRET: &str = "hunter2-marker";

    fn create(data: Value) -> Wanted {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "copy", "namespace": "default" }, "data": data,
        });
        Wanted::Create(Create {
            object: object.to_string(),
        })
    }

    /// Returns the document of a turn that read a Secret, as it leaves the process.
    fn told(live: Vec<Wanted>, candidate: Called, setting: &str) -> ShadowTurn {
        let mut job = job(None, live);
        let name = ObjectName::new(Some("default"), "token");
        let text = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "token" },
            "stringData": { "token": SECRET },
        });
        let secret = Object::with_text(name.clone(), "u", 1, &text.to_string());
        job.trace.note(Read {
            live: false,
            asked: Asked::Get(Gvk::new("", "v1", "Secret"), name, Ok(Some(secret))),
        });
        let found = compare(&job, &candidate);
        let settings: HashMap<String, String> = [("x".to_owned(), setting.to_owned())].into();
        let plugin = PluginSecrets {
            settings: &settings,
            reads_sensitive: true,
        };
        let record = record(&job, &candidate, "sha256:ab");
        let live = job.called.as_ref().ok();
        let live = live.map_or(&[][..], |live| live.effects.as_slice());
        let differences = found.iter().map(|one| one.effect.clone()).collect();
        let time = |_| SystemTime::UNIX_EPOCH;
        let redact = Redact::new(Vec::new());
        let (document, redacted) = trial(&record, live, differences, time, &redact, plugin);
        turn(document, &found, redacted, "differs")
    }

    fn returned(effects: Vec<Wanted>) -> Called {
        Ok(Outcome {
            effects,
            next: Next::AwaitChange,
        })
    }

    #[test]
    fn a_turn_is_told_with_what_the_candidate_wanted_and_its_differences() {
        let patch = |size: u32| {
            Wanted::Patch(Patch {
                key: vmhost_core::ObjectKey {
                    kind: Gvk::new("example.com", "v1", "Machine"),
                    name: ObjectName::new(Some("default"), "x"),
                },
                subresource: None,
                kind: PatchType::Merge,
                body: json!({ "spec": { "size": size } }).to_string(),
                if_version: None,
            })
        };
        let turn = told(vec![patch(2)], returned(vec![patch(3)]), "");
        assert_eq!(
            (
                turn.key.as_str(),
                turn.candidate.as_str(),
                turn.act.as_str()
            ),
            ("default/x", "sha256:ab", "returned")
        );
        assert_eq!(turn.next, Some(json!("awaitChange")));
        let [effect] = &turn.effects[..] else {
            panic!("{turn:#?}")
        };
        assert_eq!(
            (effect.object.as_str(), effect.end.as_str()),
            ("Machine default/x", "not sent")
        );
        assert_eq!(effect.effect["patch"]["body"]["spec"]["size"], 3);
        let [differing] = &turn.differences[..] else {
            panic!("{turn:#?}")
        };
        let field = &differing.fields[0];
        assert_eq!(
            (differing.what.as_str(), field.path.as_str()),
            ("changed", "spec.size")
        );
        assert_eq!((&field.old, &field.new), (&Some(json!(2)), &Some(json!(3))));
    }

    #[test]
    fn no_secret_is_in_it() {
        let url = |user: &str| json!({ "url": format!("postgres://{user}:{SECRET}@db") });
        let broke = Err(vmhost_engine::CallError::Trap {
            reason: format!("no database takes {SECRET}"),
        });
        for (live, candidate) in [
            (vec![create(url("a"))], returned(vec![create(url("b"))])),
            (vec![create(url("a"))], returned(Vec::new())),
            (Vec::new(), returned(vec![create(url("b"))])),
            (vec![create(url("a"))], broke),
        ] {
            let turn = told(live, candidate, "a setting");
            let text = serde_json::to_string(&turn).unwrap();
            assert!(!turn.differences.is_empty(), "{text}");
            assert!(!text.contains(SECRET), "{text}");
            assert!(text.contains("<redacted "), "{text}");
        }
    }

    #[test]
    fn no_setting_is_in_it() {
        let live = vec![create(json!({ "x": "not it" }))];
        let candidate = returned(vec![create(json!({ "x": "password-of-the-operator" }))]);
        let turn = told(live, candidate, "password-of-the-operator");
        let text = serde_json::to_string(&turn).unwrap();
        assert!(
            text.contains("not it") && !text.contains("operator"),
            "{text}"
        );
    }
}
