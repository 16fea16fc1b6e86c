//! What is wrong with an object or a schema, field by field.
//!
//! Owns the form of such a fault. Must not know how an answer carries it.

/// A rule that an object or a schema breaks, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct Fault {
    /// The sort of rule.
    pub reason: Reason,
    /// Text as kube-apiserver words it, without the field's name.
    pub message: String,
    /// Path of the field, as `spec.ports[0].name`; in a schema relative to it, as
    /// `properties[spec].type`.
    pub field: String,
}

/// The sort of rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A value is missing.
    Required,
    /// A value may not be there.
    Forbidden,
    /// A value breaks a rule of its own field.
    Invalid,
    /// A value has another type or format.
    TypeInvalid,
    /// A value is none of those that are allowed.
    NotSupported,
    /// An item of a set, or the keys of one, come twice.
    Duplicate,
    /// A text is too long.
    TooLong,
    /// A list or map has too many entries.
    TooMany,
}

impl Reason {
    /// Its name in a `Status`, as `FieldValueInvalid`.
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

/// A schema that is not structural: everything that is wrong with it, sorted by field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the schema is not structural: {}", joined(.0))]
pub struct NotStructural(pub Vec<Fault>);

fn joined(faults: &[Fault]) -> String {
    let texts: Vec<String> = faults.iter().map(Fault::to_string).collect();
    texts.join("; ")
}
