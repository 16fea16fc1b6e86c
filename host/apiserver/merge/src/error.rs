//! The reasons for refusing an apply.
//!
//! Owns the text of a conflict. Must not know how conflicts are found.

/// Why an apply was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Other managers own fields with other values (409); `force` would take them.
    #[error("{}", conflict_text(.0))]
    Conflict(Vec<Conflict>),
    /// The object does not fit the schema: a field that it does not declare, a wrong type, a list
    /// item without its keys, a duplicate (500).
    #[error("{0}")]
    Undeclared(String),
    /// The request itself is invalid (400).
    #[error("{0}")]
    Invalid(String),
}

/// A field of another manager that an apply would change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The manager that owns the field.
    pub manager: String,
    /// The text of the `Status` cause: `conflict with "one"`, or `conflict with "one" using v1` if
    /// the owner made an update.
    pub message: String,
    /// The path of the field: `.spec.size`.
    pub field: String,
}

/// Returns the message of the `Status`.
fn conflict_text(conflicts: &[Conflict]) -> String {
    if let [one] = conflicts {
        return format!(
            "Apply failed with 1 conflict: {}: {}",
            one.message, one.field
        );
    }
    let mut text = format!("Apply failed with {} conflicts: ", conflicts.len());
    let mut last = "";
    let mut lines = Vec::new();
    for conflict in conflicts {
        if conflict.message != last {
            lines.push(format!(
                "{}:",
                conflict.message.replacen("conflict", "conflicts", 1)
            ));
            last = &conflict.message;
        }
        lines.push(format!("- {}", conflict.field));
    }
    text.push_str(&lines.join("\n"));
    text
}
