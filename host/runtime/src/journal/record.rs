//! What the journal keeps of one turn. Plain data. A record shares the texts of objects with the
//! store, until the store replaces them. This module must not know where records are kept, or what
//! they are used for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use vmhost_core::{Effect, Gvk, Next, ObjectKey, ObjectName, Refusal, Snapshot, Trace};
use vmhost_queue::{Decision, Lane};

use crate::journal::tag::WakeTag;
use crate::observe::metrics::controller::TurnResult;

mod short;
pub(crate) mod withheld;

use withheld::{Configured, Digests};

/// The most bytes that the texts of a record may have. A larger record has digests in place of its
/// texts, and its turn cannot be replayed.
pub(crate) const LARGEST: usize = 256 << 10;

/// If a turn asks for the next one within less than this time, it asks for it soon.
const SOON: Duration = Duration::from_secs(1);

/// The longest pause between prompt quiet turns that are counted together.
const PAUSE: Duration = Duration::from_secs(10);

/// What all turns of one controller on one generation share.
#[derive(Debug)]
pub(crate) struct Origin {
    /// The controller's label: `vm/virtualmachines`.
    pub(crate) controller: Arc<str>,
    /// The kind of its keys.
    pub(crate) kind: Gvk,
    /// `vmhost/<plugin>/<controller>`.
    pub(crate) field_manager: String,
    /// The controller's finalizer, if it has one.
    pub(crate) finalizer: Option<String>,
    /// The generation's number.
    pub(crate) generation: u64,
    /// The digest of its component.
    pub(crate) digest: String,
    /// The settings by which its calls read their cluster; empty at home.
    pub(crate) cluster: BTreeMap<String, String>,
    /// The settings that it was given.
    pub(crate) settings: Configured,
}

/// One turn that did something, or failed.
#[derive(Clone, Debug)]
pub(crate) struct TurnRecord {
    pub(crate) origin: Arc<Origin>,
    pub(crate) key: ObjectName,
    /// When the turn began.
    pub(crate) began: Instant,
    /// From the beginning to the decision.
    pub(crate) took: Duration,
    /// How long the plugin's call took; zero without a call.
    pub(crate) call: Duration,
    /// How long the key had waited.
    pub(crate) wait: Duration,
    /// The lane in which it had waited.
    pub(crate) lane: Lane,
    /// What woke the key.
    pub(crate) tag: WakeTag,
    /// Failures since the last success, as the policy saw them.
    pub(crate) attempt: u32,
    /// The refusal of the last turn, as the policy saw it.
    pub(crate) last: Option<Refusal>,
    /// Whether the policy was asked to clean up.
    pub(crate) deleting: bool,
    /// The version of the object that the turn saw. `None` if the object was gone.
    pub(crate) version: Option<u64>,
    /// The object that the turn saw. `None` if it was gone, or `cut`.
    pub(crate) object: Option<Snapshot>,
    /// The object of the last successful turn, if the controller asks for it.
    pub(crate) previous: Option<Snapshot>,
    /// The call's reads with their answers, and the clock readings and random numbers that it drew.
    pub(crate) trace: Trace,
    /// How the turn went.
    pub(crate) act: Act,
    /// The effects that the policy returned, in order. The host's own effect about a finalizer is
    /// the last.
    pub(crate) effects: Vec<Effect>,
    /// What became of the effects, up to the first refused one.
    pub(crate) answers: Vec<Answer>,
    /// The result, as in the metrics.
    pub(crate) result: TurnResult,
    /// The queue's decision.
    pub(crate) decision: Decision,
    /// The turn's log line, if it wrote one about its end.
    pub(crate) message: Option<String>,
    /// The digests of objects, reads and effects if these were too large to keep, so that their
    /// fields are empty.
    pub(crate) cut: Option<Box<Digests>>,
}

/// A turn's effects, with the host's own one last, and what became of them, up to the first refused
/// one.
#[derive(Debug, Default)]
pub(crate) struct Acts {
    pub(crate) effects: Vec<Effect>,
    pub(crate) answers: Vec<Answer>,
}

/// How a turn went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// The policy returned, and said what it wants next.
    Returned(Next),
    /// The call ended without an outcome, for this reason.
    Broke(String),
    /// The host added the finalizer; the policy was not called.
    AddedFinalizer,
    /// The object is being deleted and waits for other finalizers; the policy was not called.
    Left,
    /// The plugin is paused for this long, because all its calls fail.
    Paused(Duration),
    /// The key is held for this long, because its own turns keep waking it.
    Held(Duration),
    /// A webhook denied a request.
    Denied {
        /// What was asked: `CREATE of Pod.v1`.
        asked: String,
        /// Why it was denied.
        reason: String,
    },
}

/// What became of an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The effect's place in the list.
    pub(crate) effect: u32,
    /// The object that the effect names. Its name is empty if the server should have generated one
    /// and did not.
    pub(crate) object: ObjectKey,
    /// The object's version before the write, if known.
    pub(crate) before: Option<u64>,
    /// How it ended.
    pub(crate) end: AnswerEnd,
}

/// How an effect ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AnswerEnd {
    /// The API server carried it out. The number is the version afterwards, or 0 if the answer
    /// shows none.
    Written(u64),
    /// The object is gone.
    Gone,
    /// An equal apply was carried out before; nothing was sent.
    Repeated,
    /// The turn's own object is gone; nothing was sent.
    NoObject,
    /// The API server or the host refused it, with this status code and text. Without a code it was
    /// not carried out for another reason.
    Refused(u16, String),
    /// It was sent, and no answer came, for this reason: it may have been carried out.
    Unanswered(String),
}

