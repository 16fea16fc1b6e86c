//! What a write asks of webhooks, and what they have answered so far.
//!
//! A write is one function under the lock, and no webhook is called there. A write that meets a
//! question without an answer notes it and ends with an error, before it has stored anything; the
//! question is asked without the lock, and the write begins anew (`answers`). If the cluster has
//! changed in the meantime so that the write comes to another question, that one is asked too. Must
//! not know how webhooks are called.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::access::credentials::Author;
use crate::admission::registered::Registered;
use crate::admission::review::Review;
use crate::kinds::Target;
use crate::meta;
use crate::object::Object;
use crate::registry::Registry;
use crate::status::ApiError;

/// The most characters of all warnings before each is cut, and of one that is, as in a real server:
/// clients refuse an answer with more in its headers.
const WARNINGS: usize = 4 << 10;
const CUT_WARNING: usize = 256;

/// A question.
#[derive(Clone, Debug)]
pub(crate) enum Question {
    /// What do mutating policies and webhooks make of an object?
    Mutate(Case),
    /// Does every validating webhook allow a request?
    Validate(Case),
    /// What is an object in another version? `stored`: it is as the store has it.
    Convert {
        to: Target,
        object: Object,
        stored: bool,
    },
}

/// A request, with what decides which webhooks and policies are asked about it.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub review: Arc<Review>,
    pub target: Target,
    pub registered: Arc<Registered>,
    pub registry: Arc<Registry>,
    /// The namespace of the request.
    pub namespace: Option<Object>,
    /// The author of the request, who may be asked about by expressions.
    pub author: Option<Arc<Author>>,
}

/// An answer: the object, if the question is about one, or the refusal of the request; and
/// warnings for the client, which a refusal may have too.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub outcome: Result<Option<Object>, ApiError>,
    pub warnings: Vec<String>,
}

impl From<Result<Option<Object>, ApiError>> for Answer {
    fn from(outcome: Result<Option<Object>, ApiError>) -> Answer {
        Answer {
            outcome,
            warnings: Vec::new(),
        }
    }
}

/// The questions of one request.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    ledger: Mutex<Ledger>,
    /// The uid of the object that the request creates: the same in each attempt.
    uid: OnceLock<String>,
    /// The webhooks and policies with which the request began: a webhook that is asked may write
    /// configurations, and must not be asked again for each.
    registered: OnceLock<Arc<Registered>>,
}

#[derive(Debug, Default)]
struct Ledger {
    /// Questions of the last attempt without an answer.
    open: Vec<Question>,
    /// By the uid of the object that a question is about: a deletion of many objects asks about
    /// each, and looks all answers up under the lock of the cluster.
    answered: HashMap<String, Vec<(Question, Answer)>>,
    /// Warnings of the last attempt.
    warnings: Vec<String>,
}

impl Question {
    /// Returns the uid of the object that the question is about; empty if it has none yet.
    fn uid(&self) -> &str {
        let object = match self {
            Question::Mutate(case) | Question::Validate(case) => {
                let review = &case.review;
                review.old.as_ref().or(review.object.as_ref())
            }
            Question::Convert { object, .. } => Some(object),
        };
        object.map_or("", |object| meta::text(object, "uid"))
    }

    fn is_same(&self, other: &Question) -> bool {
        match (self, other) {
            (Question::Mutate(a), Question::Mutate(b))
            | (Question::Validate(a), Question::Validate(b)) => {
                Arc::ptr_eq(&a.registered, &b.registered) && a.review.is_same(&b.review)
            }
            (
                Question::Convert { to, object, .. },
                Question::Convert {
                    to: other_to,
                    object: other,
                    ..
                },
            ) => {
                Arc::ptr_eq(&to.kind, &other_to.kind)
                    && to.version == other_to.version
                    && (Arc::ptr_eq(object, other) || object == other)
            }
            _ => false,
        }
    }
}

impl Questions {
    /// Begins another attempt of the write.
    pub fn begin(&self) {
        let mut ledger = self.ledger.lock();
        ledger.open.clear();
        ledger.warnings.clear();
    }

    /// Returns the answer to a question, if there is one. Otherwise the write must end.
    pub fn ask(&self, question: Question) -> Result<Option<Object>, ApiError> {
        let mut ledger = self.ledger.lock();
        let answered = ledger.answered.get(question.uid());
        let mut answered = answered.into_iter().flatten();
        let known = answered.find(|(asked, _)| asked.is_same(&question));
        let Some(answer) = known.map(|(_, answer)| answer.clone()) else {
            ledger.open.push(question);
            return Err(ApiError::internal("a webhook was not asked yet"));
        };
        ledger.warnings.extend(answer.warnings);
        answer.outcome
    }

    /// Returns an object in another version, as its kind's webhook converts it.
    pub fn convert(&self, to: &Target, object: &Object, stored: bool) -> Result<Object, ApiError> {
        let question = Question::Convert {
            to: to.clone(),
            object: object.clone(),
            stored,
        };
        let converted = self.ask(question)?;
        converted.ok_or_else(|| ApiError::internal("a conversion gave no object"))
    }

    /// Takes the questions that the last attempt could not answer.
    pub fn take_open(&self) -> Vec<Question> {
        std::mem::take(&mut self.ledger.lock().open)
    }

    /// Returns whether the attempt has come to a question without an answer.
    pub fn has_open(&self) -> bool {
        !self.ledger.lock().open.is_empty()
    }

    pub fn answer(&self, question: Question, answer: Answer) {
        let mut ledger = self.ledger.lock();
        let about = ledger.answered.entry(question.uid().to_owned());
        about.or_default().push((question, answer));
    }

    /// Adds a warning for the client.
    pub fn warn(&self, text: String) {
        self.ledger.lock().warnings.push(text);
    }

    /// Returns the warnings for the client, each once.
    pub fn warnings(&self) -> Vec<String> {
        let ledger = self.ledger.lock();
        let mut seen = HashSet::new();
        let all = ledger.warnings.iter();
        let once = all.filter(|text| !text.is_empty() && seen.insert(text.as_str()));
        let found: Vec<&String> = once.collect();
        let length = |text: &str| text.chars().count();
        if found.iter().map(|text| length(text)).sum::<usize>() <= WARNINGS {
            return found.into_iter().cloned().collect();
        }
        let mut left = WARNINGS;
        let mut cut = Vec::new();
        for text in found {
            if left == 0 {
                break;
            }
            let text: String = text.chars().take(CUT_WARNING).collect();
            left = left.saturating_sub(length(&text));
            cut.push(text);
        }
        cut
    }

    /// Returns the webhooks and policies that decide over the request: those of its first attempt.
    pub fn registered(&self, now: &Arc<Registered>) -> &Arc<Registered> {
        self.registered.get_or_init(|| now.clone())
    }

    /// Returns the uid of the object that the request creates.
    pub fn uid(&self) -> &str {
        self.uid.get_or_init(meta::new_uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_warnings_are_cut() {
        let questions = Questions::default();
        let long = "a".repeat(3_000);
        questions.warn(long.clone());
        questions.warn(long.clone());
        assert_eq!(questions.warnings(), [long]);
        for at in 0..100 {
            questions.warn(format!("{at} {}", "\u{e9}".repeat(300)));
        }
        let cut = questions.warnings();
        assert_eq!(cut.len(), WARNINGS / CUT_WARNING);
        assert!(cut.iter().all(|text| text.chars().count() == CUT_WARNING));
    }
}
