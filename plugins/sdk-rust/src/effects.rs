//! Builds an outcome: `Outcome::await_change().with(..).with(..)`.

use serde::Serialize;

use crate::bindings::vmhost::plugin::types::{
    Apply, Create, Delete, Effect, Event, EventType, Next, ObjectKey, Other, Outcome, Patch,
    PatchType, Propagation,
};
use crate::error::Result;

impl Outcome {
    fn new(next: Next) -> Self {
        Self {
            effects: Vec::new(),
            next,
        }
    }

    /// Complete: the next turn is after the object changes.
    pub fn await_change() -> Self {
        Self::new(Next::AwaitChange)
    }

    /// Complete: the next turn is after this many milliseconds, or after the object changes.
    pub fn requeue_after_ms(ms: u32) -> Self {
        Self::new(Next::RequeueAfterMs(ms))
    }

    /// Another turn soon, rate limited, without an error.
    pub fn requeue() -> Self {
        Self::new(Next::Requeue)
    }

    /// A temporary failure. Like `Err` from `reconcile`, but with effects.
    pub fn retry(message: impl Into<String>) -> Self {
        Self::new(Next::Retry(message.into()))
    }

    /// A permanent failure: the next turn is after the object or the plugin changes.
    pub fn fail(message: impl Into<String>) -> Self {
        Self::new(Next::Fail(message.into()))
    }

    /// The clean-up of an object that is being deleted is complete: the host removes the finalizer
    /// after all effects.
    pub fn finalized() -> Self {
        Self::new(Next::Finalized)
    }

    /// Adds an effect. Effects are carried out in order.
    pub fn with(mut self, effect: impl Into<Effect>) -> Self {
        self.effects.push(effect.into());
        self
    }
}

impl Apply {
    /// Server-side apply of these fields, with `apiVersion`, `kind` and `metadata.name`. Takes over
    /// fields of other managers, and creates the object if it is absent; see [`Apply::polite`] and
    /// [`Apply::existing`].
    pub fn new(object: &impl Serialize) -> Result<Self> {
        let object = serde_json::to_string(object)?;
        Ok(Self {
            object,
            subresource: None,
            force: true,
            create_if_absent: true,
            if_version: None,
        })
    }

    /// Applies to a subresource such as `status`.
    pub fn subresource(mut self, name: &str) -> Self {
        self.subresource = Some(name.into());
        self.create_if_absent = false;
        self
    }

    /// Fails if another manager owns a field with another value.
    pub fn polite(mut self) -> Self {
        self.force = false;
        self
    }

    /// Requires that the object still has this resourceVersion.
    pub fn if_version(mut self, version: &str) -> Self {
        self.if_version = Some(version.into());
        self
    }

    /// Does not create the object.
    pub fn existing(mut self) -> Self {
        self.create_if_absent = false;
        self
    }
}

impl Patch {
    /// Returns a JSON merge patch (RFC 7386).
    pub fn merge(key: &ObjectKey, body: &impl Serialize) -> Result<Self> {
        let body = serde_json::to_string(body)?;
        Ok(Self {
            key: key.clone(),
            subresource: None,
            type_: PatchType::Merge,
            body,
            if_version: None,
        })
    }

    /// Returns a JSON patch (RFC 6902), built operation by operation.
    pub fn json(key: &ObjectKey) -> JsonPatch {
        JsonPatch {
            key: key.clone(),
            subresource: None,
            operations: Vec::new(),
            if_version: None,
        }
    }

    /// Patches a subresource such as `status`.
    pub fn subresource(mut self, name: &str) -> Self {
        self.subresource = Some(name.into());
        self
    }

    /// Requires that the object still has this resourceVersion.
    pub fn if_version(mut self, version: &str) -> Self {
        self.if_version = Some(version.into());
        self
    }
}

/// A JSON patch that is being built. If a `test` fails, nothing changes, and the host retries the
/// key with a fresh snapshot.
pub struct JsonPatch {
    key: ObjectKey,
    subresource: Option<String>,
    operations: Vec<Operation>,
    if_version: Option<String>,
}

#[derive(Serialize)]
struct Operation {
    op: &'static str,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<serde_json::Value>,
}

impl JsonPatch {
    fn push(mut self, op: &'static str, path: &str, value: Option<serde_json::Value>) -> Self {
        self.operations.push(Operation {
            op,
            path: path.into(),
            value,
        });
        self
    }