impl TurnRecord {
    /// When the turn ended.
    pub(crate) fn ended(&self) -> Instant {
        self.began + self.took
    }

    /// The bytes that the record counts for: all its texts. Those that it shares with the store
    /// count too, because after the object's next change only the record holds them.
    pub(crate) fn bytes(&self) -> usize {
        let text =
            |object: &Option<Snapshot>| object.as_ref().map_or(0, |object| object.text.len() + 64);
        size_of::<Self>()
            + self.key.as_str().len()
            + text(&self.object)
            + text(&self.previous)
            + self.trace.bytes()
            + self.effects.iter().map(effect_bytes).sum::<usize>()
            + self.answers.iter().map(Answer::bytes).sum::<usize>()
            + self.message.as_ref().map_or(0, String::len)
            + self
                .last
                .as_ref()
                .map_or(0, |last| last.reason.len() + last.message.len())
            + self.cut.as_ref().map_or(0, |_| size_of::<Digests>() + 64)
            + match &self.act {
                Act::Returned(Next::Retry(text) | Next::Fail(text)) | Act::Broke(text) => {
                    text.len()
                }
                Act::Denied { asked, reason } => asked.len() + reason.len(),
                _ => 0,
            }
    }

    /// Returns whether the turn failed.
    pub(crate) fn is_failure(&self) -> bool {
        matches!(self.result, TurnResult::Error | TurnResult::Terminal)
    }

    /// Returns whether an answer shows that an object changed.
    pub(crate) fn changed(&self) -> bool {
        self.answers.iter().any(Answer::changed)
    }
}

impl Answer {
    /// Returns whether it shows that the object changed.
    pub(crate) fn changed(&self) -> bool {
        match self.end {
            AnswerEnd::Written(after) => self.before.is_none_or(|before| before < after),
            AnswerEnd::Gone => true,
            _ => false,
        }
    }

    fn bytes(&self) -> usize {
        let text = match &self.end {
            AnswerEnd::Refused(_, text) | AnswerEnd::Unanswered(text) => text.len(),
            _ => 0,
        };
        size_of::<Self>() + text + self.object.text_bytes() + 64
    }
}

/// Returns whether the queue hands the key out again by itself, within a second or as soon as the
/// rate limit allows.
pub(crate) fn is_soon(decision: &Decision) -> bool {
    match decision {
        Decision::Now | Decision::RateLimited { .. } => true,
        Decision::After(delay) => *delay < SOON,
        Decision::Forget | Decision::Postpone(_) => false,
    }
}

/// The size of an effect with its texts, and what the allocator adds to them.
fn effect_bytes(effect: &Effect) -> usize {
    size_of::<Effect>() + effect.text_bytes() + 128
}

/// Quiet turns of one key, all alike: the policy was called, wanted nothing, and the turn
/// succeeded; or the key was put back without a turn.
#[derive(Clone, Debug)]
pub(crate) struct Quiet {
    pub(crate) origin: Arc<Origin>,
    pub(crate) key: ObjectName,
    /// When the last of them began.
    pub(crate) began: Instant,
    /// When the first of them began.
    pub(crate) since: Instant,
    /// How many there were.
    pub(crate) count: u32,
    /// How long the last one took.
    pub(crate) took: Duration,
    /// How long its call took.
    pub(crate) call: Duration,
    /// How long its key had waited.
    pub(crate) wait: Duration,
    /// What woke it.
    pub(crate) tag: WakeTag,
    /// The version of the object that it saw. `None` if the object was gone.
    pub(crate) version: Option<u64>,
    /// How it went: the policy returned, or there was no turn.
    pub(crate) act: Act,
    /// The queue's decision after it.
    pub(crate) decision: Decision,
}

impl Quiet {
    /// When the last of the turns ended.
    pub(crate) fn ended(&self) -> Instant {
        self.began + self.took
    }

    /// Returns whether a later turn can be counted together with these: it has the same key,
    /// controller and generation, and began and ended in the same way.
    ///
    /// Each worker has its own [`Origin`], so that comparing pointers is not enough.
    pub(crate) fn is_of(&self, later: &Self) -> bool {
        let (one, other) = (&self.origin, &later.origin);
        let is_same = Arc::ptr_eq(one, other)
            || (one.generation == other.generation && one.controller == other.controller);
        is_same && self.key == later.key && self.is_alike(later)
    }

    /// Returns whether these are turns of the same key of the same controller.
    pub(crate) fn is_of_key(&self, later: &Self) -> bool {
        self.key == later.key && self.origin.controller == later.origin.controller
    }

    /// A turn that the turn before asked for is not counted together with a turn that a change
    /// woke, nor with one before a pause: the number and the times have to show how fast turns
    /// follow each other.
    fn is_alike(&self, later: &Self) -> bool {
        let returned = |turn: &Self| matches!(turn.act, Act::Returned(_));
        let pause = later.began.saturating_duration_since(self.began);
        returned(self) == returned(later)
            && self.is_prompt() == later.is_prompt()
            && (!later.is_prompt() || pause <= PAUSE)
    }

    /// Returns whether the last of these turns ran only because the turn before it asked for it,
    /// and asked for another one soon.
    pub(crate) fn is_prompt(&self) -> bool {
        matches!(self.act, Act::Returned(_))
            && self.tag.is_own_decision()
            && is_soon(&self.decision)
    }

    /// Counts a later turn of the same key.
    pub(crate) fn add(&mut self, later: Self) {
        let (since, count) = (self.since, self.count.saturating_add(later.count));
        *self = Self {
            since,
            count,
            ..later
        };
    }
}
