//! Shortens a record that is too large to keep: digests take the place of its texts. This module
//! must not know which records are too large.

use vmhost_core::{Digest, Next, Snapshot, Trace, cut};

use super::withheld::Digests;
use super::{Act, AnswerEnd, TurnRecord};

/// The most bytes that are kept of each text that a plugin or an API server wrote.
const SHORT: usize = 1024;

/// The most answers that are kept. The last one shows why the turn ended.
const ANSWERS: usize = 64;

impl TurnRecord {
    /// Replaces the large texts by digests, and shortens the others, each of which may be as long
    /// as everything that a plugin returns.
    pub(crate) fn cut(&mut self) {
        self.cut = Some(Box::new(self.digests()));
        (self.object, self.previous) = (None, None);
        self.trace = Trace::default();
        self.effects = Vec::new();
        if let Act::Returned(Next::Retry(text) | Next::Fail(text)) | Act::Broke(text) =
            &mut self.act
        {
            shorten(text);
        }
        if let Act::Denied { asked, reason } = &mut self.act {
            shorten(asked);
            shorten(reason);
        }
        if let Some(last) = &mut self.last {
            shorten(&mut last.reason);
            shorten(&mut last.message);
        }
        self.message.iter_mut().for_each(shorten);
        let surplus = self.answers.len().saturating_sub(ANSWERS);
        self.answers.drain(..surplus);
        self.answers
            .retain(|answer| answer.object.text_bytes() <= SHORT);
        for answer in &mut self.answers {
            if let AnswerEnd::Refused(_, text) | AnswerEnd::Unanswered(text) = &mut answer.end {
                shorten(text);
            }
        }
        self.answers.shrink_to_fit();
    }

    fn digests(&self) -> Digests {
        let object = |object: &Option<Snapshot>| {
            let object = object.as_ref();
            object.map(|object| Digest::of(&object.text))
        };
        let effects = u32::try_from(self.effects.len()).unwrap_or(u32::MAX);
        Digests {
            object: object(&self.object),
            previous: object(&self.previous),
            reads: self.trace.digest(),
            effects: (effects, Digest::of(&self.effects)),
        }
    }
}

/// Shortens a text, and frees the memory of the rest.
fn shorten(text: &mut String) {
    if text.len() > SHORT {
        *text = cut(text, SHORT).to_owned();
    }
}
