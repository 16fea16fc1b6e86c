//! Time zones in expressions.
//!
//! Must not know the types of expressions.

use cel::common::ast::{Expr, IdedExpr, LiteralValue};

use super::wrong::{Wrong, wrong};
use crate::clock;

/// The functions that take a time zone.
const FUNCTIONS: [&str; 10] = [
    "getFullYear",
    "getMonth",
    "getDayOfYear",
    "getDayOfMonth",
    "getDate",
    "getDayOfWeek",
    "getHours",
    "getMinutes",
    "getSeconds",
    "getMilliseconds",
];

/// Refuses a time zone that no evaluation will know: a rule with it would refuse every object.
pub(super) fn check(function: &str, args: &[IdedExpr]) -> Result<(), Wrong> {
    let [zone] = args else {
        return Ok(());
    };
    let Expr::Literal(LiteralValue::String(name)) = &zone.expr else {
        return Ok(());
    };
    let name = name.inner();
    if !FUNCTIONS.contains(&function) || clock::zone(name).is_some() {
        return Ok(());
    }
    let why = format!(
        "time zone '{name}' is not supported by vmhost's API server, which knows UTC, offsets such as '-08:00' and the zones of its machine"
    );
    wrong(zone.id, why)
}
