//! Functions of texts, patterns among them.
//!
//! Positions count characters. Must not know other types than texts and their lists.

use regex::{Regex, RegexBuilder};

use super::convert;
use crate::value::{Failure, Function, Val};

/// The largest compiled size of a pattern in bytes.
const PATTERN_BYTES: usize = 1 << 20;

/// The longest text that a function makes: what an evaluation can pay for by adding texts. Some
/// functions make far more than they cost.
const LONGEST: usize = 10 << 20;

pub(super) fn find(name: &str) -> Option<Function> {
    let function: Function = match name {
        "matches" => |args| {
            let (text, pattern) = two(args)?;
            Ok(Val::Bool(regex(pattern)?.is_match(text)))
        },
        "contains" => |args| two(args).map(|(text, part)| Val::Bool(text.contains(part))),
        "startsWith" => |args| two(args).map(|(text, part)| Val::Bool(text.starts_with(part))),
        "endsWith" => |args| two(args).map(|(text, part)| Val::Bool(text.ends_with(part))),
        "lowerAscii" => |args| Ok(Val::string(one(args)?.to_ascii_lowercase())),
        "upperAscii" => |args| Ok(Val::string(one(args)?.to_ascii_uppercase())),
        "trim" => |args| Ok(Val::string(one(args)?.trim())),
        "charAt" => char_at,
        "replace" => replace,
        "split" => split,
        "substring" => substring,
        "join" => join,
        "format" => format,
        "jsonpatch.escapeKey" => |args| {
            Ok(Val::string(
                one(args)?.replace('~', "~0").replace('/', "~1"),
            ))
        },
        "strings.quote" => |args| Ok(Val::string(format!("{:?}", one(args)?))),
        "find" => |args| {
            let (text, pattern) = two(args)?;
            let found = regex(pattern)?
                .find(text)
                .map_or("", |found| found.as_str());
            Ok(Val::string(found))
        },
        "findAll" => find_all,
        _ => return None,
    };
    Some(function)
}

/// Returns the first argument, which must be a text.
pub(super) fn one<'b>(args: &'b [Val<'_>]) -> Result<&'b str, Failure> {
    match args {
        [Val::String(text), ..] => Ok(&**text),
        _ => Err(Failure::NoOverload),
    }
}

fn two<'b>(args: &'b [Val<'_>]) -> Result<(&'b str, &'b str), Failure> {
    match args {
        [Val::String(a), Val::String(b), ..] => Ok((&**a, &**b)),
        _ => Err(Failure::NoOverload),
    }
}

fn regex(pattern: &str) -> Result<Regex, Failure> {
    let mut builder = RegexBuilder::new(pattern);
    builder
        .size_limit(PATTERN_BYTES)
        .build()
        .map_err(|_| Failure::text(format!("error parsing regexp: {pattern}")))
}

/// Refuses a text of this length if it is too long.
fn room(length: usize) -> Result<(), Failure> {
    match length {
        0..=LONGEST => Ok(()),
        _ => Err(Failure::OverBudget),
    }
}

/// Returns a position of the text, or the error of one outside of it.
fn position(at: i64, length: usize) -> Result<usize, Failure> {
    usize::try_from(at)
        .ok()
        .filter(|at| *at <= length)
        .ok_or_else(|| Failure::text(format!("index out of range: {at}")))
}

fn char_at<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    let [Val::String(text), Val::Int(at)] = args else {
        return Err(Failure::NoOverload);
    };
    let at = position(*at, text.chars().count())?;
    Ok(Val::string(
        text.chars().nth(at).map(String::from).unwrap_or_default(),
    ))
}

