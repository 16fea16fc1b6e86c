//! Records which fields the controllers of a real cluster own, where this server writes in their
//! place.
//!
//! Must not know what they change, or how an object is stored.

use serde_json::Value;
use vmhost_merge::{Manager, track_update};

use crate::kinds::Target;
use crate::meta;
use crate::object::Object;

/// Records what the manager `name` changed from `live` to `new` through a subresource (empty: the
/// object itself), except for the fields `reset`, which cannot be changed there.
pub(crate) fn track(
    target: &Target,
    (live, new): (&Object, &mut Value),
    name: &str,
    (subresource, reset): (&str, &[&str]),
) {
    let manager = Manager {
        name,
        api_version: &target.api_version(),
        subresource,
        reset,
        empty: target.version().empty.as_ref(),
    };
    track_update(target.schema(), Some(live), new, &manager, &meta::now());
}
