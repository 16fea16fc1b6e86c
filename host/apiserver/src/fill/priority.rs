//! Priority classes: which one counts for pods that name none.
//!
//! Must not know pods.

use serde_json::Value;

use crate::meta;
use crate::object::Object;
use crate::state::Inner;

/// The storage of priority classes.
pub(super) const CLASSES: &str = "scheduling.k8s.io/priorityclasses";

/// Returns the class of pods that name none. Of several, the one with the lowest value counts.
pub(super) fn default_class(inner: &Inner) -> Option<Object> {
    let all = inner.store.list(CLASSES, None).map(|(_, class)| class);
    let defaults = all.filter(|class| class["globalDefault"] == true);
    defaults.min_by_key(|class| class["value"].as_i64())
}

/// Returns why a class may not be the default, as the admission plugin `Priority` words it. `live`
/// is the class that is replaced.
pub(super) fn admit(inner: &Inner, live: Option<&Value>, new: &Value) -> Option<String> {
    if new["globalDefault"] != true {
        return None;
    }
    let default = default_class(inner)?;
    let name = meta::text(&default, "name");
    if live.is_some_and(|live| meta::text(live, "name") == name) {
        return None;
    }
    Some(format!(
        "PriorityClass {name} is already marked as default. Only one default can exist"
    ))
}
