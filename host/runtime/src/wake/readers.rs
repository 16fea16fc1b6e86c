//! What webhooks and conversions read: stores like those of a controller, whose changes wake no
//! key.

use std::sync::Arc;

use vmhost_cluster::{Informers, Notice};
use vmhost_core::{Change, ControllerDescription, ObjectName};

use crate::wake::live::LiveReads;
use crate::wake::sources::Sources;
use crate::wake::triggers::{Wake, WatchId};

/// Has no keys.
struct Keyless;

impl Wake for Keyless {
    fn label(&self) -> &str {
        "reviews"
    }

    fn wake(&self, _: &ObjectName, _: &WatchId, _: &Notice<'_>) {}

    fn map(&self, _: u16, _: &ObjectName, _: Change) {}

    fn filtered(&self) {}

    fn undecided(&self) {}
}

/// Subscribes to the kinds that a webhook or conversion reads, in these namespaces (empty for all).
pub(crate) fn subscribe(
    informers: &Informers,
    live: Arc<LiveReads>,
    reader: &ControllerDescription,
    namespaces: &[String],
) -> Sources {
    let keyless = Arc::new(Keyless);
    Sources::subscribe(informers, live, reader, namespaces, keyless, None)
}
