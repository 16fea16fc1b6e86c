//! What a call asked the host, with the answers. Plain data. It must not know which code asks, or
//! what the trace is used for.

use std::sync::Arc;

use crate::digest::{Digest, Digester};
use crate::http::HttpSent;
use crate::key::{Gvk, ObjectName};
use crate::object::Snapshot;
use crate::read::{ListQuery, Page, ReadError};

/// The texts of a trace may have this many bytes.
pub const LARGEST: usize = 256 << 10;

/// The clock readings and random numbers that a guest got: nothing else can make two runs with the
/// same request and the same reads differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drawn {
    /// Readings of the wall clock, in nanoseconds since 1970.
    pub wall: Vec<u64>,
    /// Readings of the monotonic clock, in nanoseconds.
    pub monotonic: Vec<u64>,
    /// Random bytes, in order.
    pub random: Vec<u8>,
    /// Whether it drew more than [`Drawn::MOST`] of one of them; the rest is not kept.
    pub cut: bool,
}

impl Drawn {
    /// Number of readings of each clock, and of random bytes, that are kept. Python seeds each of
    /// its generators with 2,500 bytes.
    pub const MOST: usize = 16 << 10;

    /// Returns whether nothing was drawn.
    pub fn is_empty(&self) -> bool {
        let read = !self.wall.is_empty() || !self.monotonic.is_empty();
        !read && self.random.is_empty() && !self.cut
    }

    fn bytes(&self) -> usize {
        8 * (self.wall.len() + self.monotonic.len()) + self.random.len()
    }
}

/// What an instance drew before its first call.
#[derive(Debug, Default)]
pub struct Start {
    /// The seed that the guest may ask for, the same for all its calls.
    pub seed: u128,
    /// What it drew while it was instantiated.
    pub drawn: Drawn,
}

/// What a call asked the host, in order.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The clock readings and random numbers that the call got.
    pub drawn: Drawn,
    /// What its instance drew when it started. `None` if there was no call.
    pub start: Option<Arc<Start>>,
    /// Number of earlier calls of the instance, which may have left a state behind.
    pub earlier: u32,
    /// The reads of the cluster.
    pub reads: Vec<Read>,
    /// The HTTP requests.
    pub http: Vec<HttpSent>,
    /// Number of HTTP requests, also of those that are not kept.
    pub requests: u32,
    /// Whether the answers were larger than [`LARGEST`]; then no reads and no HTTP requests are
    /// kept.
    pub cut: bool,
    /// What is known of the reads that are not kept.
    lost: Option<Box<Reads>>,
    bytes: usize,
}

/// What is known of reads that are not kept.
#[derive(Clone, Debug, Default)]
struct Reads {
    count: u32,
    digester: Digester,
}

/// One read with its answer.
#[derive(Clone, Debug)]
pub struct Read {
    /// Whether the API server was asked, and not a store.
    pub live: bool,
    /// The question and the answer.
    pub asked: Asked,
}

/// A question with its answer.
#[derive(Clone, Debug)]
pub enum Asked {
    /// One object; `Ok(None)` if it does not exist.
    Get(Gvk, ObjectName, Result<Option<Snapshot>, ReadError>),
    /// A page of objects.
    List(ListQuery, Result<Page, ReadError>),
}

impl Trace {
    /// Forgets everything, for the next call.
    pub fn clear(&mut self) {
        // Most calls ask nothing, and to drop what holds nothing would cost more than to look.
        if !self.is_silent() {
            *self = Self::default();
        }
        self.start = None;
        self.earlier = 0;
    }

    /// Returns whether the call asked nothing and drew nothing.
    fn is_silent(&self) -> bool {
        let Self {
            drawn,
            start: _,
            earlier: _,
            reads,
            http,
            requests,
            cut,
            lost,
            bytes,
        } = self;
        let is_unasked = reads.is_empty() && http.is_empty() && *requests == 0 && !cut;
        is_unasked && lost.is_none() && *bytes == 0 && drawn.is_empty()
    }

    /// Adds a read.
    pub fn note(&mut self, read: Read) {
        if let Some(lost) = &mut self.lost {
            lost.add(&read);
            return;
        }
        self.bytes += read.bytes();
        self.reads.push(read);
        self.check();
    }

    /// Adds an HTTP request.
    pub fn sent(&mut self, sent: HttpSent) {
        self.requests = self.requests.saturating_add(1);
        if self.cut {
            return;
        }
        self.bytes += sent.bytes();
        self.http.push(sent);
        self.check();
    }

    fn check(&mut self) {
        if self.bytes > LARGEST {
            self.lost = Some(Box::new(Reads::of(&self.reads)));
            (self.reads, self.http) = (Vec::new(), Vec::new());
            (self.cut, self.bytes) = (true, 0);
        }
    }

    /// The number of all reads, and the digest of their questions and answers, in order. Also those
    /// count that are not kept.
    pub fn digest(&self) -> (u32, Digest) {
        let digest = |reads: &Reads| (reads.count, reads.digester.digest());
        match &self.lost {
            Some(lost) => digest(lost),
            None => digest(&Reads::of(&self.reads)),
        }
    }

    /// The size of all texts of the trace, with an allowance for each name. What the trace shares
    /// with other calls of the instance counts too: an instance that traps in each call serves only
    /// one.
    pub fn bytes(&self) -> usize {
        let start = self.start.as_ref().map_or(0, |start| start.drawn.bytes());
        self.bytes + self.drawn.bytes() + start
    }
}

