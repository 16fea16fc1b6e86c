//! Writes the events of a watch.
//!
//! Must not know which events a watch shows, or when.

use bytes::Bytes;
use serde_json::json;

use crate::encode;
use crate::events::Look;
use crate::negotiate::Form;
use crate::object::Shown;
use crate::table::table;

/// Writes an event about an object, which is in the version of the request.
pub(crate) fn written(look: &Look, shown: &Shown) -> Bytes {
    let (target, wire, event) = (&look.target, look.wire, look.event);
    let line = match look.form {
        Form::Plain => encode::event_shown(wire, event, shown, target.kind.custom),
        Form::Partial => {
            let partial = encode::partial(&shown.head());
            encode::event_as(wire, event, &partial, false)
        }
        Form::Table => {
            let object = shown.object();
            let version = object.pointer("/metadata/resourceVersion");
            let metadata = json!({ "resourceVersion": version });
            let table = table(target, metadata, [object], look.include, look.columns);
            encode::event_as(wire, event, &table, false)
        }
    };
    Bytes::from(line)
}

/// Events that are sent together.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    parts: Vec<Bytes>,
    size: usize,
}

impl Lines {
    pub fn push(&mut self, line: Bytes) {
        self.size += line.len();
        self.parts.push(line);
    }

    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the events as one text. A single event is not copied.
    pub fn joined(mut self) -> Bytes {
        if self.parts.len() == 1 {
            return self.parts.pop().unwrap_or_default();
        }
        let mut all = Vec::with_capacity(self.size);
        for part in &self.parts {
            all.extend_from_slice(part);
        }
        Bytes::from(all)
    }
}
