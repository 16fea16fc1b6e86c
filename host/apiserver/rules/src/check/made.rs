//! Checks what makes a value with fields: `Object.spec{replicas: 1}`, `JSONPatch{op: "add"}`.
//!
//! The fields of objects are of any name and type, as in a real server: a schema has a say only
//! when the object is merged. Must not know what is done with the value.

use std::sync::Arc;

use cel::common::ast::{EntryExpr, StructExpr};

use super::Checker;
use super::kinds::present;
use super::wrong::{Wrong, undeclared, wrong};
use crate::code::{Code, Op};
use crate::types::{Bound, OBJECT, PATCH, Type};

impl Checker {
    pub(super) fn make(&mut self, id: u64, made: &StructExpr) -> Result<Code, Wrong> {
        let name = made.type_name.as_str();
        let name = name.strip_prefix('.').unwrap_or(name);
        if !(self.patches && is_known(name)) {
            return wrong(id, undeclared(name));
        }
        let mut fields = Vec::new();
        for entry in &made.entries {
            let EntryExpr::StructField(field) = &entry.expr else {
                return wrong(entry.id, "unsupported expression");
            };
            let value = self.expr(&field.value)?;
            let kind = present(field.value.id, &value.kind, field.optional)?;
            if name == PATCH {
                operation(entry.id, &field.field, &kind)?;
            }
            fields.push((field.field.clone(), value, field.optional));
        }
        let name: Arc<str> = Arc::from(name);
        Ok(Code {
            kind: Type::Made(name.clone()),
            op: Op::Make { name, fields },
        })
    }
}

/// Returns whether a type's values can be made.
fn is_known(name: &str) -> bool {
    let below = name.strip_prefix(OBJECT);
    name == PATCH || below.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Checks a field of an operation.
fn operation(id: u64, field: &str, kind: &Type) -> Result<(), Wrong> {
    match field {
        "value" => Ok(()),
        "op" | "path" | "from" if Type::String.fits(kind, &mut Bound::default()) => Ok(()),
        "op" | "path" | "from" => {
            let wanted = format!("expected type of field '{field}' is 'string'");
            wrong(id, format!("{wanted} but provided type is '{kind}'"))
        }
        _ => wrong(id, format!("undefined field '{field}'")),
    }
}
