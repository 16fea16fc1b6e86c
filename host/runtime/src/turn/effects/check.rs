//! The checks before the first effect of a turn is written: the grants, the number of effects,
//! their names. They depend on the outcome alone, so that `vmhost test` gives the same result
//! without a cluster.

use std::time::Duration;

use vmhost_core::{Effect, Grants, Gvk, ObjectKey, Refusal};

use crate::elsewhere;
use crate::rights::access::Required;
use crate::turn::verdict::{Stop, Verdict};

/// Maximum number of effects per turn. A worker is occupied while they are written, so more must be
/// split over several turns.
const EFFECTS: usize = 1000;

/// The reason why effects are refused before the first is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The index of the refused effect.
    pub effect: usize,
    /// The reason, in an API server's form.
    pub reason: &'static str,
    /// The message for people.
    pub message: String,
}

/// Checks whether these effects may be written, those for other clusters by the same grants.
/// Returns the key of each in the turn's cluster, like [`Effect::key`]; the name is empty only for
/// a create. `may_show` returns whether a watch may show an object of this kind, in this namespace,
/// with this text.
pub fn check(
    effects: &[Effect],
    grants: &Grants,
    may_show: impl Fn(&Gvk, Option<&str>, &str) -> bool,
) -> Result<Vec<Option<ObjectKey>>, Refused> {
    let plain = elsewhere::plain(effects).map_err(|(effect, message)| Refused {
        effect,
        reason: "BadRequest",
        message,
    })?;
    let mut keys = grants.check_effects(&plain).map_err(|denied| Refused {
        effect: denied.effect as usize,
        reason: "NotGranted",
        message: denied.reason,
    })?;
    if effects.len() > EFFECTS {
        let count = effects.len();
        return Err(Refused {
            effect: EFFECTS,
            reason: "TooManyEffects",
            message: format!("{count} effects exceed the limit of {EFFECTS} per turn"),
        });
    }
    for (index, (effect, key)) in plain.iter().zip(&mut keys).enumerate() {
        let Some(named) = key else {
            continue;
        };
        let is_elsewhere = matches!(effects[index], Effect::Other(_));
        // No watch of the turn's cluster shows what is created in another one.
        let shows = |kind: &Gvk, namespace: Option<&str>, object: &str| {
            !is_elsewhere && may_show(kind, namespace, object)
        };
        check_name(effect, named, shows).map_err(|message| Refused {
            effect: index,
            reason: "BadRequest",
            message: message.into(),
        })?;
        if is_elsewhere {
            *key = None;
        }
    }
    Ok(keys)
}

impl Refused {
    /// Converts to a stop. It is terminal, since a retry would be refused again.
    pub(super) fn stop(self, effects: &[Effect]) -> Stop {
        let code = if self.reason == "BadRequest" {
            400
        } else {
            403
        };
        // The text may quote data of the guest.
        let message = vmhost_core::cut(&self.message, 1024).to_owned();
        let verb = effects.get(self.effect).map_or("", Effect::verb);
        Stop {
            verdict: Verdict::Terminal,
            wait: Duration::ZERO,
            what: format!("{verb} (effect {})", self.effect),
            refusal: Refusal {
                effect: self.effect as u32,
                code,
                reason: self.reason.into(),
                message,
            },
            required: Required::default(),
        }
    }
}

fn check_name(
    effect: &Effect,
    key: &ObjectKey,
    may_show: impl Fn(&Gvk, Option<&str>, &str) -> bool,
) -> Result<(), &'static str> {
    if !key.name.name().is_empty() {
        return Ok(());
    }
    match effect {
        Effect::Create(create) if may_show(&key.kind, key.name.namespace(), &create.object) => {
            Ok(())
        }
        Effect::Create(_) => Err(
            "metadata.name is missing; generateName is only allowed for an object that the controller's watch of the kind will show (by its selectors and namespaces), since a lost response would otherwise create a second object",
        ),
        _ => Err("the effect names no object"),
    }
}
