//! Finalizers: adds one before the plugin first sees an object, hands a deleted object out for
//! clean-up, and removes the finalizer afterwards.
//!
//! This module only decides what to write; [`crate::turn::effects`] writes it, in a turn of its own
//! or after the plugin's effects. Each write changes only our entry, and only in the version that
//! was read, so that other finalizers are never lost. It does what controllerutil's AddFinalizer
//! and RemoveFinalizer do, without their race.

use serde_json::json;
use vmhost_core::{Effect, Gvk, Metadata, ObjectKey, Patch, PatchType, Snapshot};

/// The error for a plugin that returns `finalized` at the wrong time.
pub const NOT_DELETING: &str = "`finalized`, but the request did not say `deleting`";

/// The next step for an object of a controller with a finalizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Call the plugin.
    Call {
        /// The object is being deleted and waits for the plugin's clean-up.
        deleting: bool,
    },
    /// Add the finalizer first, in a turn without a call.
    Add(Effect),
    /// Leave the object alone: it is being deleted without our finalizer, because the plugin has
    /// cleaned up or never saw it.
    Leave,
}

/// Decides the next step for this snapshot.
pub fn phase(finalizer: Option<&str>, kind: &Gvk, object: Option<&Snapshot>) -> Phase {
    let call = Phase::Call { deleting: false };
    let (Some(finalizer), Some(object)) = (finalizer, object) else {
        return call;
    };
    // Stores keep only objects whose metadata can be parsed.
    let Ok(metadata) = Metadata::parse(&object.text) else {
        return call;
    };
    let ours = metadata.finalizers.iter().any(|of| of == finalizer);
    match (metadata.is_deleting(), ours) {
        (false, true) => call,
        (true, true) => Phase::Call { deleting: true },
        (true, false) => Phase::Leave,
        (false, false) => {
            let add = if metadata.finalizers.is_empty() {
                json!([{ "op": "add", "path": "/metadata/finalizers", "value": [finalizer] }])
            } else {
                json!([{ "op": "add", "path": "/metadata/finalizers/-", "value": finalizer }])
            };
            Phase::Add(patch(kind, object, &add))
        }
    }
}

/// Returns the patch that removes the finalizer, or `None` if the object does not have it.
pub fn removal(finalizer: &str, kind: &Gvk, object: &Snapshot) -> Option<Effect> {
    let metadata = Metadata::parse(&object.text).ok()?;
    let remove = metadata.finalizer_removal(finalizer)?;
    Some(patch(kind, object, &json!(remove)))
}

fn patch(kind: &Gvk, object: &Snapshot, operations: &serde_json::Value) -> Effect {
    Effect::Patch(Patch {
        key: ObjectKey {
            kind: kind.clone(),
            name: object.name.clone(),
        },
        subresource: None,
        kind: PatchType::Json,
        body: operations.to_string(),
        if_version: Some(object.version.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmhost_core::{Object, ObjectName};

    const OURS: &str = "example.com/x";

    fn object(metadata: &str) -> Snapshot {
        let name = ObjectName::new(Some("a"), "x");
        let text = format!(r#"{{"metadata":{{{metadata}}}}}"#);
        Object::with_text(name, "u", 7, &text)
    }

    fn look(metadata: &str) -> Phase {
        phase(
            Some(OURS),
            &Gvk::new("", "v1", "Pod"),
            Some(&object(metadata)),
        )
    }

    fn body(effect: &Effect) -> &str {
        match effect {
            Effect::Patch(patch) => {
                assert_eq!(patch.if_version.as_deref(), Some("7"));
                &patch.body
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_policy_sees_an_object_only_with_its_finalizer_on() {
        let Phase::Add(add) = look("") else { panic!() };
        assert_eq!(
            body(&add),
            r#"[{"op":"add","path":"/metadata/finalizers","value":["example.com/x"]}]"#
        );
        let Phase::Add(add) = look(r#""finalizers":["other.io/y"]"#) else {
            panic!()
        };
        assert_eq!(
            body(&add),
            r#"[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/x"}]"#
        );
        assert_eq!(
            look(r#""finalizers":["example.com/x"]"#),
            Phase::Call { deleting: false }
        );
    }

    #[test]
    fn a_deletion_is_ours_only_while_the_finalizer_is_on() {
        let at = r#""deletionTimestamp":"2026-01-01T00:00:00Z","#;
        assert_eq!(
            look(&format!(r#"{at}"finalizers":["example.com/x"]"#)),
            Phase::Call { deleting: true }
        );
        assert_eq!(
            look(&format!(r#"{at}"finalizers":["other.io/y"]"#)),
            Phase::Leave,
            "never put on one that is being deleted"
        );
        assert_eq!(
            phase(Some(OURS), &Gvk::new("", "v1", "Pod"), None),
            Phase::Call { deleting: false }
        );
        assert_eq!(
            phase(None, &Gvk::new("", "v1", "Pod"), Some(&object(""))),
            Phase::Call { deleting: false }
        );
    }

    #[test]
    fn taking_it_off_touches_no_other() {
        let kind = Gvk::new("", "v1", "Pod");
        let removal_of = |metadata: &str| removal(OURS, &kind, &object(metadata));
        let effect = removal_of(r#""finalizers":["a.io/b","example.com/x"]"#).unwrap();
        assert_eq!(
            body(&effect),
            r#"[{"op":"test","path":"/metadata/finalizers/1","value":"example.com/x"},{"op":"remove","path":"/metadata/finalizers/1"}]"#
        );
        assert_eq!(removal_of(""), None);
    }
}
