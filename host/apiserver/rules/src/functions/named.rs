//! Named formats.
//!
//! Must not know what a format refuses.

use super::text::one;
use crate::named;
use crate::value::{Failure, Function, Opaque, Val};

pub(super) fn find(name: &str) -> Option<Function> {
    let function: Function = match name {
        "format.dns1123Label" => |_| of("dns1123Label"),
        "format.dns1123Subdomain" => |_| of("dns1123Subdomain"),
        "format.dns1035Label" => |_| of("dns1035Label"),
        "format.qualifiedName" => |_| of("qualifiedName"),
        "format.dns1123LabelPrefix" => |_| of("dns1123LabelPrefix"),
        "format.dns1123SubdomainPrefix" => |_| of("dns1123SubdomainPrefix"),
        "format.dns1035LabelPrefix" => |_| of("dns1035LabelPrefix"),
        "format.labelValue" => |_| of("labelValue"),
        "format.uri" => |_| of("uri"),
        "format.uuid" => |_| of("uuid"),
        "format.byte" => |_| of("byte"),
        "format.date" => |_| of("date"),
        "format.datetime" => |_| of("datetime"),
        "format.named" => |args| {
            Ok(match named::find(one(args)?) {
                Some(format) => Val::some(Val::opaque(Opaque::Format(format.name))),
                None => Val::Optional(None),
            })
        },
        "validate" => validate,
        _ => return None,
    };
    Some(function)
}

fn of<'a>(name: &'static str) -> Result<Val<'a>, Failure> {
    Ok(Val::opaque(Opaque::Format(name)))
}

/// Returns what a format has against a text; no value if it has nothing.
fn validate<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    let [Val::Opaque(format), Val::String(text)] = args else {
        return Err(Failure::NoOverload);
    };
    let Opaque::Format(name) = &**format else {
        return Err(Failure::NoOverload);
    };
    let format = named::find(name).ok_or(Failure::NoOverload)?;
    let faults: Vec<Val<'a>> = (format.faults)(text).into_iter().map(Val::string).collect();
    Ok(match faults.is_empty() {
        true => Val::Optional(None),
        false => Val::some(Val::list(faults)),
    })
}
