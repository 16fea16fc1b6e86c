//! What a call asked the host, with the answers. Plain data.

use std::sync::Arc;

use crate::key::{Gvk, ObjectName};
use crate::object::Snapshot;
use crate::read::{ListQuery, Page, ReadError};

/// The texts of a trace may have this many bytes.
pub const LARGEST: usize = 256 << 10;

/// What a guest drew of clock and chance: all that can make two runs with the same request and the
/// same reads differ.
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
    /// Number of readings of each clock, and of random bytes, that are kept.
    pub const MOST: usize = 4096;

    /// Returns whether nothing was drawn.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn bytes(&self) -> usize {
        8 * (self.wall.len() + self.monotonic.len()) + self.random.len()
    }
}

/// What an instance had drawn before a call.
#[derive(Debug, Default)]
pub struct Start {
    /// The seed that the guest may ask for, the same for all its calls.
    pub seed: u128,
    /// What it drew while it started.
    pub drawn: Drawn,
}

/// What a call asked the host, in order.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// What the call drew of clock and chance.
    pub drawn: Drawn,
    /// What its instance drew when it started. `None` if there was no call.
    pub start: Option<Arc<Start>>,
    /// Number of earlier calls of the instance, which may have left a state behind.
    pub earlier: u32,
    /// The reads of the cluster.
    pub reads: Vec<Read>,
    /// Whether the answers were larger than [`LARGEST`]; then no reads are kept.
    pub cut: bool,
    bytes: usize,
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
    /// Adds a read.
    pub fn note(&mut self, read: Read) {
        if self.cut {
            return;
        }
        self.bytes += read.bytes();
        self.reads.push(read);
        if self.bytes > LARGEST {
            self.reads = Vec::new();
            (self.cut, self.bytes) = (true, 0);
        }
    }

    /// The bytes of all texts in it, with some for each name.
    pub fn bytes(&self) -> usize {
        self.bytes + self.drawn.bytes()
    }
}

impl Read {
    fn bytes(&self) -> usize {
        let text = |object: &Snapshot| object.text.len() + 72;
        let texts: usize = match &self.asked {
            Asked::Get(_, _, answer) => answer.iter().flatten().map(text).sum(),
            Asked::List(_, answer) => answer.iter().flat_map(|page| &page.objects).map(text).sum(),
        };
        texts + 256
    }
}
