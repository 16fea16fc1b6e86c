//! Answers the reads of a call only from those of a recorded call: it asks no store and no API
//! server. This module must not know which version calls.

use parking_lot::Mutex;
use vmhost_core::trace::{Asked, Read};
use vmhost_core::{
    Gvk, HttpAnswer, HttpCall, HttpError, HttpRequest, HttpSent, ListQuery, LiveRead, ObjectName,
    ObjectReader, Page, ReadError, Snapshot, Trace, cut, one_line,
};

/// The answers of one recorded call.
pub(crate) struct Answers {
    entries: Mutex<Vec<Entry>>,
    /// The HTTP requests of the recorded call that were not asked for yet.
    http: Mutex<Vec<HttpSent>>,
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
            http: Mutex::new(trace.http.clone()),
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

    /// Sends nothing, not even what only reads: a request that the live version sent has its
    /// answer.
    fn http(&self, call: HttpCall) -> HttpAnswer {
        let mut recorded = self.http.lock();
        // A policy may reckon its time-out from the clock.
        let untimed = |request: &HttpRequest| HttpRequest {
            timeout: None,
            ..request.clone()
        };
        let asked = untimed(&call.request);
        let same = |sent: &HttpSent| untimed(&sent.request) == asked;
        if let Some(place) = recorded.iter().position(same) {
            return HttpAnswer::answered(recorded.remove(place).answer);
        }
        self.unknown.lock().get_or_insert_with(|| {
            let request = &call.request;
            let method = cut(&request.method, 16);
            let what = format!("send {method} {}", cut(request.place(), 256));
            one_line(&what).into_owned()
        });
        let why = "a shadow sends no HTTP requests: it is told the answers that the turn had";
        HttpAnswer::answered(Err(HttpError::not_here(why)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use vmhost_core::{HttpTurn, Object};

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

    #[tokio::test]
    async fn an_http_request_of_the_turn_has_its_answer_once() {
        let request = |method: &str| HttpRequest {
            method: method.to_owned(),
            url: "https://a.com/x?token=1".to_owned(),
            ..HttpRequest::default()
        };
        let mut trace = Trace::default();
        trace.sent(HttpSent {
            request: HttpRequest {
                timeout: Some(Duration::from_millis(7)),
                ..request("POST")
            },
            answer: Err(HttpError::TooLarge(7)),
        });
        let answers = Answers::new(&trace);
        let send = |method: &str| {
            answers.http(HttpCall {
                request: request(method),
                turn: Arc::new(HttpTurn {
                    controller: "c".to_owned(),
                    kind: kind("Pod"),
                    name: name("x"),
                    object: None,
                }),
                ordinal: 0,
                left: Duration::ZERO,
            })
        };
        assert_eq!(send("POST").await, Err(HttpError::TooLarge(7)));
        assert_eq!(answers.unknown(), None);
        assert!(matches!(send("POST").await, Err(HttpError::NotSent(_))));
        let unknown = answers.unknown();
        assert_eq!(unknown.as_deref(), Some("send POST https://a.com/x"));
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
