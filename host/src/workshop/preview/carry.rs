//! Carries out on the overlay what a turn returned: checks all effects, writes them in order, and
//! wakes the keys that the changes concern. The first refused effect ends the turn.
//!
//! This module must not decide what becomes of the turn's own key.

use std::collections::HashMap;
use std::sync::Arc;

use vmhost_cluster::Written;
use vmhost_core::{Change, Effect, Gvk, MapRequest, ObjectKey, ObjectName, Refusal, Snapshot};
use vmhost_runtime::journal::shown::Saw;
use vmhost_runtime::turn::effects::carrier::{Known, Refused};
use vmhost_runtime::turn::effects::check::check;
use vmhost_runtime::turn::verdict::Verdict;

use super::ids::Id;
use super::stage::{Desk, Server, Stage, Turn, Wrote};

/// The result of carrying out a turn's effects.
#[derive(Default)]
pub(super) struct Carried {
    /// Whether an object has changed.
    pub(super) changed: bool,
    pub(super) stop: Option<Stop>,
}

/// The effect that ended a turn.
pub(super) struct Stop {
    pub(super) verdict: Verdict,
    pub(super) refusal: Refusal,
    /// The effect: `patch ConfigMap.v1 default/x`.
    pub(super) what: String,
}

impl Stage {
    /// Carries out a turn's effects, and after them the host's own.
    pub(super) async fn carry_out(
        &mut self,
        turn: &Turn,
        effects: &[Effect],
        own: Option<&Effect>,
    ) -> Carried {
        let view = turn.desk.view.clone();
        let may_show = |kind: &Gvk, _: Option<&str>, object: &str| view.may_show(kind, object);
        let mut carried = Carried::default();
        let mut keys = match check(effects, &self.grants, may_show) {
            Ok(keys) => keys,
            Err(refused) => {
                let verb = effects.get(refused.effect).map_or("", Effect::verb);
                let refusal = refusal(refused.effect, refused.reason, refused.message);
                carried.stop = Some(Stop {
                    verdict: Verdict::Terminal,
                    refusal,
                    what: format!("{verb} (effect {})", refused.effect),
                });
                return carried;
            }
        };
        keys.extend(own.map(|own| own.key().ok().flatten()));
        let mut versions: HashMap<ObjectKey, u64> = HashMap::new();
        for (index, (effect, key)) in effects.iter().chain(own).zip(keys).enumerate() {
            if let Effect::Event(event) = effect {
                self.event(turn, event);
                continue;
            }
            let Some(key) = key else {
                self.found.elsewhere += usize::from(matches!(effect, Effect::Other(_)));
                continue;
            };
            let written = versions.get(&key).copied();
            match self.write(turn, (index, effect), &key, written).await {
                Ok(Some((version, changed))) => {
                    versions.insert(key, version);
                    carried.changed |= changed;
                }
                Ok(None) => {}
                Err(refused) if refused.verdict == Verdict::Done => {}
                Err(refused) => {
                    carried.stop = Some(Stop {
                        verdict: refused.verdict,
                        refusal: refused.refusal,
                        what: format!("{} {key}", effect.verb()),
                    });
                    break;
                }
            }
        }
        carried
    }

    /// Carries out one effect. Returns the version after it, and whether anything has changed;
    /// `None` if there is nothing to write.
    async fn write(
        &mut self,
        turn: &Turn,
        (index, effect): (usize, &Effect),
        key: &ObjectKey,
        written: Option<u64>,
    ) -> Result<Option<(u64, bool)>, Refused> {
        let id = Id::of(key);
        let primary = id.is_of(&turn.desk.kind) && key.name == turn.key;
        if primary && turn.object.is_none() && !matches!(effect, Effect::Create(_)) {
            // An effect never recreates the turn's own object.
            return Ok(None);
        }
        if let Err(error) = self.world.prepare(effect, key).await {
            return Err(Refused {
                verdict: Verdict::Retry,
                refusal: refusal(index, "NoAnswer", format!("{error:#}")),
            });
        }
        let known = Known {
            primary,
            seen: turn.object.as_ref().filter(|_| primary),
            written,
        };
        let manager = &turn.desk.manager;
        // If a turn has written the object on the overlay, the cluster's server does not know that
        // state.
        let answer = match self.found.writers.contains_key(&id) {
            true => None,
            false => self.ask((index, effect), key, known, manager).await?,
        };
        let written = self
            .world
            .carry_out((index, effect), key, known, manager)
            .await?;
        for warning in &written.warnings {
            *self.found.warnings.entry(warning.clone()).or_default() += 1;
        }
        let is_named = !key.name.name().is_empty() && !matches!(effect, Effect::Delete(_));
        if let Some(answer) = answer.filter(|_| is_named) {
            self.world.replace(key, &answer.body);
        }
        let mut changed = self.world.settle();
        if is_named && !changed.contains(&id) && self.was_replaced(key, written.version) {
            self.world.live.changed(&id);
            changed.push(id);
        }
        self.follow(turn, &changed).await;
        Ok(Some((written.version, !changed.is_empty())))
    }

