//! Answers the reads of a call only from those of a recorded call: it asks no store and no API
//! server. This module must not know which version calls.

use parking_lot::Mutex;
use vmhost_core::trace::{Asked, Read};
use vmhost_core::{
    Gvk, ListQuery, LiveRead, ObjectName, ObjectReader, Page, ReadError, Snapshot, Trace,
};

/// The answers of one recorded call.
pub(crate) struct Answers {
    entries: Mutex<Vec<Entry>>,
    /// The first question that the recorded call did not ask.
    unknown: Mutex<Option<String>>,
}

struct Entry {
    read: Read,
    is_used: bool,
}

impl Answers {
    /// Collects the answers in a record.
    pub(crate) fn new(trace: &Trace) -> Self {
        let entry = |read: &Read| Entry {
            read: read.clone(),
            is_used: false,
        };
        Self {
            entries: Mutex::new(trace.reads.iter().map(entry).collect()),
            unknown: Mutex::default(),
        }
    }

    /// Returns the question that the recorded call did not ask, if there was one:
    /// `get ConfigMap.v1`.
    pub(crate) fn unknown(&self) -> Option<String> {
        self.unknown.lock().clone()
    }

    /// Answers with the first recorded answer that was not used yet, or else with the last one.
    /// `find` returns the answer if a recorded read asked the same question.
    fn answer<T>(
        &self,
        live: bool,
        find: impl Fn(&Asked) -> Option<Result<T, ReadError>>,
        name: impl FnOnce() -> String,
    ) -> Result<T, ReadError> {
        let mut last = None;
        for entry in self.entries.lock().iter_mut() {
            if entry.read.live != live {
                continue;
            }
            let Some(answer) = find(&entry.read.asked) else {
                continue;
            };
            if !entry.is_used {
                entry.is_used = true;
                return answer;
            }
            last = Some(answer);
        }
        if let Some(answer) = last {
            return answer;
        }
        self.unknown.lock().get_or_insert_with(|| {
            let past_the_stores = if live { ", live" } else { "" };
            format!("{}{past_the_stores}", name())
        });
        let why = "a shadow is told only what the turn had read";
        Err(ReadError::Unavailable(why.into()))
    }

    fn object(
        &self,
        live: bool,
        kind: &Gvk,
        name: &ObjectName,
    ) -> Result<Option<Snapshot>, ReadError> {
        let find = |asked: &Asked| match asked {
            Asked::Get(of, called, answer) if of == kind && called == name => Some(answer.clone()),
            Asked::Get(..) | Asked::List(..) => None,
        };
        self.answer(live, find, || format!("get {kind}"))
    }

    fn page(&self, live: bool, query: &ListQuery) -> Result<Page, ReadError> {
        let find = |asked: &Asked| match asked {
            Asked::List(other, answer) if is_same(query, other) => Some(answer.clone()),
            Asked::Get(..) | Asked::List(..) => None,
        };
        self.answer(live, find, || format!("list {}", query.kind))
    }
}

fn is_same(one: &ListQuery, other: &ListQuery) -> bool {
    let ListQuery {
        kind,
        namespace,
        label_selector,
        index,
        owner,
        limit,
        after,
    } = one;
    *kind == other.kind
        && *namespace == other.namespace
        && *label_selector == other.label_selector
        && *index == other.index
        && *owner == other.owner
        && *limit == other.limit
        && *after == other.after
}

impl ObjectReader for Answers {
    fn get(&self, kind: &Gvk, name: &ObjectName) -> Result<Option<Snapshot>, ReadError> {
        self.object(false, kind, name)
    }

    fn list(&self, query: &ListQuery) -> Result<Page, ReadError> {
        self.page(false, query)
    }

    fn get_live(&self, kind: Gvk, name: ObjectName) -> LiveRead<Option<Snapshot>> {
        LiveRead::answered(self.object(true, &kind, &name))
    }

    fn list_live(&self, query: ListQuery) -> LiveRead<Page> {
        LiveRead::answered(self.page(true, &query))
    }
}

#[cfg(test)]
mod tests {
    use vmhost_core::Object;

    use super::*;

    fn kind(kind: &str) -> Gvk {
        Gvk::new("", "v1", kind)
    }

    fn name(name: &str) -> ObjectName {
        ObjectName::new(Some("a"), name)
    }

    fn object(version: u64) -> Snapshot {
        Object::with_text(name("x"), "u", version, "{}")
    }

    fn query(limit: usize) -> ListQuery {
        ListQuery {
            kind: kind("Pod"),
            namespace: None,
            label_selector: None,
            index: None,
            owner: None,
            limit,
            after: None,
        }
    }

    fn answers() -> Answers {
        let get = |answer| Asked::Get(kind("Pod"), name("x"), answer);
        let page = Page {
            objects: vec![object(9)],
            next: None,
        };
        let asked = [
            (false, get(Ok(Some(object(1))))),
            (false, Asked::List(query(5), Ok(page))),
            (false, get(Ok(None))),
            (true, get(Err(ReadError::Unavailable("down".into())))),
        ];
        let mut trace = Trace::default();
        for (live, asked) in asked {
            trace.note(Read { live, asked });
        }
        Answers::new(&trace)
    }

    #[test]
    fn equal_questions_are_answered_in_order() {
        let answers = answers();
        let get = || {
            let found = answers.get(&kind("Pod"), &name("x")).unwrap();
            found.map(|object| object.version)
        };
        assert_eq!((get(), get(), get()), (Some(1), None, None));
        assert_eq!(answers.list(&query(5)).unwrap().objects.len(), 1);
        assert_eq!(answers.unknown(), None);
    }

    #[tokio::test]
    async fn a_live_read_is_another_question() {
        let answers = answers();
        let down = answers.get_live(kind("Pod"), name("x")).await;
        assert_eq!(down.unwrap_err(), ReadError::Unavailable("down".into()));
        assert_eq!(answers.unknown(), None);
        assert!(answers.list_live(query(5)).await.is_err());
        assert_eq!(answers.unknown().as_deref(), Some("list Pod.v1, live"));
    }

    #[test]
    fn what_was_not_asked_has_a_name_and_no_answer() {
        let answers = answers();
        assert!(answers.get(&kind("Pod"), &name("y")).is_err());
        assert!(answers.get(&kind("Node"), &name("x")).is_err());
        assert!(answers.list(&query(6)).is_err());
        // The first unknown question stays.
        assert_eq!(answers.unknown().as_deref(), Some("get Pod.v1"));
    }
}
