//! What a checked CEL condition gets so that its evaluation ends in time: its loops read the clock,
//! and its patterns get only short strings.
//!
//! This module owns the shape of these guards; `expression` carries them out. It must not know
//! which expressions are allowed.

use std::mem;

use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, LiteralValue, operators};

/// The variable that every loop of a checked expression reads before an iteration. No source text
/// can spell it.
pub(super) const TICK: &str = "@tick";

/// The function that wraps every string argument of `matches`. No source text can spell it.
pub(super) const SHORT: &str = "@short";

/// Wraps the string argument of `matches`, so that long strings are rejected.
pub(super) fn only_short(call: &mut CallExpr) {
    let text = match &mut call.target {
        Some(target) => Some(&mut **target),
        None => call.args.first_mut(),
    };
    if let Some(text) = text {
        let inner = mem::take(text);
        text.expr = Expr::Call(CallExpr {
            func_name: SHORT.into(),
            target: None,
            args: vec![inner],
        });
    }
}

/// Makes each iteration of a loop check the deadline first. The crate recognises the steps of `map`
/// and `filter` by their shape and appends in place, so that shape must stay.
pub(super) fn look_at_the_clock(each: &mut ComprehensionExpr) {
    if !matches!(each.accu_init.expr, Expr::List(_)) {
        in_time(&mut each.loop_cond, LiteralValue::Boolean(false.into()));
        return;
    }
    if let Expr::Call(step) = &mut each.loop_step.expr
        && step.func_name == operators::CONDITIONAL
        && let Some(guard) = step.args.first_mut()
    {
        in_time(guard, LiteralValue::Boolean(false.into()));
        return;
    }
    let otherwise = Expr::Ident(each.accu_var.clone());
    conditional(&mut each.loop_step, otherwise);
}

fn in_time(of: &mut IdedExpr, otherwise: LiteralValue) {
    conditional(of, Expr::Literal(otherwise));
}

/// Replaces `of` by `@tick ? of : otherwise`.
fn conditional(of: &mut IdedExpr, otherwise: Expr) {
    let new = |expr| IdedExpr { id: 0, expr };
    let inner = mem::take(of);
    let tick = new(Expr::Ident(TICK.into()));
    of.expr = Expr::Call(CallExpr {
        func_name: operators::CONDITIONAL.into(),
        target: None,
        args: vec![tick, inner, new(otherwise)],
    });
}
