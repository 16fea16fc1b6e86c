//! Effects in other clusters than the turn's: finds the cluster that an effect names, and says what
//! became of the write.
//!
//! A plugin writes only to clusters in which it has a controller; a candidate to those in which the
//! live version has one, as far as its own terms go. Nothing of such a write is remembered: the
//! stores of the turn's controller do not show it. This module must not know how a write reaches a
//! cluster ([`Reach`] does).

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use vmhost_cluster::{Error, Written};
use vmhost_core::{Effect, ObjectKey, Refusal, cut};

use super::warnings::Warnings;
use super::writes::guard::Guard;
use crate::config::terms::Terms;
use crate::controller::Controller;
use crate::deploy::slot::Generation;
use crate::elsewhere::{self, Elsewhere};
use crate::journal::record::{Answer, AnswerEnd};
use crate::rights::access::Required;
use crate::site::member::Member;
use crate::turn::verdict::{Stop, UNREACHED, Verdict, judge, refusal, wait};

/// Writes to each cluster of the host.
pub(crate) trait Reach: Send + Sync {
    /// Carries out an effect on an object of this member, or of the host's own cluster.
    fn send<'a>(
        &'a self,
        member: Option<&'a Arc<Member>>,
        write: (&'a Effect, &'a ObjectKey),
        guard: Guard<'a>,
        manager: &'a str,
    ) -> BoxFuture<'a, Result<Written, Error>>;
}

/// An effect in the cluster that it names.
pub(super) struct Placed {
    /// The effect.
    pub(super) effect: Effect,
    /// The object that it writes.
    pub(super) key: ObjectKey,
    /// The cluster; `None` for the host's own.
    pub(super) member: Option<Arc<Member>>,
    /// Whether it names the turn's own cluster, so that it is like any other effect.
    pub(super) is_here: bool,
}

/// Why the cluster that an effect names is not written to.
struct Misplaced {
    verdict: Verdict,
    code: u16,
    reason: &'static str,
    message: String,
}

impl Misplaced {
    fn refused(code: u16, reason: &'static str, message: String) -> Self {
        Self {
            verdict: Verdict::Terminal,
            code,
            reason,
            message,
        }
    }

    fn bad(message: String) -> Self {
        Self::refused(400, "BadRequest", message)
    }

    fn stop(self, index: usize) -> Stop {
        let wait = match self.verdict {
            Verdict::Retry => UNREACHED,
            _ => Duration::ZERO,
        };
        Stop {
            verdict: self.verdict,
            wait,
            refusal: Refusal {
                effect: index as u32,
                code: self.code,
                reason: self.reason.into(),
                // The text may quote data of the guest.
                message: cut(&self.message, 1024).to_owned(),
            },
            what: format!("other (effect {index})"),
            required: Required::default(),
        }
    }
}

/// Finds the clusters of those effects that name one; `own` is the turn's. `seated` is the
/// generation with the controllers in members, and the terms are those of the turn. The other
/// effects have `None`. An error ends the turn before anything is written.
pub(super) fn place(
    seated: (&Generation, &Terms),
    own: Option<u64>,
    effects: &[Effect],
) -> Result<Vec<Option<Placed>>, Box<Stop>> {
    let placed = effects.iter().enumerate().map(|(index, effect)| {
        let Some(read) = elsewhere::read(effect) else {
            return Ok(None);
        };
        let placed = read
            .map_err(Misplaced::bad)
            .and_then(|elsewhere| one(seated, own, elsewhere));
        placed.map(Some).map_err(|why| Box::new(why.stop(index)))
    });
    placed.collect()
}

fn one(
    seated: (&Generation, &Terms),
    own: Option<u64>,
    Elsewhere { cluster, effect }: Elsewhere,
) -> Result<Placed, Misplaced> {
    let member = member(seated, cluster.as_deref())?;
    let key = effect.key().map_err(Misplaced::bad)?;
    let key = key.ok_or_else(|| Misplaced::bad("the effect writes no object".to_owned()))?;
    Ok(Placed {
        effect,
        key,
        is_here: own == member.as_ref().map(|member| member.number),
        member,
    })
}

