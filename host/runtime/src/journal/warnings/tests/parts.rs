//! Builds the records for tests of warnings: turns of one key, quiet turns, and changes that woke
//! it.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use vmhost_core::trace::{Asked, Read};
use vmhost_core::{
    Apply, Delete, Effect, Gvk, Next, Object, ObjectKey, ObjectName, Patch, PatchType, Snapshot,
    Trace,
};
use vmhost_queue::{Decision, Lane};

use crate::journal::record::{Act, Answer, AnswerEnd, Origin, Quiet, TurnRecord};
use crate::journal::tag::{Cause, WakeTag};
use crate::journal::wakes::Wakened;
use crate::observe::metrics::controller::TurnResult;

pub(crate) const CONTROLLER: &str = "loops/objects";
pub(crate) const MANAGER: &str = "vmhost/loops/objects";

/// Returns the time this many milliseconds after the start of the story.
pub(crate) fn at(ms: u64) -> Instant {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    *START + Duration::from_millis(ms)
}

pub(crate) fn kind() -> Gvk {
    Gvk::new("test.vmhost.dev", "v1", "Loop")
}

/// The key of all records here.
pub(crate) fn key() -> ObjectName {
    ObjectName::new(Some("default"), "x")
}

/// The key's own object.
pub(crate) fn primary() -> ObjectKey {
    ObjectKey {
        kind: kind(),
        name: key(),
    }
}

pub(crate) fn config_map(name: &str) -> ObjectKey {
    ObjectKey {
        kind: Gvk::new("", "v1", "ConfigMap"),
        name: ObjectName::new(Some("default"), name),
    }
}

/// Returns the origin of turns on a generation. Each call makes a new one, as each worker does.
pub(crate) fn origin(generation: u64) -> Arc<Origin> {
    Arc::new(Origin {
        controller: CONTROLLER.into(),
        kind: kind(),
        field_manager: MANAGER.into(),
        generation,
        finalizer: None,
        digest: "sha256:0".into(),
        cluster: BTreeMap::new(),
        settings: Default::default(),
    })
}

/// Returns a turn that another writer's change woke, and that changes nothing.
pub(crate) fn turn(ms: u64) -> TurnRecord {
    TurnRecord {
        origin: origin(1),
        key: key(),
        began: at(ms),
        took: Duration::from_micros(50),
        call: Duration::from_micros(10),
        wait: Duration::ZERO,
        lane: Lane::High,
        tag: Cause::Changed.into(),
        attempt: 0,
        last: None,
        deleting: false,
        version: Some(7),
        object: None,
        previous: None,
        trace: Trace::default(),
        act: Act::Returned(Next::AwaitChange),
        effects: Vec::new(),
        answers: Vec::new(),
        result: TurnResult::Success,
        decision: Decision::Forget,
        message: None,
        cut: None,
    }
}

/// Returns a quiet turn that an own write woke.
pub(crate) fn quiet(ms: u64) -> Quiet {
    Quiet {
        origin: origin(1),
        key: key(),
        began: at(ms),
        since: at(ms),
        count: 1,
        took: Duration::from_micros(20),
        call: Duration::from_micros(10),
        wait: Duration::ZERO,
        tag: Cause::OwnWrite.into(),
        version: Some(7),
        act: Act::Returned(Next::AwaitChange),
        decision: Decision::Forget,
    }
}

/// Returns the quiet turn as one that came by itself and comes back after this many milliseconds.
pub(crate) fn polling(quiet: Quiet, ms: u32) -> Quiet {
    Quiet {
        tag: WakeTag::default(),
        act: Act::Returned(Next::RequeueAfterMs(ms)),
        decision: Decision::After(Duration::from_millis(ms.into())),
        ..quiet
    }
}

impl TurnRecord {
    /// Returns the turn, woken by the own write with this number in the wake log.
    pub(crate) fn by_own_write(self, number: u32) -> Self {
        let tag = WakeTag::logged(Cause::OwnWrite, number);
        Self { tag, ..self }
    }

    /// Returns the turn, woken by the decision about the turn before it.
    pub(crate) fn by_itself(self) -> Self {
        let tag = WakeTag::default();
        Self { tag, ..self }
    }