    /// Returns whether the object has a later version than that of the overlay's write, because the
    /// cluster's API server answered the dry run of this write with a different object.
    fn was_replaced(&self, key: &ObjectKey, version: u64) -> bool {
        let object = self.world.live.object(&Id::of(key), &key.kind.version);
        let now = object
            .as_ref()
            .and_then(|of| of.pointer("/metadata/resourceVersion"));
        let now = now.and_then(|of| of.as_str()?.parse::<u64>().ok());
        self.options.server.is_some() && now.is_some_and(|now| now > version)
    }

    /// Asks the cluster's API server for a dry run, if the user wants that.
    async fn ask(
        &mut self,
        effect: (usize, &Effect),
        key: &ObjectKey,
        known: Known<'_>,
        manager: &str,
    ) -> Result<Option<Written>, Refused> {
        let Some(server) = &self.options.server else {
            return Ok(None);
        };
        self.found.asked += 1;
        match server.ask(effect, key, known, manager).await {
            Ok(written) => Ok(Some(written)),
            // The overlay's own answer decides. Another user may have changed the object in the
            // cluster since.
            Err(refused) if is_collision(&refused.verdict) => {
                self.found.outdated += 1;
                Ok(None)
            }
            Err(mut refused) => {
                let message = &mut refused.refusal.message;
                *message = format!("the API server refuses, asked for a dry run: {message}");
                Err(refused)
            }
        }
    }

    /// Notes which turn changed these objects, and wakes the keys that they concern.
    async fn follow(&mut self, turn: &Turn, changed: &[Id]) {
        let mut maps = Vec::new();
        for id in changed {
            self.keys.changed();
            self.note_writer(turn, id);
            for desk in self.desks.clone() {
                let woken = desk.view.changed(id);
                for name in woken.keys {
                    if self.is_selected(&desk, &name) {
                        self.keys.add((desk.at, name));
                    }
                }
                if !woken.changes.is_empty() {
                    maps.push((desk, woken.changes));
                }
            }
        }
        for (desk, changes) in maps {
            self.map(turn, desk, &changes).await;
        }
    }

    fn note_writer(&mut self, turn: &Turn, id: &Id) {
        let uid = |object: &Snapshot| object.uid().to_owned();
        let wrote = self
            .found
            .writers
            .entry(id.clone())
            .or_insert_with(|| Wrote {
                key: turn.key.clone(),
                uid: turn.object.as_ref().map(uid).unwrap_or_default(),
                saw: Saw::default(),
            });
        wrote.saw.more |= turn.saw.more;
        for (kind, object) in &turn.saw.objects {
            let mut seen = wrote.saw.objects.iter();
            if !seen.any(|(_, seen)| Arc::ptr_eq(seen, object)) {
                wrote.saw.objects.push((kind.clone(), object.clone()));
            }
        }
    }

    /// Wakes the keys to which the plugin maps changes.
    async fn map(&mut self, turn: &Turn, desk: Arc<Desk>, changes: &[Change]) {
        let request = MapRequest {
            controller: &desk.name,
            changes,
        };
        let mapped = self.plugin.map_changes(&request, desk.view.clone(), || {});
        let problem = match mapped.await {
            Ok(Ok(names)) => {
                for name in names {
                    let exists = desk.view.snapshot(&name).is_some();
                    if exists && self.is_selected(&desk, &name) {
                        self.keys.add((desk.at, name));
                    }
                }
                return;
            }
            Ok(Err(message)) => ("map", vmhost_core::cut(&message, 1024).to_owned()),
            Err(error) => (error.kind(), error.to_string()),
        };
        let mapping = Turn {
            key: ObjectName::new(None, "map-changes"),
            object: None,
            saw: turn.saw.clone(),
            desk,
        };
        self.fails(&mapping, problem.0, problem.1);
    }
}

impl Server {
    /// Asks for a dry run of an effect.
    async fn ask(
        &self,
        (index, effect): (usize, &Effect),
        key: &ObjectKey,
        known: Known<'_>,
        manager: &str,
    ) -> Result<Written, Refused> {
        let (carrier, effect, key) = (self.carrier.clone(), effect.clone(), key.clone());
        let (manager, primary) = (manager.to_owned(), known.primary);
        let (seen, written) = (known.seen.cloned(), known.written);
        let asked = self.io.spawn(async move {
            let known = Known {
                primary,
                seen: seen.as_ref(),
                written,
            };
            let asked = carrier.carry_out((index, &effect), &key, known, &manager);
            asked.await
        });
        asked.await.unwrap_or_else(|error| {
            Err(Refused {
                verdict: Verdict::Retry,
                refusal: refusal(index, "InternalError", error.to_string()),
            })
        })
    }
}

/// Returns whether a refusal says that the object is no longer as it was when it was listed.
fn is_collision(verdict: &Verdict) -> bool {
    use Verdict::{Conflict, Done, Ended, Exists, Gone};
    matches!(verdict, Conflict | Done | Ended | Exists | Gone)
}

fn refusal(index: usize, reason: &str, message: String) -> Refusal {
    Refusal {
        effect: index as u32,
        code: 0,
        reason: reason.into(),
        message,
    }
}
