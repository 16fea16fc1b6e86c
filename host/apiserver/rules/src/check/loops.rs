//! Checks what declares variables: loops, and what is done with an optional value.
//!
//! Must not know other calls.

use cel::common::ast::{Expr, IdedExpr};

use super::Checker;
use super::kinds::present;
use super::macros::{self, Form};
use super::wrong::{Wrong, wrong};
use crate::code::{Code, Loop, Op};
use crate::types::Type;

impl Checker {
    /// Checks a loop. The parser leaves macros as calls, because here their variables get types.
    pub(super) fn each(
        &mut self,
        id: u64,
        form: &Form,
        target: &IdedExpr,
        args: &[IdedExpr],
    ) -> Result<Code, Wrong> {
        let range = self.expr(target)?;
        let kinds = macros::variables(target.id, form, &range.kind)?;
        let (names, rest) = args.split_at_checked(kinds.len()).unwrap_or_default();
        let names: Result<Vec<String>, Wrong> = names.iter().map(simple).collect();
        let before = self.names.len();
        self.names.extend(names?.into_iter().zip(kinds));
        let parts = self.all(rest);
        self.names.truncate(before);
        let mut parts = parts?.into_iter();
        let guard = if form.guard { parts.next() } else { None };
        let Some(body) = parts.next() else {
            return wrong(id, "unsupported expression");
        };
        let ids = (id, rest.last().map_or(id, |body| body.id));
        let kind = macros::result(ids, form, &range.kind, guard.as_ref(), &body)?;
        let op = Op::Loop(Box::new(Loop {
            gives: form.gives,
            range,
            two: form.two,
            guard,
            body,
        }));
        Ok(Code { kind, op })
    }

    pub(super) fn if_present(
        &mut self,
        target: &IdedExpr,
        variable: &IdedExpr,
        body: &IdedExpr,
        flat: bool,
    ) -> Result<Code, Wrong> {
        let of = self.expr(target)?;
        let inner = present(target.id, &of.kind, true)?;
        self.names.push((simple(variable)?, inner));
        let checked = self.expr(body);
        self.names.pop();
        let code = checked?;
        let inner = match flat {
            true => present(body.id, &code.kind, true)?,
            false => code.kind.clone(),
        };
        let (of, body) = (Box::new(of), Box::new(code));
        Ok(Code {
            kind: Type::Optional(Box::new(inner)),
            op: Op::IfPresent { of, body, flat },
        })
    }
}

/// Returns the variable that a macro declares.
fn simple(of: &IdedExpr) -> Result<String, Wrong> {
    match &of.expr {
        Expr::Ident(name) => Ok(name.clone()),
        _ => wrong(of.id, "argument must be a simple name"),
    }
}
