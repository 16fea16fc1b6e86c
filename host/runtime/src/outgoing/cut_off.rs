//! Requests that changed something and were cut off before their answer: told to the key's next
//! call. It must not know how a request is sent.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use vmhost_core::{HttpCall, ObjectName, cut};

/// How many keys are remembered. Beyond that, nothing is told about further ones.
const KEYS: usize = 1000;

/// The requests that were cut off, by controller and key.
#[derive(Default)]
pub(crate) struct CutOff(Mutex<HashMap<(String, ObjectName), String>>);

/// Remembers a request as cut off, unless it is answered first.
pub(super) struct Watched {
    of: Arc<CutOff>,
    /// `None` once the request is answered.
    call: Option<((String, ObjectName), String)>,
}

impl CutOff {
    /// Watches a request. Dropping the value means that it is cut off.
    pub(super) fn watch(self: &Arc<Self>, call: &HttpCall) -> Watched {
        let request = &call.request;
        let method = cut(&request.method, 16);
        let what = format!("{method} {}", cut(request.place(), 256));
        let key = (call.turn.controller.clone(), call.turn.name.clone());
        Watched {
            of: self.clone(),
            call: Some((key, vmhost_core::one_line(&what).into_owned())),
        }
    }

    /// Takes what was cut off in the last call about this key.
    pub(super) fn take(&self, controller: &str, name: &ObjectName) -> Option<String> {
        let mut cut_off = self.0.lock();
        if cut_off.is_empty() {
            return None;
        }
        cut_off.remove(&(controller.to_owned(), name.clone()))
    }
}

impl Watched {
    /// The request was answered, or the call was told that it was not.
    pub(super) fn answered(mut self) {
        self.call = None;
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let Some((key, what)) = self.call.take() else {
            return;
        };
        let mut cut_off = self.of.0.lock();
        if cut_off.len() < KEYS {
            cut_off.insert(key, what);
        }
    }
}
