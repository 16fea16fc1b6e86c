//! Carries out a write that may ask webhooks.
//!
//! Owns the attempts: a write that comes to a question without an answer is undone before it has
//! stored anything, the question is asked without the lock, and the write begins anew. Must not
//! know what a write does, or how a webhook is called.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, timeout_at};

use crate::admission::dispatch;
use crate::call::Done;
use crate::conversion;
use crate::kinds::Target;
use crate::object::Object;
use crate::questions::{Answer, Question, Questions};
use crate::state::{Inner, State};
use crate::status::ApiError;

/// How long a write may take with all its questions, as in a real server.
const LIMIT: Duration = Duration::from_secs(34);
/// The number of requests about which webhooks are asked at once: a deletion of many objects asks
/// about each.
const AT_ONCE: usize = 16;

/// Runs a write until it has no question left.
pub(crate) async fn settle<R>(
    state: &State,
    questions: &Questions,
    mut write: impl FnMut(&mut Inner) -> Result<R, ApiError>,
) -> Result<R, ApiError> {
    // Each attempt makes the same choices: names, ports, addresses.
    let seed = fastrand::u64(..);
    let mut deadline = None;
    loop {
        questions.begin();
        let open = {
            let result = state.write(|inner| {
                // What this thread chooses next must not be what another one does.
                let next = fastrand::u64(..);
                fastrand::seed(seed);
                let result = write(inner);
                fastrand::seed(next);
                result
            });
            let open = questions.take_open();
            if open.is_empty() {
                return result;
            }
            open
        };
        let until = *deadline.get_or_insert_with(|| Instant::now() + LIMIT);
        if Instant::now() >= until {
            return Err(ApiError::timed_out());
        }
        let answers = timeout_at(until, answer_all(state, open)).await;
        for (question, answer) in answers.map_err(|_| ApiError::timed_out())? {
            questions.answer(question, answer);
        }
    }
}

/// Returns whether a write of a kind may come to a question. Otherwise its first attempt is its
/// last.
pub(crate) fn may_ask(inner: &Inner, target: &Target) -> bool {
    !inner.registered.is_empty() || target.kind.conversion.is_some()
}

/// Returns the outcome of a write in the version of the request.
pub(crate) async fn shown(state: &State, target: &Target, done: Done) -> Result<Done, ApiError> {
    let Done {
        code,
        object,
        warnings,
    } = done;
    let object = match target.is_foreign(&object) {
        true => conversion::shown_one(state, target, object).await?,
        false => object,
    };
    Ok(Done {
        code,
        object,
        warnings,
    })
}

async fn answer_all(state: &State, open: Vec<Question>) -> Vec<(Question, Answer)> {
    let is_conversion = |question: &Question| matches!(question, Question::Convert { .. });
    let (conversions, reviews): (Vec<_>, Vec<_>) = open.into_iter().partition(is_conversion);
    let mut answers = convert_all(state, conversions).await;
    for some in reviews.chunks(AT_ONCE) {
        let mut asked = Vec::with_capacity(some.len());
        for question in some {
            asked.push(answer(state, question));
        }
        let given = join_all(asked).await;
        answers.extend(some.iter().cloned().zip(given));
    }
    answers
}

async fn answer(state: &State, question: &Question) -> Answer {
    match question {
        Question::Mutate(case) => dispatch::mutate(state, case).await,
        Question::Validate(case) => dispatch::validate(state, case).await,
        Question::Convert { to, object, stored } => {
            let made = conversion::convert(state, to, vec![object.clone()], *stored).await;
            Answer::from(made.map(|mut made| made.pop()))
        }
    }
}

/// Answers conversions: those to the same version by one call.
async fn convert_all(state: &State, open: Vec<Question>) -> Vec<(Question, Answer)> {
    let mut groups: Vec<(Target, bool, Vec<Object>)> = Vec::new();
    for question in open {
        let Question::Convert { to, object, stored } = question else {
            continue;
        };
        let is_same = |(known, as_stored, _): &&mut (Target, bool, Vec<Object>)| {
            Arc::ptr_eq(&known.kind, &to.kind)
                && known.version == to.version
                && *as_stored == stored
        };
        match groups.iter_mut().find(is_same) {
            Some((_, _, objects)) => objects.push(object),
            None => groups.push((to, stored, vec![object])),
        }
    }
    let mut answers = Vec::new();
    for (to, stored, objects) in groups {
        if stored {
            // A write must not be made of what another conversion gave before.
            for object in &objects {
                state.converted().forget(&to, object);
            }
        }
        let made = conversion::convert(state, &to, objects.clone(), stored).await;
        for (at, object) in objects.into_iter().enumerate() {
            let one = match &made {
                Ok(made) => Ok(made.get(at).cloned()),
                Err(error) => Err(error.clone()),
            };
            let to = to.clone();
            let question = Question::Convert { to, object, stored };
            answers.push((question, Answer::from(one)));
        }
    }
    answers
}
