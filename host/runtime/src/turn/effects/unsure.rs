//! Writes without an answer: whether they may have been carried out. This module must not know how
//! an object is read or written.

use vmhost_cluster::Error;
use vmhost_core::{Effect, ObjectKey, Snapshot};

/// Returns whether a write without an answer may have been carried out, after a live read of its
/// object. `before` is the object's version before the write, if known.
pub(super) fn may_have_written(
    effect: &Effect,
    key: &ObjectKey,
    before: Option<u64>,
    found: Result<Option<Snapshot>, Error>,
) -> bool {
    match found {
        Ok(Some(object)) => before != Some(object.version),
        // Nobody knows the name that the server would have generated.
        Ok(None) => matches!(effect, Effect::Delete(_)) || key.name.name().is_empty(),
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use vmhost_core::{Create, Delete, Gvk, Object, ObjectName};

    use super::*;

    #[test]
    fn a_write_without_an_answer_may_have_been_carried_out_unless_a_read_shows_that_it_was_not() {
        let key = |name: &str| ObjectKey {
            kind: Gvk::new("", "v1", "Pod"),
            name: ObjectName::new(Some("a"), name),
        };
        let delete = Effect::Delete(Delete {
            key: key("x"),
            uid: None,
            if_version: None,
            propagation: None,
        });
        let create = Effect::Create(Create {
            object: "{}".into(),
        });
        let at = |version| Some(Object::with_text(key("x").name, "u", version, "{}"));
        let failed = || Err(Error::NotSent("cut off".into()));
        for (effect, name, before, found, expected) in [
            (&delete, "x", Some(7), Ok(at(7)), false),
            (&delete, "x", Some(7), Ok(at(8)), true),
            (&delete, "x", Some(7), Ok(None), true),
            (&create, "x", None, Ok(at(7)), true),
            (&create, "x", None, Ok(None), false),
            (&create, "", None, Ok(None), true),
            (&create, "x", None, failed(), true),
        ] {
            let may = may_have_written(effect, &key(name), before, found);
            assert_eq!(may, expected, "{} {name:?} {before:?}", effect.verb());
        }
    }
}