impl Reads {
    fn of(reads: &[Read]) -> Self {
        let mut all = Self::default();
        reads.iter().for_each(|read| all.add(read));
        all
    }

    fn add(&mut self, read: &Read) {
        self.count = self.count.saturating_add(1);
        let digester = &mut self.digester;
        match &read.asked {
            Asked::Get(kind, name, answer) => {
                digester.add(&(kind, name, answer.as_ref().err()));
                let object = answer.iter().flatten();
                object.for_each(|object| digester.add(&object.text));
            }
            Asked::List(query, answer) => {
                digester.add(&(query, answer.as_ref().err()));
                let objects = answer.iter().flat_map(|page| &page.objects);
                objects.for_each(|object| digester.add(&object.text));
            }
        }
    }
}

impl Read {
    fn bytes(&self) -> usize {
        let text = |object: &Snapshot| object.text.len() + 72;
        let (names, texts) = match &self.asked {
            Asked::Get(kind, name, answer) => {
                let names = kind.text_bytes() + name.as_str().len() + of_error(answer);
                let objects = answer.iter().flatten();
                (names, objects.map(text).sum::<usize>())
            }
            Asked::List(query, answer) => {
                let objects = answer.iter().flat_map(|page| &page.objects);
                let names = of_query(query) + of_error(answer);
                (names, objects.map(text).sum::<usize>())
            }
        };
        // A guest may ask for a name of megabytes, a thousand times in a call.
        texts + names.max(256)
    }
}

fn of_query(query: &ListQuery) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let index = query.index.as_ref();
    let index = index.map_or(0, |index| index.name.len() + index.value.len());
    let texts = [
        &query.namespace,
        &query.label_selector,
        &query.owner,
        &query.after,
    ];
    query.kind.text_bytes() + index + texts.into_iter().map(text).sum::<usize>()
}

fn of_error<T>(answer: &Result<T, ReadError>) -> usize {
    match answer {
        Err(
            ReadError::NotWatched(text) | ReadError::Invalid(text) | ReadError::Unavailable(text),
        ) => text.len(),
        Ok(_) | Err(ReadError::TooLarge(_)) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{HttpRequest, HttpResponse};
    use crate::object::Object;

    fn noted(asked: Asked) -> Trace {
        let mut trace = Trace::default();
        trace.note(Read { live: false, asked });
        trace
    }

    #[test]
    fn what_a_guest_asks_for_counts_too() {
        let long = "n".repeat(LARGEST);
        let kind = |name: &str| Gvk::new("", "v1", name);
        let name = |name: &str| ObjectName::new(None, name);
        let query = |after: &str| ListQuery {
            kind: kind("Pod"),
            namespace: None,
            label_selector: None,
            index: None,
            owner: None,
            limit: 1,
            after: Some(after.to_owned()),
        };
        let invalid = |text: &str| Err(ReadError::Invalid(text.to_owned()));
        for asked in [
            Asked::Get(kind("Pod"), name(&long), Ok(None)),
            Asked::Get(kind(&long), name("x"), Ok(None)),
            Asked::Get(kind("Pod"), name("x"), invalid(&long)),
            Asked::List(query(&long), Ok(Page::default())),
        ] {
            let trace = noted(asked);
            assert!(trace.cut && trace.reads.is_empty());
        }
        for asked in [
            Asked::Get(kind("Pod"), name("x"), invalid("no")),
            Asked::List(query("x"), Ok(Page::default())),
        ] {
            let trace = noted(asked);
            assert!(!trace.cut && trace.reads.len() == 1);
            assert_eq!(trace.bytes(), 256);
        }
    }

    #[test]
    fn http_requests_count() {
        let sent = |size: usize| HttpSent {
            request: HttpRequest::default(),
            answer: Ok(HttpResponse {
                body: vec![0; size],
                ..HttpResponse::default()
            }),
        };
        let mut trace = Trace::default();
        trace.sent(sent(1000));
        assert_eq!((trace.bytes(), trace.http.len()), (1256, 1));
        trace.sent(sent(LARGEST));
        assert!(trace.cut && trace.http.is_empty());
        trace.sent(sent(1));
        assert_eq!(trace.requests, 3);
    }

    #[test]
    fn reads_that_are_not_kept_have_a_digest() {
        let read = |size: usize| {
            let name = ObjectName::new(None, "x");
            let object = Object::with_text(name.clone(), "u", 1, &"x".repeat(size));
            let asked = Asked::Get(Gvk::new("", "v1", "Pod"), name, Ok(Some(object)));
            Read { live: false, asked }
        };
        let traced = |sizes: &[usize]| {
            let mut trace = Trace::default();
            sizes.iter().for_each(|size| trace.note(read(*size)));
            trace
        };
        let sizes = [10, LARGEST, 20];
        let (small, large) = (traced(&[10, 20]), traced(&sizes));
        assert!(!small.cut && large.cut);
        assert_eq!((small.digest().0, large.digest().0), (2, 3));
        assert_eq!(large.digest(), traced(&sizes).digest());
        for last in [19, 21] {
            let other = traced(&[10, LARGEST, last]);
            assert_ne!(large.digest().1, other.digest().1, "{last}");
        }
        assert_ne!(large.digest().1, traced(&sizes[..2]).digest().1);
    }

    #[test]
    fn what_an_instance_drew_when_it_started_counts() {
        let drawn = Drawn {
            wall: vec![0; 100],
            ..Drawn::default()
        };
        let trace = Trace {
            start: Some(Arc::new(Start { seed: 1, drawn })),
            ..Trace::default()
        };
        assert_eq!(trace.bytes(), 800);
    }
}
