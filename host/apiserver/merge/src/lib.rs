//! Server-side apply and field ownership: `metadata.managedFields` as kube-apiserver keeps them.
//!
//! Owns the merge of an applied object into the live one, with or without a manager, and the
//! ownership of every field after any kind of write (sigs.k8s.io/structured-merge-diff v6 and
//! k8s.io/apimachinery `util/managedfields`, as of Kubernetes 1.36). Must not know which kinds
//! there are, storage, HTTP, validation or clocks.
//!
//! ```
//! use serde_json::json;
//! use vmhost_merge::{ApplyError, Manager, apply};
//!
//! let map = |value: &str| {
//!     let (metadata, data) = (json!({ "name": "x" }), json!({ "a": value }));
//!     json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data })
//! };
//! let by = |name| Manager { name, api_version: "v1", ..Manager::default() };
//! let now = "2026-11-21T04:00:00Z";
//! let live = apply(None, None, &map("1"), &by("one"), false, now)?;
//! let refused = apply(None, Some(&live), &map("2"), &by("two"), false, now).unwrap_err();
//! let text = r#"Apply failed with 1 conflict: conflict with "one": .data.a"#;
//! assert_eq!(refused.to_string(), text);
//! # Ok::<(), ApplyError>(())
//! ```

mod apply;
mod compare;
mod error;
mod last_applied;
mod managed;
mod manager;
mod merge;
mod overlay;
mod scale;
mod set;
mod shape;
mod track;
mod update;
mod walk;

#[cfg(test)]
mod tests;

pub use apply::apply;
pub use error::{ApplyError, Conflict};
pub use manager::{Manager, RESET_MAIN, RESET_STATUS};
pub use overlay::overlay;
pub use scale::track_scale;
pub use track::{keep_times, track_update};
