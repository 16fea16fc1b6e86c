//! What a preview shows of a change: the fields that differ, redacted by the rules of the journal.
//!
//! It must not know how a change came about, or how it is printed.

use std::collections::HashMap;

use serde_json::Value;
use vmhost_core::{Gvk, Snapshot};

use crate::journal::diff;
use crate::journal::redact::{PluginSecrets, Redact};
use crate::journal::sensitive::Sensitive;
use crate::journal::story::{Effect, Field, Read, Turn};

/// The text that replaces a value if it is not known whether the value is sensitive.
const UNKNOWN: &str = "<redacted>";

/// Returns all leaf fields that differ between two states of an object; `None` stands for an object
/// that does not exist.
pub fn fields(old: Option<&Value>, new: Option<&Value>) -> Vec<Field> {
    diff::all(old, new)
}

/// Hides sensitive values. Equal values get equal hashes.
pub struct Hide {
    redact: Redact,
    settings: HashMap<String, String>,
}

/// What the turns that made a change had read.
#[derive(Clone, Debug, Default)]
pub struct Saw {
    /// The objects of kinds that [`Hide::concerns`].
    pub objects: Vec<(Gvk, Snapshot)>,
    /// Whether they read more than was kept, so that any value may be a sensitive one.
    pub more: bool,
}

impl Hide {
    /// Hides the values of Secrets, of the last apply and of these kinds, and these settings of the
    /// plugin.
    pub fn new(sensitive: Vec<Sensitive>, settings: HashMap<String, String>) -> Self {
        Self {
            redact: Redact::new(sensitive),
            settings,
        }
    }

    /// Returns whether objects of this kind hold sensitive values.
    pub fn concerns(&self, kind: &Gvk) -> bool {
        self.redact.concerns(kind)
    }

    /// Hides the sensitive values of a change of `object` (`Secret default/x`), in its fields and
    /// in texts about it.
    pub fn change(&self, saw: &Saw, object: &str, fields: &mut [Field], texts: &mut [String]) {
        let reads = saw.objects.iter().map(|(kind, object)| Read {
            verb: "get".into(),
            object: format!("{} {}", kind.kind, object.name),
            objects: vec![serde_json::from_str(&object.text).unwrap_or_default()],
            ..Read::default()
        });
        let about = |message: Option<String>| Effect {
            object: object.to_owned(),
            message,
            ..Effect::default()
        };
        let mut effects = vec![Effect {
            fields: fields.iter_mut().map(std::mem::take).collect(),
            ..about(None)
        }];
        let taken = texts.iter_mut().map(std::mem::take);
        effects.extend(taken.map(|text| about(Some(text))));
        let mut turn = Turn {
            reads: reads.collect(),
            effects,
            cut: saw.more,
            ..Turn::default()
        };
        let plugin = PluginSecrets {
            settings: &self.settings,
            reads_sensitive: saw.more,
        };
        self.redact.turn(&mut turn, plugin);
        let mut effects = turn.effects.into_iter();
        let hidden = effects.next().unwrap_or_default().fields;
        for (field, mut hidden) in fields.iter_mut().zip(hidden) {
            if let Some(new) = &mut hidden.new
                && saw.more
            {
                *new = UNKNOWN.into();
            }
            *field = hidden;
        }
        for (text, effect) in texts.iter_mut().zip(effects) {
            *text = effect.message.unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use vmhost_core::{Object, ObjectName};

    use super::*;

    fn secret() -> (Gvk, Snapshot) {
        let name = ObjectName::new(Some("a"), "s");
        // In base64, the value is `hunter22`.
        let text = r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"password":"aHVudGVyMjI="}}"#;
        let object = Object::with_text(name, "u", 7, text);
        (Gvk::new("", "v1", "Secret"), object)
    }

    fn hide() -> Hide {
        let settings = HashMap::from([("token".to_owned(), "from-a-flag".to_owned())]);
        Hide::new(vec!["Database=spec.password".parse().unwrap()], settings)
    }

    fn hidden(saw: &Saw, object: &str, new: Value) -> (Vec<Field>, String) {
        let mut fields = fields(None, Some(&new));
        let mut texts = ["it says hunter22".to_owned()];
        hide().change(saw, object, &mut fields, &mut texts);
        let [text] = texts;
        (fields, text)
    }

    #[test]
    fn a_value_of_a_secret_that_was_read_is_hidden_wherever_it_goes() {
        let saw = Saw {
            objects: vec![secret()],
            more: false,
        };
        let new = json!({ "data": { "url": "db://hunter22@host", "x": "1", "t": "from-a-flag" } });
        let (fields, text) = hidden(&saw, "ConfigMap a/x", new);
        let shown = format!("{fields:?} {text}");
        for value in ["hunter22", "from-a-flag", "aHVudGVyMjI"] {
            assert!(!shown.contains(value), "{shown}");
        }
        assert!(shown.contains("db://<redacted "), "{shown}");
        assert!(fields.iter().any(|field| field.new == Some(json!("1"))));
    }

    #[test]
    fn the_values_of_a_secret_and_of_a_named_field_are_hidden() {
        let none = Saw::default();
        let secret = json!({ "data": { "password": "aHVudGVyMjI=" }, "type": "Opaque" });
        let (fields, text) = hidden(&none, "Secret a/s", secret);
        assert!(!format!("{fields:?} {text}").contains("hunter22"));
        assert!(!format!("{fields:?}").contains("aHVudGVyMjI"));
        assert!(
            fields
                .iter()
                .any(|field| field.new == Some(json!("Opaque")))
        );
        let database = json!({ "spec": { "password": "correct horse", "size": 1 } });
        let (fields, _) = hidden(&none, "Database a/d", database);
        let shown = format!("{fields:?}");
        assert!(!shown.contains("correct") && shown.contains("spec.size"));
        assert!(hide().concerns(&Gvk::new("example.com", "v1", "Database")));
        assert!(!hide().concerns(&Gvk::new("", "v1", "ConfigMap")));
    }

    #[test]
    fn what_may_be_any_value_is_hidden_as_a_whole() {
        let saw = Saw {
            objects: Vec::new(),
            more: true,
        };
        let (fields, text) = hidden(
            &saw,
            "ConfigMap a/x",
            json!({ "data": { "x": "hunter22" } }),
        );
        assert_eq!(fields[0].new, Some(json!(UNKNOWN)));
        assert!(!text.contains("hunter22"), "{text}");
    }
}
