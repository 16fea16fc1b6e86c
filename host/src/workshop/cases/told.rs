//! `now` and `random` of a `request.json`: the clock readings and random numbers of a recorded
//! call. This module must not know how a call is made.

use anyhow::{Context, Result};
use jiff::Timestamp;
use vmhost_core::trace::Drawn;
use vmhost_engine::Told;
use vmhost_runtime::journal::case::Random;

use super::request::RequestFile;

/// Returns the clock readings and random numbers of a case. `None` if the case is not recorded. The
/// error names the field.
pub(crate) fn told(request: &RequestFile) -> Result<Option<Told>> {
    if !request.is_recorded() {
        return Ok(None);
    }
    let mut told = Told::default();
    if let Some(random) = &request.random {
        told.start = drawn(&random.start, &random.wall.start, &random.monotonic.start)
            .context("random.start")?;
        told.call = drawn(&random.call, &random.wall.call, &random.monotonic.call)
            .context("random.call")?;
        told.seed = seed(random).context("random.seed")?;
    }
    if let Some(now) = &request.now {
        told.now = nanoseconds(now).with_context(|| format!("now: {now:?}"))?;
        // A person who changes `now` means the first reading.
        if let Some(first) = told.call.wall.first_mut() {
            *first = told.now;
        }
    } else if let Some(first) = told.call.wall.first() {
        told.now = *first;
    }
    Ok(Some(told))
}

fn drawn(random: &Option<String>, wall: &[u64], monotonic: &[u64]) -> Result<Drawn> {
    Ok(Drawn {
        wall: wall.into(),
        monotonic: monotonic.into(),
        random: hex::decode(random.as_deref().unwrap_or_default())?,
        cut: false,
    })
}

/// Returns the seed. `None` if no random numbers are recorded.
fn seed(random: &Random) -> Result<Option<u128>> {
    match &random.seed {
        Some(seed) => Ok(Some(u128::from_str_radix(seed, 16)?)),
        None if random.start.is_some() || random.call.is_some() => Ok(Some(0)),
        None => Ok(None),
    }
}

fn nanoseconds(now: &str) -> Result<u64> {
    let time = now.parse::<Timestamp>();
    let time = time.context("is no time as RFC 3339 writes it")?;
    let nanos = u64::try_from(time.as_nanosecond());
    nanos.context("is not between 1970 and 2554")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(request: &str) -> Result<Option<Told>> {
        told(&serde_json::from_str(request).unwrap())
    }

    #[test]
    fn a_case_without_a_record_is_told_nothing() {
        assert_eq!(parse(r#"{"attempt":1}"#).unwrap(), None);
    }

    #[test]
    fn all_draws_are_read() {
        let told = parse(
            r#"{"now":"2026-01-31T12:00:00.000000001Z","random":{"seed":"ff","start":"01ab","call":"02",
                "wall":{"start":[5],"call":[1769860800000000001,7]},"monotonic":{"call":[9]}}}"#,
        );
        let told = told.unwrap().unwrap();
        assert_eq!(
            (told.now, told.seed),
            (1_769_860_800_000_000_001, Some(255))
        );
        assert_eq!(
            (told.start.wall, told.start.random),
            (vec![5], vec![1, 0xab])
        );
        assert_eq!(told.call.wall, [told.now, 7]);
        assert_eq!((told.call.monotonic, told.call.random), (vec![9], vec![2]));
    }

    #[test]
    fn a_time_alone_is_enough_and_another_time_is_the_first_reading() {
        let told = parse(r#"{"now":"1970-01-01T00:00:01Z"}"#).unwrap().unwrap();
        assert_eq!((told.now, told.seed), (1_000_000_000, None));
        let other = parse(r#"{"now":"1970-01-01T00:00:01Z","random":{"wall":{"call":[5,6]}}}"#);
        assert_eq!(other.unwrap().unwrap().call.wall, [1_000_000_000, 6]);
        let without = parse(r#"{"random":{"call":"01","wall":{"call":[5]}}}"#);
        let without = without.unwrap().unwrap();
        assert_eq!((without.now, without.seed), (5, Some(0)));
    }

    #[test]
    fn a_mistake_is_named_by_its_field() {
        for (request, says) in [
            (r#"{"now":"soon"}"#, "now: \"soon\": is no time"),
            (r#"{"now":"1969-01-01T00:00:00Z"}"#, "now: \"1969"),
            (r#"{"random":{"start":"1"}}"#, "random.start: Odd number"),
            (r#"{"random":{"call":"xy"}}"#, "random.call: Invalid"),
            (r#"{"random":{"seed":"?"}}"#, "random.seed: invalid digit"),
        ] {
            let error = format!("{:#}", parse(request).unwrap_err());
            assert!(error.starts_with(says), "{error}");
        }
    }
}
