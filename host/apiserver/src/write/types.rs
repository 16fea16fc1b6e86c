//! Values of wrong types.
//!
//! Owns the refusal of a built-in kind's body that Go's decoder does not accept. Must not know how
//! types are checked.

use crate::call::Call;
use crate::refuse;
use crate::status::{ApiError, Cause, TYPE_INVALID};

/// Refuses a body of a built-in kind that has a value of a wrong type. Custom objects, and what a
/// patch makes of an object, are refused for all their faults together.
pub(super) fn check(call: &Call<'_>, faults: &[Cause]) -> Result<(), ApiError> {
    let target = call.target;
    if target.kind.custom || call.is_patch {
        return Ok(());
    }
    let Some(fault) = faults.iter().find(|fault| fault.reason == TYPE_INVALID) else {
        return Ok(());
    };
    // The message ends with `of type integer: "string"`.
    let types = fault.message.rsplit_once(" of type ");
    let types = types.map_or("", |(_, types)| types);
    let (wanted, found) = types.split_once(": ").unwrap_or((types, "value"));
    let found = found.trim_matches('"');
    let (kind, field) = (&target.kind.kind, &fault.field);
    let why = format!(
        "json: cannot unmarshal {found} into Go struct field {kind}.{field} of type {wanted}"
    );
    Err(refuse::undecodable(target, why))
}
