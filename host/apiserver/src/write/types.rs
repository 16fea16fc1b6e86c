//! Values of wrong types.
//!
//! Owns how a body of a built-in kind is refused that a real server cannot even read. Must not know
//! how types are checked.

use crate::call::Call;
use crate::status::{ApiError, Cause};

const TYPE_INVALID: &str = "FieldValueTypeInvalid";

/// Refuses a body of a built-in kind that has a value of a wrong type. Custom objects, and what a
/// patch makes of an object, are refused for all their faults together.
pub(super) fn check(call: &Call<'_>, faults: &[Cause]) -> Result<(), ApiError> {
    let mut wrong = faults.iter().filter(|fault| fault.reason == TYPE_INVALID);
    let target = call.target;
    let Some(fault) = wrong
        .next()
        .filter(|_| !target.kind.custom && !call.is_patch)
    else {
        return Ok(());
    };
    // The message ends with `of type integer: "string"`.
    let types = fault.message.rsplit_once(" of type ");
    let types = types.map_or("", |(_, types)| types);
    let (wanted, found) = types.split_once(": ").unwrap_or((types, "value"));
    let (kind, version) = (&target.kind.kind, &target.version().name);
    Err(ApiError::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a {kind}: json: cannot unmarshal {} into Go struct field {kind}.{} of type {wanted}",
        found.trim_matches('"'),
        fault.field,
    )))
}
