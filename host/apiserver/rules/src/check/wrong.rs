//! What is wrong with an expression, and where.
//!
//! Owns the texts, in the form of cel-go. Must not know the rules.

use cel::common::ast::SourceInfo;

use crate::code::Code;
use crate::types::Type;

/// What is wrong with a part of an expression.
pub(super) struct Wrong {
    pub id: u64,
    pub text: String,
}

/// Returns an error about a part.
pub(super) fn wrong<T>(id: u64, text: impl Into<String>) -> Result<T, Wrong> {
    let text = text.into();
    Err(Wrong { id, text })
}

/// Returns the line and the column of a part, both from 0.
pub(super) fn place(info: &SourceInfo, id: u64) -> (usize, usize) {
    let start = info.offset_for(id).map_or(0, |(start, _)| start as usize);
    let before: Vec<char> = info.source.chars().take(start).collect();
    let line = before.iter().filter(|c| **c == '\n').count();
    let column = before.iter().rev().take_while(|c| **c != '\n').count();
    (line, column)
}

/// Formats an error with the place in the source, as cel-go does.
pub(super) fn located(source: &str, (line, column): (usize, usize), text: &str) -> String {
    let shown = source.lines().nth(line).unwrap_or_default();
    let dots = ".".repeat(column);
    let (line, column) = (line + 1, column + 1);
    format!("ERROR: <input>:{line}:{column}: {text}\n | {shown}\n | {dots}^")
}

/// Returns the text for an unknown name.
pub(super) fn undeclared(name: &str) -> String {
    format!("undeclared reference to '{name}' (in container '')")
}

/// Returns whether a part can be a condition.
pub(super) fn is_bool(code: &Code) -> bool {
    matches!(code.kind, Type::Bool | Type::Dyn)
}

/// Returns the text for a function that does not take these arguments.
pub(super) fn no_overload(name: &str, member: bool, args: &[Code]) -> String {
    let kinds: Vec<String> = args.iter().map(|arg| arg.kind.to_string()).collect();
    let applied = match kinds.split_first() {
        Some((target, rest)) if member => format!("{target}.({})", rest.join(", ")),
        _ => format!("({})", kinds.join(", ")),
    };
    format!("found no matching overload for '{name}' applied to '{applied}'")
}