/// Returns the position of a part in a text, the first from `from` on or the last up to it; -1 if
/// there is none.
pub(super) fn index_of(
    text: &str,
    part: &str,
    from: Option<i64>,
    last: bool,
) -> Result<i64, Failure> {
    let chars: Vec<char> = text.chars().collect();
    let part: Vec<char> = part.chars().collect();
    let from = from.map(|from| position(from, chars.len())).transpose()?;
    let is_here = |at: &usize| {
        let end = at.saturating_add(part.len());
        chars
            .get(*at..end)
            .is_some_and(|here| here == part.as_slice())
    };
    let found = match last {
        false => (from.unwrap_or(0)..=chars.len()).find(is_here),
        true => (0..=from.unwrap_or(chars.len())).rev().find(is_here),
    };
    Ok(found.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1))
}

fn replace<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    let [
        Val::String(text),
        Val::String(old),
        Val::String(new),
        rest @ ..,
    ] = args
    else {
        return Err(Failure::NoOverload);
    };
    let most = match rest {
        [] => usize::MAX,
        [Val::Int(most)] => usize::try_from(*most).unwrap_or(usize::MAX),
        _ => return Err(Failure::NoOverload),
    };
    let found = text.matches(&**old).take(most).count();
    room(found.saturating_mul(new.len()).saturating_add(text.len()))?;
    Ok(Val::string(text.replacen(&**old, new, most)))
}

fn split<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    let (text, by) = two(args)?;
    let most = match args {
        [_, _, Val::Int(most)] => usize::try_from(*most).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    let parts: Vec<Val<'a>> = match (most, by) {
        (0, _) => Vec::new(),
        (most, "") => {
            // The last part has what is left, as in Go.
            let ends = text.char_indices().map(|(at, _)| at).skip(1).take(most - 1);
            let mut ends: Vec<usize> = ends.collect();
            ends.push(text.len());
            let starts = std::iter::once(0).chain(ends.iter().copied());
            let parts = starts
                .zip(&ends)
                .filter_map(|(start, end)| text.get(start..*end));
            parts
                .filter(|part| !part.is_empty())
                .map(Val::string)
                .collect()
        }
        (most, by) => text.splitn(most, by).map(Val::string).collect(),
    };
    Ok(Val::list(parts))
}

fn substring<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    let text = one(args)?;
    let length = text.chars().count();
    let (start, end) = match args {
        [_, Val::Int(start)] => (position(*start, length)?, length),
        [_, Val::Int(start), Val::Int(end)] => (position(*start, length)?, position(*end, length)?),
        _ => return Err(Failure::NoOverload),
    };
    if start > end {
        let text = format!("invalid substring range. start: {start}, end: {end}");
        return Err(Failure::text(text));
    }
    let part: String = text.chars().skip(start).take(end - start).collect();
    Ok(Val::string(part))
}

fn join<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    let (list, between) = match args {
        [list] => (list, ""),
        [list, Val::String(between)] => (list, &**between),
        _ => return Err(Failure::NoOverload),
    };
    let mut joined = String::new();
    for (at, item) in list.items()?.iter().enumerate() {
        if at > 0 {
            joined.push_str(between);
        }
        joined.push_str(one(std::slice::from_ref(item))?);
        room(joined.len())?;
    }
    Ok(Val::string(joined))
}

fn find_all<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    let (text, pattern) = two(args)?;
    let most = match args {
        [_, _, Val::Int(most)] => usize::try_from(*most).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    let pattern = regex(pattern)?;
    let found = pattern.find_iter(text).take(most);
    Ok(Val::list(
        found.map(|one| Val::string(one.as_str())).collect(),
    ))
}

