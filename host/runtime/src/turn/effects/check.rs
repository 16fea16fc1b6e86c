//! What is looked at before the first effect of a turn is written: the grants, how many there are, what they name. Decided from the outcome alone, so that a case
//! without a cluster is told the same.

use std::time::Duration;

use vmhost_core::{Effect, Grants, Gvk, ObjectKey, Refusal};

use crate::rights::access::Required;
use crate::turn::verdict::{Stop, Verdict};

/// Effects of one turn. More belong into several turns: a worker is held while they are written.
const EFFECTS: usize = 1000;

/// Why effects are refused before the first is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Position of the effect at fault.
    pub effect: usize,
    /// As an API server would name it.
    pub reason: &'static str,
    /// For people.
    pub message: String,
}

/// Checks whether these effects may be written. Returns what each of them writes, as
/// [`Effect::key`]: only a create's name may be empty. `may_show`: returns whether a watch may show
/// an object of this kind, in this namespace, with this text.
pub fn check(
    effects: &[Effect],
    grants: &Grants,
    may_show: impl Fn(&Gvk, Option<&str>, &str) -> bool,
) -> Result<Vec<Option<ObjectKey>>, Refused> {
    let keys = grants.check_effects(effects).map_err(|denied| Refused {
        effect: denied.effect as usize,
        reason: "NotGranted",
        message: denied.reason,
    })?;
    if effects.len() > EFFECTS {
        let count = effects.len();
        return Err(Refused {
            effect: EFFECTS,
            reason: "TooManyEffects",
            message: format!("{count} effects are more than the {EFFECTS} of one turn"),
        });
    }
    for (index, (effect, key)) in effects.iter().zip(&keys).enumerate() {
        let Some(key) = key else {
            continue;
        };
        check_name(effect, key, &may_show).map_err(|message| Refused {
            effect: index,
            reason: "BadRequest",
            message: message.into(),
        })?;
    }
    Ok(keys)
}

impl Refused {
    /// It ends the turn: repeating it would not mend it.
    pub(super) fn stop(self, effects: &[Effect]) -> Stop {
        let code = if self.reason == "BadRequest" {
            400
        } else {
            403
        };
        // The text may quote what the guest returned.
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
            "metadata.name is missing, and generateName is only taken for an object that the controller's watch of the kind will show, by its selectors and namespaces: a lost answer would make a second object",
        ),
        _ => Err("it names no object"),
    }
}
