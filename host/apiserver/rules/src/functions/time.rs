//! Parts of times and durations, and shifted times.
//!
//! Must not know how times are read.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use crate::clock;
use crate::value::{Failure, Function, Val};

pub(super) fn find(name: &str) -> Option<Function> {
    let function: Function = match name {
        "getFullYear" => |args| part(args, |time| i64::from(time.year()), None),
        "getMonth" => |args| part(args, |time| i64::from(time.month()) - 1, None),
        "getDayOfYear" => |args| part(args, |time| i64::from(time.day_of_year()) - 1, None),
        "getDayOfMonth" => |args| part(args, |time| i64::from(time.day()) - 1, None),
        "getDate" => |args| part(args, |time| i64::from(time.day()), None),
        "getDayOfWeek" => |args| {
            let day = |time: &Zoned| i64::from(time.weekday().to_sunday_zero_offset());
            part(args, day, None)
        },
        "getHours" => |args| part(args, |time| i64::from(time.hour()), Some(HOUR)),
        "getMinutes" => |args| part(args, |time| i64::from(time.minute()), Some(HOUR / 60)),
        "getSeconds" => |args| part(args, |time| i64::from(time.second()), Some(HOUR / 3600)),
        "getMilliseconds" => {
            |args| part(args, |time| i64::from(time.millisecond()), Some(1_000_000))
        }
        _ => return None,
    };
    Some(function)
}

/// An hour in nanoseconds.
const HOUR: i64 = 3_600_000_000_000;

/// Returns a part of a time in its zone, or a duration in a unit.
fn part<'a>(
    args: &[Val<'a>],
    of: impl Fn(&Zoned) -> i64,
    unit: Option<i64>,
) -> Result<Val<'a>, Failure> {
    match (args, unit) {
        ([Val::Duration(nanos)], Some(unit)) => Ok(Val::Int(nanos / unit)),
        ([Val::Timestamp(time)], _) => Ok(Val::Int(of(&time.to_zoned(TimeZone::UTC)))),
        ([Val::Timestamp(time), Val::String(zone)], _) => {
            let unknown = || Failure::text(format!("unknown time zone {zone}"));
            let zone = clock::zone(zone).ok_or_else(unknown)?;
            Ok(Val::Int(of(&time.to_zoned(zone))))
        }
        _ => Err(Failure::NoOverload),
    }
}

/// Returns a time moved by a duration, in either order; back with a `sign` of -1.
pub(super) fn shifted<'a>(args: &[Val<'a>], sign: i128) -> Result<Val<'a>, Failure> {
    let (time, nanos) = match args {
        [Val::Timestamp(time), Val::Duration(nanos)]
        | [Val::Duration(nanos), Val::Timestamp(time)] => (time, nanos),
        _ => return Err(Failure::NoOverload),
    };
    Timestamp::from_nanosecond(time.as_nanosecond() + sign * i128::from(*nanos))
        .map(Val::Timestamp)
        .map_err(|_| Failure::text("timestamp overflow"))
}
