//! The types of single parts, given the types of the parts below.
//!
//! Owns the choice of a function by its arguments. Must not know variables.

use cel::common::ast::{Expr, LiteralValue};
use regex::{Regex, RegexBuilder};

use super::wrong::{Wrong, no_overload, undeclared, wrong};
use crate::code::{Code, Literal, Op};
use crate::functions;
use crate::signatures;
use crate::types::{Bound, Type};

/// The largest compiled size of a pattern in bytes.
const PATTERN_BYTES: usize = 1 << 20;

/// Finds the function for these arguments. With arguments of unknown types, several ways to call it
/// may fit, and the evaluation decides.
pub(super) fn resolve(id: u64, name: &str, member: bool, args: Vec<Code>) -> Result<Code, Wrong> {
    let known = signatures::of(name)
        .iter()
        .filter(|one| one.member == member);
    let (mut exists, mut kind) = (false, None);
    for signature in known {
        exists = true;
        let mut bound = Bound::default();
        let mut pairs = signature.params.iter().zip(&args);
        if signature.params.len() != args.len()
            || !pairs.all(|(param, arg)| param.fits(&arg.kind, &mut bound))
        {
            continue;
        }
        let solved = signature.result.solved(&bound);
        kind = match kind {
            None => Some(solved),
            Some(other) if other == solved => Some(other),
            Some(_) => Some(Type::Dyn),
        };
    }
    let (Some(kind), Some(function)) = (kind, functions::find(name)) else {
        let text = match exists {
            true => no_overload(name, member, &args),
            false => undeclared(name),
        };
        return wrong(id, text);
    };
    let mut args = args;
    if name == "matches"
        && let Some(Op::Literal(Literal::String(pattern))) = args.last().map(|last| &last.op)
    {
        let Some(pattern) = pattern_of(pattern) else {
            return wrong(id, "invalid matches argument");
        };
        args.truncate(1);
        if let Some(text) = args.pop() {
            let text = Box::new(text);
            let op = Op::Matches { text, pattern };
            return Ok(Code { kind, op });
        }
    }
    let name = name.to_owned();
    Ok(Code {
        kind,
        op: Op::Call {
            name,
            function,
            args,
        },
    })
}

fn pattern_of(text: &str) -> Option<Regex> {
    let mut builder = RegexBuilder::new(text);
    builder.size_limit(PATTERN_BYTES).build().ok()
}

/// Returns the type of a field of a value of this type.
pub(super) fn selected(id: u64, of: &Type, field: &str) -> Result<Type, Wrong> {
    match of {
        Type::Dyn | Type::Made(_) => Ok(Type::Dyn),
        Type::Map(_, value) => Ok(Type::clone(value)),
        Type::Object(decl) => match decl.field(field) {
            Some(field) => Ok(Type::of(&field.decl)),
            None => wrong(id, format!("undefined field '{field}'")),
        },
        Type::Optional(inner) => match selected(id, inner, field)? {
            Type::Optional(inner) => Ok(Type::Optional(inner)),
            plain => Ok(Type::Optional(Box::new(plain))),
        },
        other => wrong(
            id,
            format!("type '{other}' does not support field selection"),
        ),
    }
}

/// Returns the type of an item or value that is left out if it is absent.
pub(super) fn present(id: u64, kind: &Type, optional: bool) -> Result<Type, Wrong> {
    match kind {
        kind if !optional => Ok(kind.clone()),
        Type::Optional(inner) => Ok(Type::clone(inner)),
        Type::Dyn => Ok(Type::Dyn),
        other => wrong(
            id,
            format!("expected type 'optional_type({other})' but found '{other}'"),
        ),
    }
}

/// Returns the type of the items of a list that has had `known` so far.
pub(super) fn same(id: u64, known: &Type, kind: &Type) -> Result<Type, Wrong> {
    match known.join(kind) {
        Some(joined) => Ok(joined),
        None => wrong(id, format!("expected type '{known}' but found '{kind}'")),
    }
}

/// Returns a constant.
pub(super) fn literal(value: &LiteralValue) -> Code {
    let (kind, value) = match value {
        LiteralValue::Boolean(value) => (Type::Bool, Literal::Bool(*value.inner())),
        LiteralValue::Bytes(value) => (Type::Bytes, Literal::Bytes(value.inner().to_vec())),
        LiteralValue::Double(value) => (Type::Double, Literal::Double(*value.inner())),
        LiteralValue::Int(value) => (Type::Int, Literal::Int(*value.inner())),
        LiteralValue::Null => (Type::Null, Literal::Null),
        LiteralValue::String(value) => (Type::String, Literal::String(value.inner().to_owned())),
        LiteralValue::UInt(value) => (Type::Uint, Literal::Uint(*value.inner())),
    };
    Code {
        kind,
        op: Op::Literal(value),
    }
}

/// The most parts of a qualified name that means something: `google.protobuf.Timestamp`.
const PARTS: usize = 3;

/// Returns the qualified name that an expression spells; `None` if it has too many parts to mean
/// something. (An expression has room for 50,000.)
pub(super) fn spelled(of: &Expr) -> Option<String> {
    spelled_within(of, PARTS)
}

fn spelled_within(of: &Expr, parts: usize) -> Option<String> {
    let rest = parts.checked_sub(1)?;
    match of {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) => {
            let before = spelled_within(&select.operand.expr, rest)?;
            Some(format!("{before}.{}", select.field))
        }
        _ => None,
    }
}

/// Returns the type that an expression names by a qualified name.
pub(super) fn message(of: &Expr) -> Option<Code> {
    let name = match spelled(of)?.as_str() {
        "google.protobuf.Timestamp" => "google.protobuf.Timestamp",
        "google.protobuf.Duration" => "google.protobuf.Duration",
        _ => return None,
    };
    Some(Code {
        kind: Type::Kind,
        op: Op::Literal(Literal::Kind(name)),
    })
}