    /// Returns the turn with this end, and with the decision that follows from it.
    pub(crate) fn ends(self, next: Next) -> Self {
        let (result, decision) = match &next {
            Next::AwaitChange | Next::Finalized => (TurnResult::Success, Decision::Forget),
            Next::RequeueAfterMs(ms) => (
                TurnResult::RequeueAfter,
                Decision::After(Duration::from_millis((*ms).into())),
            ),
            Next::Requeue => (TurnResult::Requeue, Decision::RATE_LIMITED),
            Next::Retry(_) => (TurnResult::Error, Decision::RATE_LIMITED),
            Next::Fail(_) => (TurnResult::Terminal, Decision::RATE_LIMITED),
        };
        Self {
            act: Act::Returned(next),
            result,
            decision,
            ..self
        }
    }

    /// Returns the turn with one more effect, which ends like this.
    pub(crate) fn does(
        mut self,
        effect: Effect,
        object: ObjectKey,
        before: Option<u64>,
        end: AnswerEnd,
    ) -> Self {
        self.answers.push(Answer {
            effect: self.effects.len() as u32,
            object,
            before,
            end,
        });
        self.effects.push(effect);
        self
    }

    /// Returns the turn with a patch that took an object from one version to another.
    pub(crate) fn patches(self, object: ObjectKey, before: u64, after: u64) -> Self {
        let effect = patch(&object);
        self.does(effect, object, Some(before), AnswerEnd::Written(after))
    }

    /// Returns the turn as one whose patch of its own object was refused.
    pub(crate) fn refused(self, code: u16) -> Self {
        let end = AnswerEnd::Refused(code, "no".into());
        let turn = self.ends(Next::Retry("refused".into()));
        turn.does(patch(&primary()), primary(), Some(7), end)
    }

    /// Returns the turn with a read of an object that exists or not.
    pub(crate) fn reads(mut self, object: ObjectKey, found: bool) -> Self {
        let text = "{}";
        let answer = found.then(|| Object::with_text(object.name.clone(), "u", 1, text));
        self.trace.note(Read {
            live: false,
            asked: Asked::Get(object.kind, object.name, Ok(answer)),
        });
        self
    }
}

pub(crate) fn patch(object: &ObjectKey) -> Effect {
    Effect::Patch(Patch {
        key: object.clone(),
        subresource: None,
        kind: PatchType::Merge,
        body: "{}".into(),
        if_version: None,
    })
}

pub(crate) fn apply() -> Effect {
    Effect::Apply(Apply {
        object: "{}".into(),
        subresource: None,
        force: false,
        create_if_absent: true,
        if_version: None,
    })
}

pub(crate) fn delete(object: &ObjectKey) -> Effect {
    Effect::Delete(Delete {
        key: object.clone(),
        uid: None,
        if_version: None,
        propagation: None,
    })
}

/// Returns an object with this spec.
pub(crate) fn object(key: &ObjectKey, version: u64, spec: &str) -> Snapshot {
    let text = format!(r#"{{"metadata":{{"resourceVersion":"{version}"}},"spec":{spec}}}"#);
    Object::with_text(key.name.clone(), "u", version, &text)
}

/// Returns a change of an object's spec that woke the key, made by this controller or by these
/// managers.
pub(crate) fn change(
    number: u32,
    ms: u64,
    of: &ObjectKey,
    specs: (&str, &str),
    managers: Option<&str>,
) -> Wakened {
    let version = 100 + u64::from(number);
    Wakened {
        number,
        at: at(ms),
        controller: CONTROLLER.into(),
        key: key(),
        kind: of.kind.clone().into(),
        old: Some(object(of, version - 1, specs.0)),
        new: Some(object(of, version, specs.1)),
        managed: managers.map(Into::into),
        own: managers.is_none(),
    }
}

/// Returns `managedFields` of managers with the same time, each with the field of `spec` that it
/// owns.
pub(crate) fn managed_fields(entries: &[(&str, &str)]) -> String {
    let entries = entries.iter().map(|(manager, field)| {
        let fields = serde_json::json!({ "f:spec": { *field: {} } });
        serde_json::json!({ "manager": manager, "time": "2026-01-01T00:00:09Z", "fieldsV1": fields })
    });
    serde_json::Value::from_iter(entries).to_string()
}

/// Returns the text of `managedFields` with these managers and times.
pub(crate) fn managed(entries: &[(&str, &str)]) -> String {
    let entries = entries.iter().map(|(manager, time)| {
        serde_json::json!({ "manager": manager, "operation": "Update", "time": time })
    });
    serde_json::Value::from_iter(entries).to_string()
}
