//! Evaluates what makes a value with a name and fields.
//!
//! Must not know what is done with the value.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::Machine;
use crate::code::Code;
use crate::price::MAKING;
use crate::types::PATCH;
use crate::value::{Failure, Made, Val};

impl<'a> Machine<'a> {
    pub(super) fn make(
        &mut self,
        name: &Arc<str>,
        fields: &'a [(String, Code, bool)],
    ) -> Result<Val<'a>, Failure> {
        self.spend(MAKING)?;
        let mut made = BTreeMap::new();
        for (field, value, optional) in fields {
            let value = match (self.run(value)?, *optional) {
                (Val::Optional(None), true) => continue,
                (Val::Optional(Some(value)), true) => Val::clone(&value),
                (_, true) => return Err(Failure::NoOverload),
                (value, false) => value,
            };
            let is_text = matches!(value, Val::String(_));
            // The types of the expression may not tell what it is.
            if **name == *PATCH && field != "value" && !is_text {
                let kind = value.kind();
                let why = format!("unexpected type {kind} for JSONPatchType '{field}' field");
                return Err(Failure::text(why));
            }
            made.insert(field.as_str(), value);
        }
        Ok(Val::Made(Rc::new(Made {
            name: name.clone(),
            fields: made,
        })))
    }
}