    /// Requires that `path` (a JSON pointer) has this value.
    pub fn test(self, path: &str, value: impl Into<serde_json::Value>) -> Self {
        self.push("test", path, Some(value.into()))
    }

    /// Sets `path`, whether or not it exists.
    pub fn add(self, path: &str, value: impl Into<serde_json::Value>) -> Self {
        self.push("add", path, Some(value.into()))
    }

    /// Sets `path`, which must exist.
    pub fn replace(self, path: &str, value: impl Into<serde_json::Value>) -> Self {
        self.push("replace", path, Some(value.into()))
    }

    /// Removes `path`, which must exist.
    pub fn remove(self, path: &str) -> Self {
        self.push("remove", path, None)
    }

    /// Patches a subresource such as `status`.
    pub fn subresource(mut self, name: &str) -> Self {
        self.subresource = Some(name.into());
        self
    }

    /// Requires that the object still has this resourceVersion.
    pub fn if_version(mut self, version: &str) -> Self {
        self.if_version = Some(version.into());
        self
    }
}

impl From<JsonPatch> for Effect {
    fn from(patch: JsonPatch) -> Self {
        // A `serde_json::Value` can always be serialised.
        let body = serde_json::to_string(&patch.operations).unwrap_or_default();
        Effect::Patch(Patch {
            key: patch.key,
            subresource: patch.subresource,
            type_: PatchType::Json,
            body,
            if_version: patch.if_version,
        })
    }
}

impl Create {
    /// Creates this object.
    pub fn new(object: &impl Serialize) -> Result<Self> {
        Ok(Self {
            object: serde_json::to_string(object)?,
        })
    }
}

impl Delete {
    /// Deletes the object of this name, whatever its uid.
    pub fn new(key: &ObjectKey) -> Self {
        Self {
            key: key.clone(),
            uid: None,
            if_version: None,
            propagation: None,
        }
    }

    /// Requires that the object has this uid.
    pub fn uid(mut self, uid: &str) -> Self {
        self.uid = Some(uid.into());
        self
    }

    /// Requires that the object still has this resourceVersion.
    pub fn if_version(mut self, version: &str) -> Self {
        self.if_version = Some(version.into());
        self
    }

    /// Sets what happens to the objects that it owns. Default: that of the API server for the kind.
    pub fn propagation(mut self, propagation: Propagation) -> Self {
        self.propagation = Some(propagation);
        self
    }
}

impl Event {
    /// Returns an expected event. `reason` is CamelCase.
    pub fn normal(reason: &str, note: impl Into<String>) -> Self {
        Self {
            type_: EventType::Normal,
            reason: reason.into(),
            action: String::new(),
            note: note.into(),
            related: None,
        }
    }

    /// Returns a problem that a person should look at. `reason` is CamelCase.
    pub fn warning(reason: &str, note: impl Into<String>) -> Self {
        Self {
            type_: EventType::Warning,
            ..Self::normal(reason, note)
        }
    }

    /// Sets what was done or tried, in CamelCase. Default: the reason.
    pub fn action(mut self, action: &str) -> Self {
        self.action = action.into();
        self
    }

    /// Sets another object that is involved.
    pub fn related(mut self, key: &ObjectKey) -> Self {
        self.related = Some(key.clone());
        self
    }
}

macro_rules! effect_from {
    ($($record:ident),*) => { $(
        impl From<$record> for Effect {
            fn from(record: $record) -> Self {
                Effect::$record(record)
            }
        }
    )* };
}
effect_from!(Apply, Patch, Create, Delete, Event, Other);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    #[test]
    fn builders_fill_the_records() {
        let key = ObjectKey::of(&Kind::core("v1", "ConfigMap"), Some("default"), "x");
        let delete = Delete::new(&key)
            .uid("u-1")
            .if_version("7")
            .propagation(Propagation::Foreground);
        assert_eq!(delete.uid.as_deref(), Some("u-1"));
        assert_eq!(delete.if_version.as_deref(), Some("7"));
        assert_eq!(delete.propagation, Some(Propagation::Foreground));
        let patch = Patch::json(&key)
            .add("/data/a~1b", "c")
            .subresource("status")
            .if_version("8");
        let Effect::Patch(patch) = Effect::from(patch) else {
            panic!("a patch")
        };
        assert_eq!(
            patch.body,
            r#"[{"op":"add","path":"/data/a~1b","value":"c"}]"#
        );
        assert_eq!(patch.if_version.as_deref(), Some("8"));
        assert_eq!(patch.subresource.as_deref(), Some("status"));
    }
}
