//! A turn's effects, carried out: checked all together, written in their order, and waited for until the stores show them.
//!
//! It must not know what becomes of the key.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use vmhost_cluster::{Written, begin};
use vmhost_core::{Effect, Gvk, ObjectKey, ObjectName, Refusal, Target};

use super::check::check;
use super::{Settler, record};
use crate::decide::Stop;
use crate::verdict::{Verdict, judge, refusal};
use crate::worker::Turn;
use crate::writes::Guard;

/// How long a key waits for its own writes to show up in the stores. Longer than any healthy watch lags; bounded, so that a cut watch never blocks a key for good.
const OWN_WRITES: Duration = Duration::from_secs(5);

/// What became of a turn's effects.
#[derive(Default)]
pub(super) struct Carried {
    /// What ended the turn early, if something did.
    pub(super) stop: Option<Stop>,
    /// Did an object change by them?
    pub(super) wrote: bool,
}

impl From<Stop> for Carried {
    fn from(stop: Stop) -> Self {
        Self {
            stop: Some(stop),
            wrote: false,
        }
    }
}

/// Checks all effects, then carries them out, and behind them the host's own one.
pub(super) async fn carry_out(
    settler: &Arc<Settler>,
    turn: &Arc<Turn>,
    mut effects: Vec<Effect>,
    own: Option<Effect>,
) -> Carried {
    let is_kept =
        |kind: &Gvk, namespace: Option<&str>| turn.desk.sources.store_of(kind, namespace).is_some();
    let mut targets = match check(&effects, &turn.desk.generation.grants, is_kept) {
        Ok(targets) => targets,
        Err(refused) => return refused.stop(&effects).into(),
    };
    targets.extend(own.as_ref().map(|own| own.target().ok().flatten()));
    effects.extend(own);
    // The first request leaves on this thread: see `begin`.
    let writing = begin(&settler.io, {
        let (settler, turn) = (settler.clone(), turn.clone());
        let reconcile = turn.reconcile.clone();
        reconcile.scope(async move { write_all(&settler, &turn, &effects, targets).await })
    });
    writing.await.unwrap_or_else(|error| {
        let refusal = Refusal {
            effect: 0,
            code: 0,
            reason: "InternalError".into(),
            message: error.to_string(),
        };
        let stop = Stop {
            verdict: Verdict::Retry(Duration::ZERO),
            refusal,
            what: "carry out the effects".into(),
        };
        stop.into()
    })
}

async fn write_all(
    settler: &Settler,
    turn: &Turn,
    effects: &[Effect],
    targets: Vec<Option<Target>>,
) -> Carried {
    let mut writes = Writes::default();
    let mut stop = None;
    for (index, (effect, target)) in effects.iter().zip(targets).enumerate() {
        if let Effect::Event(event) = effect {
            record(settler, turn, event);
            continue;
        }
        let Some(target) = target else {
            continue;
        };
        let key = written_key(target);
        stop = writes.one(settler, turn, index, effect, key).await;
        if stop.is_some() {
            break;
        }
    }
    let wrote = writes.changed;
    if tokio::time::timeout(OWN_WRITES, writes.seen(turn))
        .await
        .is_err()
    {
        turn.desk.controller.metrics.own_write_timeouts.inc();
        tracing::warn!("this turn's writes did not show up in the store within {OWN_WRITES:?}");
    }
    Carried { stop, wrote }
}

fn written_key(target: Target) -> ObjectKey {
    let name = ObjectName::new(
        target.namespace.as_deref(),
        target.name.as_deref().unwrap_or_default(),
    );
    ObjectKey {
        kind: target.kind,
        name,
    }
}

/// What a turn has written so far.
#[derive(Default)]
struct Writes {
    versions: HashMap<ObjectKey, u64>,
    deleted: Vec<(ObjectKey, Option<String>)>,
    /// Did an object change?
    changed: bool,
    /// An object that exists already, and that the store has to show before the next turn.
    awaited: Option<ObjectKey>,
}

