//! When lists, objects and maps are equal.
//!
//! Must not know other values.

use serde_json::{Map, Value};

use super::{Failure, Made, Val};
use crate::decl::{Decl, Listing, escape};

/// Compares lists. What identifies the items of the left one decides whether their order counts.
pub(super) fn same_items(a: &Val<'_>, b: &Val<'_>) -> Result<bool, Failure> {
    if a.len() != b.len() {
        return Ok(false);
    }
    let (left, right) = (a.items()?, b.items()?);
    let keys = match a.listing() {
        None | Some(Listing::Position) => None,
        Some(Listing::Value) => Some(&[][..]),
        Some(Listing::Keys(keys)) => Some(keys.as_slice()),
    };
    let Some(keys) = keys else {
        for (a, b) in left.iter().zip(&right) {
            if !a.equal(b)? {
                return Ok(false);
            }
        }
        return Ok(true);
    };
    for b in &right {
        let mut found = false;
        for a in &left {
            if same_keys(keys, a, b)? {
                found = a.equal(b)?;
                break;
            }
        }
        if !found {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns whether two items of a list have the same keys; without keys, the whole item is the key.
pub(crate) fn same_keys(keys: &[String], a: &Val<'_>, b: &Val<'_>) -> Result<bool, Failure> {
    if keys.is_empty() {
        return a.equal(b);
    }
    for key in keys {
        let key = escape(key).unwrap_or_default();
        let same = match (a.field(&key)?, b.field(&key)?) {
            (Some(a), Some(b)) => a.equal(&b)?,
            (a, b) => a.is_none() && b.is_none(),
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(super) fn same_fields(
    a: &Map<String, Value>,
    b: &Map<String, Value>,
    decl: &Decl,
) -> Result<bool, Failure> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for (name, value) in a {
        let Some(other) = b.get(name) else {
            return Ok(false);
        };
        let field = escape(name).and_then(|escaped| decl.field(&escaped));
        let same = match field.filter(|_| !value.is_null() && !other.is_null()) {
            Some(field) => {
                let other = Val::read(other, &field.decl)?;
                Val::read(value, &field.decl)?.equal(&other)?
            }
            // What the schema does not know, or null, is compared as it is.
            None => value == other,
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(super) fn same_entries(a: &Val<'_>, b: &Val<'_>) -> Result<bool, Failure> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for key in a.keys()? {
        let same = match (a.get(&key)?, b.get(&key)?) {
            (Some(a), Some(b)) => a.equal(&b)?,
            _ => false,
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(super) fn same_made(a: &Made<'_>, b: &Made<'_>) -> Result<bool, Failure> {
    if a.name != b.name || a.fields.len() != b.fields.len() {
        return Ok(false);
    }
    for ((name, value), (other_name, other)) in a.fields.iter().zip(&b.fields) {
        if name != other_name || !value.equal(other)? {
            return Ok(false);
        }
    }
    Ok(true)
}
