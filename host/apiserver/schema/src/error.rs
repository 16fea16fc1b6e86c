//! What is wrong with an object or a schema, field by field.
//!
//! Owns the form of a fault. Must not know how an answer carries it.

/// A broken rule of an object or a schema, and its field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct Fault {
    /// The sort of rule.
    pub reason: Reason,
    /// The text, as worded by kube-apiserver, without the field's name.
    pub message: String,
    /// The path of the field: `spec.ports[0].name`. For a schema relative to the schema:
    /// `properties[spec].type`.
    pub field: String,
}

/// The sort of a broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A required value is missing.
    Required,
    /// A forbidden value is present.
    Forbidden,
    /// A value breaks a rule of its field.
    Invalid,
    /// A value has the wrong type or format.
    TypeInvalid,
    /// A value is not among the allowed ones.
    NotSupported,
    /// An item of a set, or the keys of an item, occur twice.
    Duplicate,
    /// A text is too long.
    TooLong,
    /// A list or map has too many entries.
    TooMany,
}

impl Reason {
    /// Returns the name in a `Status`, such as `FieldValueInvalid`.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Required => "FieldValueRequired",
            Reason::Forbidden => "FieldValueForbidden",
            Reason::Invalid => "FieldValueInvalid",
            Reason::TypeInvalid => "FieldValueTypeInvalid",
            Reason::NotSupported => "FieldValueNotSupported",
            Reason::Duplicate => "FieldValueDuplicate",
            Reason::TooLong => "FieldValueTooLong",
            Reason::TooMany => "FieldValueTooMany",
        }
    }
}

/// The schema is not structural. Contains all faults, sorted by field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the schema is not structural: {}", joined(.0))]
pub struct NotStructural(pub Vec<Fault>);

fn joined(faults: &[Fault]) -> String {
    let texts: Vec<String> = faults.iter().map(Fault::to_string).collect();
    texts.join("; ")
}
