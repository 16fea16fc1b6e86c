//! Finalizers: putting one on before the policy first sees an object, handing an object that is being deleted out for clean-up, taking it off afterwards.
//!
//! It only looks and says what is to be written; [`crate::turn::effects`] writes it, in a turn of its
//! own or behind the policy's effects. Each write changes the one entry, and only in the version that
//! was seen, so that others' finalizers are never lost: controllerutil's AddFinalizer and
//! RemoveFinalizer without their race.

use serde_json::json;
use vmhost_core::{Effect, Gvk, Metadata, ObjectKey, Patch, PatchType, Snapshot};

/// What a policy is told that says `finalized` at the wrong time.
pub const NOT_DELETING: &str = "`finalized`, but the request did not say `deleting`";

/// What a turn of a controller with a finalizer is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The policy's turn.
    Call {
        /// The object is being deleted, and waits for the policy.
        deleting: bool,
    },
    /// First the finalizer has to be on it, in a turn without the policy.
    Add(Effect),
    /// It is being deleted, and not by us: the policy has cleaned up, or never saw it.
    Leave,
}

/// What is to be done with this snapshot.
pub fn phase(finalizer: Option<&str>, kind: &Gvk, object: Option<&Snapshot>) -> Phase {
    let call = Phase::Call { deleting: false };
    let (Some(finalizer), Some(object)) = (finalizer, object) else {
        return call;
    };
    // A store only keeps what can be read.
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

/// Takes it off; none: it is not there.
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
