//! Objects in other versions, if a webhook converts their kind.
//!
//! Owns the ConversionReview: what is asked, the check of the answer, and which metadata a webhook
//! cannot change. Follows k8s.io/apiextensions-apiserver
//! `pkg/apiserver/conversion/webhook_converter.go`. Must not know why an object is converted.

pub(crate) mod cache;
mod check;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::kinds::{Conversion, Target};
use crate::meta;
use crate::object::Object;
use crate::state::State;
use crate::status::ApiError;

/// How long a conversion may take.
const LIMIT: Duration = Duration::from_secs(30);
const QUERY: &str = "?timeout=30s";
/// The largest answer: all objects that a list may have.
const MOST: usize = 256 << 20;

/// Returns stored objects in the version of a request.
pub(crate) async fn shown(
    state: &State,
    to: &Target,
    stored: Vec<Object>,
) -> Result<Vec<Object>, ApiError> {
    if to.kind.conversion.is_none() {
        return Ok(stored.iter().map(|object| to.view(object)).collect());
    }
    convert(state, to, stored, true).await
}

/// Returns one stored object in the version of a request. Its webhook is asked anew: it may convert
/// in another way than for a list or a watch before.
pub(crate) async fn shown_one(
    state: &State,
    to: &Target,
    stored: Object,
) -> Result<Object, ApiError> {
    if !to.is_foreign(&stored) {
        return Ok(to.view(&stored));
    }
    state.converted().forget(to, &stored);
    let mut converted = convert(state, to, vec![stored], true).await?;
    let one = converted.pop();
    one.ok_or_else(|| ApiError::internal("a conversion gave no object"))
}

/// Converts an object of a kind that no webhook converts.
pub(crate) fn plainly(from: &Target, to: &Target, object: &Object) -> Object {
    to.view(&Arc::new(from.store(Value::clone(object))))
}

/// Returns objects of one kind in a version, in the same order. `stored`: they are as the store has
/// them.
pub(crate) async fn convert(
    state: &State,
    to: &Target,
    mut objects: Vec<Object>,
    stored: bool,
) -> Result<Vec<Object>, ApiError> {
    let Some(conversion) = &to.kind.conversion else {
        return Ok(objects.iter().map(|object| to.view(object)).collect());
    };
    let mut foreign = Vec::new();
    for (at, object) in objects.iter_mut().enumerate() {
        if !to.is_foreign(object) {
            continue;
        }
        let known = if stored {
            state.converted().get(to, object)
        } else {
            None
        };
        match known {
            Some(known) => *object = known,
            None => foreign.push((at, object.clone())),
        }
    }
    if foreign.is_empty() {
        return Ok(objects);
    }
    let originals: Vec<&Value> = foreign.iter().map(|(_, object)| &**object).collect();
    let converted = ask(state, conversion, to, &originals).await?;
    for ((at, original), made) in foreign.iter().zip(converted) {
        let made = Arc::new(made);
        if stored {
            state.converted().put(to, original, &made);
        }
        if let Some(object) = objects.get_mut(*at) {
            *object = made;
        }
    }
    Ok(objects)
}

/// Sends one review, and returns the checked and pruned objects.
async fn ask(
    state: &State,
    conversion: &Conversion,
    to: &Target,
    originals: &[&Value],
) -> Result<Vec<Value>, ApiError> {
    let desired = to.api_version();
    let of = originals.first().map(|object| check::kind_of(object));
    let of = of.unwrap_or_default();
    let refused =
        |why: String| ApiError::new(500, "", format!("conversion webhook for {of} {why}"));
    let failed = |why: String| refused(format!("failed: {why}"));
    let Some(version) = conversion.version else {
        return Err(ApiError::new(
            500,
            "",
            "no supported conversion review versions",
        ));
    };
    let uid = meta::new_uid();
    let review = json!({
        "kind": "ConversionReview",
        "apiVersion": format!("apiextensions.k8s.io/{version}"),
        "request": { "uid": uid, "desiredAPIVersion": desired, "objects": originals },
    });
    let body = review.to_string().into_bytes();
    let url = conversion.reach.shown(QUERY);
    let address = state.read(|inner| conversion.reach.address(&inner.store, QUERY));
    let address = address.map_err(|why| failed(format!("Post {url:?}: {why}")))?;
    let answer = state.outside().post(&address, body, (MOST, LIMIT)).await;
    let answer = answer.map_err(|why| failed(why.text(&url)))?;
    let objects = check::objects(&answer, version, &uid).map_err(failed)?;
    if objects.len() != originals.len() {
        let (got, expected) = (objects.len(), originals.len());
        return Err(refused(format!(
            "returned {got} objects, expected {expected}"
        )));
    }
    let mut converted = Vec::with_capacity(objects.len());
    for (at, (made, original)) in objects.into_iter().zip(originals).enumerate() {
        let place = match originals.len() {
            1 => "object".to_owned(),
            _ => format!("converted object at index {at}"),
        };
        let made = check::restored(made, original, &desired);
        let mut made = made.map_err(|why| refused(format!("returned invalid {place}: {why}")))?;
        if let Some(schema) = to.schema() {
            schema.prune(&mut made);
        }
        converted.push(made);
    }
    Ok(converted)
}