/// The cluster of this name, in which the plugin has a controller; `None` for the host's own.
fn member(
    (generation, terms): (&Generation, &Terms),
    name: Option<&str>,
) -> Result<Option<Arc<Member>>, Misplaced> {
    let not_granted = |why: &str| Misplaced::refused(403, "NotGranted", why.to_owned());
    let Some(name) = name else {
        return match generation.controllers.is_empty() {
            false => Ok(None),
            true => Err(not_granted(
                "no controller of the plugin works in the host's own cluster",
            )),
        };
    };
    let seats = generation.seats.load();
    let mut members = seats.values().map(|seat| &seat.branch.member);
    if let Some(member) = members.find(|member| &*member.name == name) {
        let label = |key: &str| member.labels.get(key).map(String::as_str);
        return match terms.takes(name, label) {
            true => Ok(Some(member.clone())),
            // The live version may work there, and this candidate may not.
            false => Err(not_granted(
                "the terms of the candidate leave the cluster out",
            )),
        };
    }
    let mut controllers = generation.description().controllers.iter();
    if controllers.all(|controller| controller.clusters.is_home()) {
        return Err(not_granted(
            "no controller of the plugin works in member clusters",
        ));
    }
    Err(Misplaced {
        verdict: Verdict::Retry,
        code: 0,
        reason: "NoAnswer",
        message: format!(
            "the cluster {name} is not connected, or no controller of the plugin works there"
        ),
    })
}

/// What a turn writes with.
pub(super) struct Pen<'a> {
    /// The turn's controller.
    pub(super) controller: &'a Controller,
    /// The guards of the write.
    pub(super) guard: Guard<'a>,
    /// The warnings that were logged.
    pub(super) warnings: &'a Warnings,
}

/// Carries out an effect in the cluster that it names. Returns what became of it, and a stop if it
/// ends the turn.
pub(super) async fn write(
    reach: &dyn Reach,
    pen: Pen<'_>,
    (index, placed): (usize, &Placed),
) -> (Answer, Option<Stop>) {
    let Placed { effect, key, .. } = placed;
    let Pen {
        controller,
        guard,
        warnings,
    } = pen;
    let verb = effect.verb();
    let what = format!("{verb} {key} in {}", placed.place());
    let member = placed.member.as_ref();
    let sending = reach.send(member, (effect, key), guard, &controller.field_manager);
    let (end, stop) = match sending.await {
        Ok(written) => {
            controller.metrics.effect(verb, "ok");
            warnings.tell(&what, &written.warnings);
            let end = match written.gone {
                true => AnswerEnd::Gone,
                false => AnswerEnd::Written(written.version),
            };
            (end, None)
        }
        Err(error) => {
            let verdict = match judge(effect, false, &error) {
                // The host reviews a right that is missing in the turn's own cluster only.
                Verdict::Forbidden => Verdict::Retry,
                verdict => verdict,
            };
            controller.metrics.effect(verb, verdict.label());
            let refusal = refusal(index, effect, &error);
            let end = match verdict {
                // A delete: the records do not see that this effect is one.
                Verdict::Done => AnswerEnd::Gone,
                _ if error.maybe_applied() => AnswerEnd::Unanswered(refusal.message.clone()),
                _ => AnswerEnd::Refused(refusal.code, refusal.message.clone()),
            };
            let stop = (verdict != Verdict::Done).then(|| Stop {
                verdict,
                wait: wait(&error, member.is_some()),
                refusal,
                what,
                required: Required::default(),
            });
            (end, stop)
        }
    };
    let answer = Answer {
        effect: index as u32,
        object: key.clone(),
        before: None,
        end,
    };
    (answer, stop)
}

impl Placed {
    /// The cluster, for messages.
    fn place(&self) -> String {
        match &self.member {
            None => "the host's own cluster".to_owned(),
            Some(member) => format!("cluster {}", member.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use vmhost_cluster::Status;
    use vmhost_core::{Delete, Gvk, ObjectName};

    use super::*;
    use crate::controller::tests::controller;

    /// A cluster without objects.
    struct Empty;

    impl Reach for Empty {
        fn send<'a>(
            &'a self,
            _: Option<&'a Arc<Member>>,
            _: (&'a Effect, &'a ObjectKey),
            _: Guard<'a>,
            _: &'a str,
        ) -> BoxFuture<'a, Result<Written, Error>> {
            let status = Status {
                code: 404,
                reason: "NotFound".into(),
                ..Status::default()
            };
            Box::pin(async move { Err(Error::Refused(status)) })
        }
    }

    #[tokio::test]
    async fn a_delete_of_what_is_gone_is_not_recorded_as_refused() {
        let controller = controller();
        let key = ObjectKey {
            kind: Gvk::new("", "v1", "Pod"),
            name: ObjectName::new(Some("a"), "x"),
        };
        let delete = Delete {
            key: key.clone(),
            uid: None,
            if_version: None,
            propagation: None,
        };
        let placed = Placed {
            effect: Effect::Delete(delete),
            key,
            member: None,
            is_here: false,
        };
        let warnings = Warnings::default();
        let pen = Pen {
            controller: &controller,
            guard: Guard::default(),
            warnings: &warnings,
        };
        let (answer, stop) = write(&Empty, pen, (0, &placed)).await;
        assert!(stop.is_none());
        assert_eq!(answer.end, AnswerEnd::Gone);
    }
}