impl Writes {
    async fn one(
        &mut self,
        settler: &Settler,
        turn: &Turn,
        index: usize,
        effect: &Effect,
        key: ObjectKey,
    ) -> Option<Stop> {
        let controller = &turn.desk.controller;
        // Another version of the same kind names the same object.
        let primary = key.kind.group == controller.kind.group
            && key.kind.kind == controller.kind.kind
            && key.name == turn.key;
        let verb = effect.verb();
        if primary && turn.object.is_none() && !matches!(effect, Effect::Create(_)) {
            // An effect never brings the turn's own object back. What else is to be done goes on: its children may have to be deleted.
            controller.metrics.effect(verb, "gone");
            return None;
        }
        if let Effect::Apply(apply) = effect
            && let Some(stored) = turn
                .desk
                .sources
                .store_of(&key.kind, key.name.namespace())
                .and_then(|store| store.get(key.name.as_str()))
            && controller
                .applied
                .is_repeated(&key, apply, (stored.uid(), stored.version))
        {
            controller.metrics.skipped_applies.inc();
            return None;
        }
        let before = self.version_before(turn, &key, primary);
        let guard = Guard {
            uid: turn
                .object
                .as_ref()
                .filter(|_| primary)
                .map(|object| object.uid()),
            written: self.versions.get(&key).copied(),
        };
        match settler
            .writer
            .carry_out(effect, &key, guard, &controller.field_manager)
            .await
        {
            Ok(written) => {
                controller.metrics.effect(verb, "ok");
                self.note(turn, effect, key, before, &written);
                None
            }
            Err(error) => {
                if error.maybe_applied() {
                    self.look_up(settler, turn, effect, &key).await;
                }
                let verdict = judge(effect, primary, &error);
                controller.metrics.effect(verb, result_label(&verdict));
                if verdict == Verdict::Exists {
                    self.awaited = Some(key.clone());
                }
                let what = format!("{verb} {key}");
                (verdict != Verdict::Done).then(|| Stop {
                    verdict,
                    refusal: refusal(index, &error),
                    what,
                })
            }
        }
    }

    /// The version that the turn knows of an object, before it writes it.
    fn version_before(&self, turn: &Turn, key: &ObjectKey, primary: bool) -> Option<u64> {
        if let Some(version) = self.versions.get(key) {
            return Some(*version);
        }
        if primary {
            return turn.object.as_ref().map(|object| object.version);
        }
        let store = turn
            .desk
            .sources
            .store_of(&key.kind, key.name.namespace())?;
        Some(store.get(key.name.as_str())?.version)
    }

    fn note(
        &mut self,
        turn: &Turn,
        effect: &Effect,
        mut key: ObjectKey,
        before: Option<u64>,
        written: &Written,
    ) {
        for warning in &written.warnings {
            tracing::warn!(
                "the API server warns about {} {key}: {warning}",
                effect.verb()
            );
        }
        if key.name.name().is_empty() {
            key.name = ObjectName::new(key.name.namespace(), &written.name);
        }
        if let Effect::Apply(apply) = effect {
            turn.desk.controller.applied.record(&key, apply, written);
        }
        if written.gone {
            self.changed = true;
            self.deleted
                .push((key, Some(written.uid.clone()).filter(|uid| !uid.is_empty())));
        } else if written.version > 0 {
            // A write that changed nothing makes no event.
            if before.is_none_or(|before| before < written.version) {
                self.changed = true;
                own_write(turn, &key, written.version);
            }
            self.versions.insert(key, written.version);
        }
    }

    /// The answer was lost: only a live read tells what became of the write.
    async fn look_up(&mut self, settler: &Settler, turn: &Turn, effect: &Effect, key: &ObjectKey) {
        if let Ok(Some(object)) = settler.writer.read(effect, key).await {
            own_write(turn, key, object.version);
            self.versions.insert(key.clone(), object.version);
        }
    }

    /// Resolves when the stores show all this, as far as they hold such objects.
    async fn seen(self, turn: &Turn) {
        for (key, version) in self.versions {
            let Some(watch) = turn
                .desk
                .sources
                .subscription_of(&key.kind, key.name.namespace())
            else {
                continue;
            };
            // What a selector leaves out never comes.
            if turn.desk.sources.is_selective(&key.kind)
                && watch.store().get(key.name.as_str()).is_none()
            {
                continue;
            }
            watch.caught_up(version).await;
        }
        for (key, uid) in self.deleted {
            let Some(watch) = turn
                .desk
                .sources
                .subscription_of(&key.kind, key.name.namespace())
            else {
                continue;
            };
            let is_it = |found: &str| uid.as_deref().is_none_or(|uid| uid == found);
            watch
                .wait_until(|store| {
                    store
                        .get(key.name.as_str())
                        .is_none_or(|object| !is_it(object.uid()))
                })
                .await;
        }
        if let Some(key) = self.awaited
            && !turn.desk.sources.is_selective(&key.kind)
            && let Some(watch) = turn
                .desk
                .sources
                .subscription_of(&key.kind, key.name.namespace())
        {
            watch
                .wait_until(|store| store.get(key.name.as_str()).is_some())
                .await;
        }
    }
}

/// Events of this version, from whichever watch, are the turn's own.
fn own_write(turn: &Turn, key: &ObjectKey, version: u64) {
    for source in turn.desk.sources.sources_of(&key.kind) {
        turn.desk
            .controller
            .own_writes
            .wrote(&turn.key, source, version);
    }
}

fn result_label(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Done | Verdict::Gone | Verdict::Ended => "gone",
        Verdict::Conflict => "conflict",
        Verdict::Exists => "exists",
        Verdict::NotLeading => "not_leading",
        Verdict::Retry(_) | Verdict::Unauthorized => "retry",
        Verdict::Terminal => "refused",
    }
}
