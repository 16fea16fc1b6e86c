//! **Settle.** The two kinds of turns with effects: one in which the plugin returned an outcome,
//! and one in which the host adds the finalizer. This module must not know how an effect is carried
//! out.

use std::sync::Arc;

use vmhost_core::{Effect, Next, Outcome};

use super::{Effects, Settled};
use crate::journal::record::Acts;
use crate::turn::Turn;
use crate::turn::decide::Ended;
use crate::turn::finalizer::{self, NOT_DELETING};

/// A requeue within fewer milliseconds than this counts as immediate.
const AT_ONCE: u32 = 100;

impl Effects {
    /// Carries out the outcome that a plugin returned.
    pub async fn settle(self: &Arc<Self>, turn: &Arc<Turn>, outcome: Outcome) -> Settled {
        let Outcome { effects, mut next } = outcome;
        let removal = removal(turn, &next).unwrap_or_else(|reason| {
            next = Next::Fail(reason.into());
            None
        });
        let at_once = matches!(next, Next::RequeueAfterMs(ms) if ms < AT_ONCE);
        if effects.is_empty() && removal.is_none() {
            return Settled {
                ended: Ended::Done(next),
                busy: at_once,
                acts: Acts::default(),
            };
        }
        let carried = self.carry_out(turn, effects, removal);
        // Boxed, so that turns without effects stay small: a turn's future is moved.
        let carried = Box::pin(carried).await;
        Settled {
            ended: carried.stop.map_or(Ended::Done(next), Ended::Refused),
            busy: at_once || carried.wrote,
            acts: carried.acts,
        }
    }

    /// Runs a turn without a call: the object gets its finalizer before the plugin may see it.
    pub(crate) async fn prepare(self: &Arc<Self>, turn: &Arc<Turn>, effect: Effect) -> Settled {
        let carried = Box::pin(self.carry_out(turn, Vec::new(), Some(effect))).await;
        let ended = match carried.stop {
            None if carried.wrote => Ended::Prepared,
            // Another writer removes the finalizer as fast as it is added.
            None => Ended::Done(Next::Requeue),
            Some(stop) => Ended::Refused(stop),
        };
        Settled {
            ended,
            busy: true,
            acts: carried.acts,
        }
    }
}

/// The write that removes the finalizer, if the plugin says that it has cleaned up.
fn removal(turn: &Turn, next: &Next) -> Result<Option<Effect>, &'static str> {
    if *next != Next::Finalized {
        return Ok(None);
    }
    let finalizer = turn.desk.sources.description().finalizer.as_deref();
    match (finalizer, &turn.object) {
        (Some(finalizer), Some(object)) if turn.deleting => Ok(finalizer::removal(
            finalizer,
            &turn.desk.controller.kind,
            object,
        )),
        _ => Err(NOT_DELETING),
    }
}