/// Formats values: `%s`, `%d`, `%f` with a precision, `%e`, `%b`, `%x`, `%X`, `%o` and `%%`.
fn format<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    let [Val::String(form), list] = args else {
        return Err(Failure::NoOverload);
    };
    let items = list.items()?;
    let mut items = items.iter().enumerate();
    let mut out = String::new();
    let mut chars = form.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        if chars.next_if_eq(&'%').is_some() {
            out.push('%');
            continue;
        }
        let mut precision = None;
        if chars.next_if_eq(&'.').is_some() {
            let mut digits = String::new();
            while let Some(digit) = chars.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            precision = digits.parse::<usize>().ok().filter(|digits| *digits <= 100);
        }
        let Some(verb) = chars.next() else {
            return Err(Failure::text("unexpected end of string"));
        };
        let Some((at, item)) = items.next() else {
            return Err(Failure::text("index out of range"));
        };
        let wrong = || {
            let kind = item.kind();
            Failure::text(format!(
                "error during formatting: argument {at}: %{verb} does not take {kind}"
            ))
        };
        let mut left = LONGEST.saturating_sub(out.len());
        if !fits(item, &mut left) {
            return Err(Failure::OverBudget);
        }
        out.push_str(&formatted(verb, precision, item).ok_or_else(wrong)?);
    }
    match items.next() {
        Some((at, _)) => Err(Failure::text(format!(
            "too many arguments supplied to string.format (expected {at})"
        ))),
        None => Ok(Val::string(out)),
    }
}

/// Returns whether the text of a value is not longer than what is left, and takes it from that.
fn fits(item: &Val<'_>, left: &mut usize) -> bool {
    let length = match item {
        // Each byte may become two digits.
        Val::String(text) => text.len().saturating_mul(2),
        Val::Bytes(bytes) => bytes.len().saturating_mul(2),
        _ => 1,
    };
    let Some(rest) = left.checked_sub(length) else {
        return false;
    };
    *left = rest;
    if let Ok(items) = item.items() {
        return items.iter().all(|item| fits(item, left));
    }
    let keys = item.keys().unwrap_or_default();
    keys.iter().all(|key| {
        let value = item.get(key).ok().flatten();
        fits(key, left) && value.is_none_or(|value| fits(&value, left))
    })
}

fn formatted(verb: char, precision: Option<usize>, item: &Val<'_>) -> Option<String> {
    Some(match (verb, item) {
        ('s', item) => shown(item)?,
        ('d', Val::Int(number)) => number.to_string(),
        ('d', Val::Uint(number)) => number.to_string(),
        ('d', Val::Double(number)) => number.to_string(),
        ('f', Val::Double(number)) => format!("{number:.*}", precision.unwrap_or(6)),
        ('e', Val::Double(number)) => format!("{number:.*e}", precision.unwrap_or(6)),
        ('b', Val::Bool(value)) => u8::from(*value).to_string(),
        ('b', Val::Int(number)) => format!("{number:b}"),
        ('b', Val::Uint(number)) => format!("{number:b}"),
        ('o', Val::Int(number)) => format!("{number:o}"),
        ('o', Val::Uint(number)) => format!("{number:o}"),
        ('x', Val::Int(number)) => format!("{number:x}"),
        ('x', Val::Uint(number)) => format!("{number:x}"),
        ('X', Val::Int(number)) => format!("{number:X}"),
        ('X', Val::Uint(number)) => format!("{number:X}"),
        ('x', Val::String(text)) => text.bytes().map(|byte| format!("{byte:02x}")).collect(),
        ('X', Val::String(text)) => text.bytes().map(|byte| format!("{byte:02X}")).collect(),
        ('x', Val::Bytes(bytes)) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        ('X', Val::Bytes(bytes)) => bytes.iter().map(|byte| format!("{byte:02X}")).collect(),
        _ => return None,
    })
}

/// Returns a value as `%s` prints it.
fn shown(item: &Val<'_>) -> Option<String> {
    Some(match item {
        Val::Null => "null".to_owned(),
        Val::Kind(name) => (*name).to_owned(),
        Val::Items(..) | Val::List(..) => {
            let items = item.items().ok()?;
            let items: Option<Vec<String>> = items.iter().map(shown).collect();
            format!("[{}]", items?.join(", "))
        }
        Val::Data(..) | Val::Map(_) => {
            let mut entries = Vec::new();
            for key in item.keys().ok()? {
                let value = item.get(&key).ok()??;
                entries.push(format!("{}: {}", shown(&key)?, shown(&value)?));
            }
            entries.sort();
            format!("{{{}}}", entries.join(", "))
        }
        other => convert::text(other)?.into_owned(),
    })
}
