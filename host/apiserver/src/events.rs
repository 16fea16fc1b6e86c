//! What the watches of a cluster share: the events of the last changes, and the values of their
//! objects.
//!
//! Owns that an event is written once for all watches that show it in the same way, and an object
//! is read once for all selectors, without the cluster's lock. Must not know which watches there
//! are, or how an event is written.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::kinds::Target;
use crate::negotiate::{Form, Include, Wire};
use crate::object::{Object, Stored};
use crate::store::Change;

/// The number of changes that are kept: more than a watch takes from the history at once.
const CHANGES: usize = 128;
/// The size of their states after which only the last change is kept.
const BYTES: usize = 1 << 20;

/// How a watch shows an event. Watches with the same one send the same bytes.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    /// `ADDED`, `MODIFIED`, `DELETED` or `BOOKMARK`.
    pub event: &'static str,
    pub target: Target,
    pub form: Form,
    pub wire: Wire,
    pub include: Include,
    /// Whether a Table says its columns.
    pub columns: bool,
}

impl PartialEq for Look {
    fn eq(&self, other: &Look) -> bool {
        let rest = |look: &Look| {
            let version = look.target.version;
            (version, look.form, look.wire, look.include, look.columns)
        };
        self.event == other.event
            && Arc::ptr_eq(&self.target.kind, &other.target.kind)
            && rest(self) == rest(other)
    }
}

/// A change, as watches see it.
#[derive(Debug)]
pub(crate) struct Seen {
    change: Arc<Change>,
    old: OnceLock<Object>,
    new: OnceLock<Object>,
    events: Mutex<Vec<(Look, Arc<OnceLock<Bytes>>)>>,
}

impl Seen {
    fn of(change: Arc<Change>) -> Seen {
        Seen {
            change,
            old: OnceLock::new(),
            new: OnceLock::new(),
            events: Mutex::default(),
        }
    }

    /// Returns the object before the change; `None` if there was none.
    pub fn before(&self) -> Option<&Object> {
        let stored = self.change.old.as_ref()?;
        Some(self.old.get_or_init(|| stored.object()))
    }

    /// Returns the object after the change; `None` if there is none.
    pub fn after(&self) -> Option<&Object> {
        let stored = self.change.new.as_ref()?;
        Some(self.new.get_or_init(|| stored.object()))
    }

    /// Returns the event of the change as `look` shows it. The first watch that asks writes it.
    pub fn event(&self, look: &Look, write: impl FnOnce() -> Bytes) -> Bytes {
        let event = {
            let mut events = self.events.lock();
            let known = events.iter().find(|(known, _)| known == look);
            match known.map(|(_, event)| event.clone()) {
                Some(event) => event,
                None => {
                    let event = Arc::new(OnceLock::new());
                    events.push((look.clone(), event.clone()));
                    event
                }
            }
        };
        event.get_or_init(write).clone()
    }

    fn size(&self) -> usize {
        let states = [&self.change.old, &self.change.new, &self.change.last];
        states.into_iter().flatten().map(Stored::size).sum()
    }
}

/// The last changes that a watch has looked at.
#[derive(Debug, Default)]
pub(crate) struct Events(Mutex<Recent>);

#[derive(Debug, Default)]
struct Recent {
    changes: VecDeque<Arc<Seen>>,
    bytes: usize,
}

impl Events {
    /// Returns a change as all watches see it.
    pub fn seen(&self, change: &Arc<Change>) -> Arc<Seen> {
        let mut recent = self.0.lock();
        let mut latest = recent.changes.iter().rev();
        let known = latest.find(|seen| Arc::ptr_eq(&seen.change, change));
        if let Some(known) = known.cloned() {
            return known;
        }
        let seen = Arc::new(Seen::of(change.clone()));
        recent.bytes += seen.size();
        recent.changes.push_back(seen.clone());
        while recent.changes.len() > CHANGES || (recent.bytes > BYTES && recent.changes.len() > 1) {
            let Some(oldest) = recent.changes.pop_front() else {
                break;
            };
            recent.bytes -= oldest.size();
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde_json::json;

    use super::*;
    use crate::builtin;
    use crate::object::Key;
    use crate::store::Store;

    fn look(event: &'static str, wire: Wire) -> Look {
        let kinds = builtin::kinds();
        let kind = kinds.iter().find(|kind| kind.kind == "ConfigMap").cloned();
        Look {
            event,
            target: Target {
                kind: kind.unwrap(),
                version: 0,
            },
            form: Form::Plain,
            wire,
            include: Include::Metadata,
            columns: false,
        }
    }

    /// Returns the changes of writing an object of this many bytes again and again.
    fn changes(count: usize, size: usize) -> Vec<Arc<Change>> {
        let mut store = Store::new();
        let start = store.version();
        for n in 0..count {
            let object = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "x" },
                "data": { "n": n.to_string(), "text": "x".repeat(size) },
            });
            store.put(&"/configmaps".into(), Key::new("n", "x"), object);
        }
        store.since("/configmaps", None, start, count).unwrap().0
    }

    #[test]
    fn an_event_is_written_once_for_each_look() {
        let events = Events::default();
        let changes = changes(2, 1);
        let change = changes.last().unwrap();
        let written = Cell::new(0);
        let looks = [
            look("MODIFIED", Wire::Json),
            look("ADDED", Wire::Json),
            look("MODIFIED", Wire::Protobuf),
        ];
        let mut texts = Vec::new();
        for _watch in 0..3 {
            for look in &looks {
                let event = events.seen(change).event(look, || {
                    written.set(written.get() + 1);
                    Bytes::from(format!("{} {:?}", look.event, look.wire))
                });
                texts.push(event);
            }
        }
        assert_eq!(written.get(), looks.len());
        let (first, rest) = texts.split_at(looks.len());
        assert_eq!(first, ["MODIFIED Json", "ADDED Json", "MODIFIED Protobuf"]);
        assert!(rest.chunks(looks.len()).all(|same| same == first));
    }

    #[test]
    fn an_object_is_read_once() {
        let events = Events::default();
        let changes = changes(2, 1);
        let (first, second) = (events.seen(&changes[0]), events.seen(&changes[1]));
        assert!(first.before().is_none() && Arc::ptr_eq(&second, &events.seen(&changes[1])));
        assert_eq!(second.before().unwrap()["data"]["n"], "0");
        assert_eq!(second.after().unwrap()["data"]["n"], "1");
        let again = events.seen(&changes[1]);
        assert!(Arc::ptr_eq(second.after().unwrap(), again.after().unwrap()));
    }

    #[test]
    fn what_is_shared_is_bounded() {
        let events = Events::default();
        for change in changes(2 * CHANGES, 1) {
            events.seen(&change);
        }
        assert_eq!(events.0.lock().changes.len(), CHANGES);
        for change in changes(4, BYTES) {
            events.seen(&change);
        }
        assert_eq!(events.0.lock().changes.len(), 1);
        for change in changes(20, BYTES / 8) {
            events.seen(&change);
        }
        let recent = events.0.lock();
        assert!(recent.bytes <= BYTES && recent.changes.len() > 1);
        let sum: usize = recent.changes.iter().map(|seen| seen.size()).sum();
        assert_eq!(recent.bytes, sum);
    }
}
