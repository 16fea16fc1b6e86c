//! Conversions between types.
//!
//! Must not know other functions.

use std::borrow::Cow;

use crate::clock;
use crate::value::{Failure, Function, Opaque, Val};

pub(super) fn find(name: &str) -> Option<Function> {
    let function: Function = match name {
        "dyn" => same,
        "type" => kind,
        "int" => int,
        "uint" => uint,
        "double" => double,
        "bool" => bool,
        "string" => string,
        "bytes" => bytes,
        "duration" => duration,
        "timestamp" => timestamp,
        _ => return None,
    };
    Some(function)
}

fn one<'b, 'a>(args: &'b [Val<'a>]) -> Result<&'b Val<'a>, Failure> {
    args.first().ok_or(Failure::NoOverload)
}

fn bad(text: &str, wanted: &str) -> Failure {
    Failure::text(format!("type conversion error from '{text}' to '{wanted}'"))
}

fn same<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    one(args).cloned()
}

fn kind<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    one(args).map(|value| Val::Kind(value.kind()))
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "the size of the number is checked"
)]
fn int<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    let overflow = || Failure::text("integer overflow");
    Ok(Val::Int(match one(args)? {
        Val::Int(number) => *number,
        Val::Uint(number) => i64::try_from(*number).map_err(|_| overflow())?,
        Val::Double(number) if number.abs() < 9.223_372_036_854_775e18 => *number as i64,
        Val::Double(_) => return Err(overflow()),
        Val::String(text) => text.parse().map_err(|_| bad(text, "int"))?,
        Val::Timestamp(time) => time.as_second(),
        Val::Duration(nanos) => *nanos,
        _ => return Err(Failure::NoOverload),
    }))
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the size of the number is checked"
)]
fn uint<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    let overflow = || Failure::text("unsigned integer overflow");
    Ok(Val::Uint(match one(args)? {
        Val::Uint(number) => *number,
        Val::Int(number) => u64::try_from(*number).map_err(|_| overflow())?,
        Val::Double(number) if (0.0..1.844_674_407_370_955e19).contains(number) => *number as u64,
        Val::Double(_) => return Err(overflow()),
        Val::String(text) => text.parse().map_err(|_| bad(text, "uint"))?,
        _ => return Err(Failure::NoOverload),
    }))
}

#[allow(clippy::cast_precision_loss, reason = "a double is not exact")]
fn double<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    Ok(Val::Double(match one(args)? {
        Val::Double(number) => *number,
        Val::Int(number) => *number as f64,
        Val::Uint(number) => *number as f64,
        Val::String(text) => text.parse().map_err(|_| bad(text, "double"))?,
        _ => return Err(Failure::NoOverload),
    }))
}

fn bool<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    Ok(Val::Bool(match one(args)? {
        Val::Bool(value) => *value,
        Val::String(text) => match &**text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => true,
            "0" | "f" | "F" | "false" | "FALSE" | "False" => false,
            other => return Err(bad(other, "bool")),
        },
        _ => return Err(Failure::NoOverload),
    }))
}

fn string<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    let text = text(one(args)?);
    text.map(Val::String).ok_or(Failure::NoOverload)
}

/// Returns a value as a text; `None` if it has no such form.
pub(super) fn text<'a>(value: &Val<'a>) -> Option<Cow<'a, str>> {
    Some(match value {
        Val::String(text) => text.clone(),
        Val::Int(number) => number.to_string().into(),
        Val::Uint(number) => number.to_string().into(),
        Val::Double(number) => number.to_string().into(),
        Val::Bool(value) => value.to_string().into(),
        Val::Bytes(bytes) => String::from_utf8(bytes.to_vec()).ok()?.into(),
        Val::Timestamp(time) => time.to_string().into(),
        Val::Duration(nanos) => clock::duration_text(*nanos).into(),
        Val::Opaque(value) => match &**value {
            Opaque::Ip(ip) => ip.to_string().into(),
            Opaque::Cidr(cidr) => cidr.to_string().into(),
            _ => return None,
        },
        _ => return None,
    })
}

fn bytes<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    match one(args)? {
        Val::Bytes(bytes) => Ok(Val::Bytes(bytes.clone())),
        Val::String(text) => Ok(Val::Bytes(Cow::Owned(text.as_bytes().to_vec()))),
        _ => Err(Failure::NoOverload),
    }
}

fn duration<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    Ok(Val::Duration(match one(args)? {
        Val::Duration(nanos) => *nanos,
        Val::Int(nanos) => *nanos,
        Val::String(text) => {
            clock::duration(text).ok_or_else(|| bad(text, "google.protobuf.Duration"))?
        }
        _ => return Err(Failure::NoOverload),
    }))
}

fn timestamp<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    Ok(Val::Timestamp(match one(args)? {
        Val::Timestamp(time) => *time,
        Val::Int(seconds) => jiff::Timestamp::from_second(*seconds)
            .map_err(|_| Failure::text("timestamp overflow"))?,
        Val::String(text) => {
            clock::timestamp(text).ok_or_else(|| bad(text, "google.protobuf.Timestamp"))?
        }
        _ => return Err(Failure::NoOverload),
    }))
}
