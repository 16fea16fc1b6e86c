//! What is kept of one turn. Plain data; a record shares its texts with the store as long as the
//! object does not change.

use std::sync::Arc;
use std::time::{Duration, Instant};

use vmhost_core::{Effect, Gvk, Next, ObjectKey, ObjectName, Refusal, Snapshot, Trace};
use vmhost_queue::{Decision, Lane};

use crate::journal::tag::WakeTag;
use crate::observe::metrics::controller::TurnResult;

mod short;

/// The texts of a record may have this many bytes. A larger record drops them, and its turn cannot
/// be replayed.
pub(crate) const LARGEST: usize = 256 << 10;

/// A turn that asks for the next one within less than this time asks for it soon.
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
    /// The call's reads with their answers, and what it drew of clock and chance.
    pub(crate) trace: Trace,
    /// What the turn came to.
    pub(crate) act: Act,
    /// The effects that the policy returned, in order. The host's own effect about a finalizer is
    /// the last.
    pub(crate) effects: Vec<Effect>,
    /// What became of the effects, up to the first that was refused.
    pub(crate) answers: Vec<Answer>,
    /// The result, as in the metrics.
    pub(crate) result: TurnResult,
    /// The queue's decision.
    pub(crate) decision: Decision,
    /// The turn's log line, if it wrote one about its end.
    pub(crate) message: Option<String>,
    /// Whether objects, reads and effects were too large to keep; they are empty then.
    pub(crate) cut: bool,
}

/// A turn's effects, with the host's own one last, and what became of them, up to the first that
/// was refused.
#[derive(Debug, Default)]
pub(crate) struct Acts {
    pub(crate) effects: Vec<Effect>,
    pub(crate) answers: Vec<Answer>,
}

/// What a turn came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// The policy returned, and said what comes next.
    Returned(Next),
    /// The call ended without an outcome, for this reason.
    Broke(String),
    /// The host added the finalizer; the policy was not called.
    AddedFinalizer,
    /// The object is being deleted and waits for other finalizers; the policy was not called.
    Left,
    /// All calls of the plugin fail, so that it is paused for this long.
    Paused(Duration),
    /// The key's own turns keep waking it, so that it rests for this long.
    Held(Duration),
}

/// What became of an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The effect's place in the list.
    pub(crate) effect: u32,
    /// The object that it names. Its name is empty if the server was to generate one and did not.
    pub(crate) object: ObjectKey,
    /// The object's version before the write, if known.
    pub(crate) before: Option<u64>,
    /// How it ended.
    pub(crate) end: AnswerEnd,
}

/// How an effect ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AnswerEnd {
    /// The API server carried it out. The version afterwards; 0 if the answer shows none.
    Written(u64),
    /// The object is gone.
    Gone,
    /// An equal apply was carried out before; nothing was sent.
    Repeated,
    /// The turn's own object is gone; nothing was sent.
    NoObject,
    /// The API server or the host refused it, with this status code and text.
    Refused(u16, String),
}

impl TurnRecord {
    /// When the turn ended.
    pub(crate) fn ended(&self) -> Instant {
        self.began + self.took
    }

    /// The bytes that the record counts for: all of its texts, also those that it shares with the
    /// store, since the next change of the object leaves them to the record.
    pub(crate) fn bytes(&self) -> usize {
        let text =
            |object: &Option<Snapshot>| object.as_ref().map_or(0, |object| object.text.len() + 64);
        size_of::<Self>()
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
            + match &self.act {
                Act::Returned(Next::Retry(text) | Next::Fail(text)) | Act::Broke(text) => {
                    text.len()
                }
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
            AnswerEnd::Refused(_, text) => text.len(),
            _ => 0,
        };
        size_of::<Self>() + text + self.object.text_bytes() + 64
    }
}

/// Returns whether the queue hands the key out again by itself, within a second or as soon as the
/// rate limit lets it.
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
    /// What it came to: it returned, or no turn took place.
    pub(crate) act: Act,
    /// The queue's decision after it.
    pub(crate) decision: Decision,
}

impl Quiet {
    /// When the last of the turns ended.
    pub(crate) fn ended(&self) -> Instant {
        self.began + self.took
    }

    /// Returns whether a later turn can be counted with these: it is of the same key, controller
    /// and generation, and came and ended alike.
    ///
    /// Each worker has an [`Origin`] of its own, so that pointers do not tell.
    pub(crate) fn is_of(&self, later: &Self) -> bool {
        let (one, other) = (&self.origin, &later.origin);
        let is_same = Arc::ptr_eq(one, other)
            || (one.generation == other.generation && one.controller == other.controller);
        is_same && self.key == later.key && self.is_alike(later)
    }

    /// Turns that ask for each other are not counted with those that changes woke, nor over a
    /// pause: their number and their time tell how fast they follow each other.
    fn is_alike(&self, later: &Self) -> bool {
        let returned = |turn: &Self| matches!(turn.act, Act::Returned(_));
        let pause = later.began.saturating_duration_since(self.began);
        returned(self) == returned(later)
            && self.is_prompt() == later.is_prompt()
            && (!later.is_prompt() || pause <= PAUSE)
    }

    /// Returns whether the last of them came only because the turn before it had asked for it, and
    /// asked for the next one soon.
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
