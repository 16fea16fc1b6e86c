//! ConversionReview, `apiextensions.k8s.io/v1`: its wire form, the batches, and the check of what
//! was converted.
//!
//! This module owns what the API server demands of a conversion: same order and count, kind, name,
//! namespace and uid. It must not know how objects are converted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{BadReview, Form, checked, request_of};

const FORM: Form = Form {
    group: "apiextensions.k8s.io",
    kind: "ConversionReview",
    versions_field: "conversionReviewVersions",
};

/// The most that a policy gets at once, in bytes. The API server sends all objects of a list in one
/// review; a guest must hold a batch and its answer.
const BATCH_BYTES: usize = 1 << 20;

/// What the API server takes from the converted object. All else of the metadata must stay.
const CONVERTED: [&str; 2] = ["labels", "annotations"];

/// A review that asks for objects in another version.
#[derive(Debug)]
pub(crate) struct Conversion {
    pub uid: String,
    /// `GROUP/VERSION`.
    pub desired: String,
    pub objects: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    #[serde(default)]
    uid: String,
    #[serde(rename = "desiredAPIVersion", default)]
    desired: String,
    #[serde(default)]
    objects: Option<Vec<Box<RawValue>>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    converted_objects: &'a [Box<RawValue>],
    result: Status<'a>,
}

#[derive(Serialize)]
struct Status<'a> {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

/// Objects that were converted: in the order and number of those before, in the desired version,
/// each with the metadata that a conversion must not change.
#[derive(Debug)]
pub struct Converted(Vec<Box<RawValue>>);

/// The members of an object, each as its text.
type Members<'a> = BTreeMap<String, &'a RawValue>;

/// Reads a review.
pub(crate) fn read(body: &[u8]) -> Result<Conversion, BadReview> {
    let request = request_of(body, &FORM)?;
    let wrong = |detail: String| BadReview::NotOne {
        kind: FORM.kind,
        detail,
    };
    let request: Request =
        serde_json::from_str(request.get()).map_err(|error| wrong(format!("request: {error}")))?;
    if request.desired.is_empty() {
        return Err(wrong("request.desiredAPIVersion is missing".to_owned()));
    }
    let objects = request.objects.unwrap_or_default();
    if objects.is_empty() {
        // The API server asks about none only by mistake, and no policy would be asked whether it
        // has such a conversion.
        return Err(wrong("request.objects is empty".to_owned()));
    }
    Ok(Conversion {
        uid: checked("uid", request.uid, &FORM)?,
        desired: request.desired,
        objects,
    })
}

/// Returns the body of a conversion that was carried out.
pub(crate) fn answer(uid: &str, objects: &[Box<RawValue>]) -> Result<Vec<u8>, serde_json::Error> {
    respond(uid, objects, None)
}

/// Returns the body that tells the API server why nothing was converted.
pub(crate) fn refusal(uid: &str, message: &str) -> Result<Vec<u8>, serde_json::Error> {
    respond(uid, &[], Some(message))
}

fn respond(
    uid: &str,
    converted_objects: &[Box<RawValue>],
    message: Option<&str>,
) -> Result<Vec<u8>, serde_json::Error> {
    let status = match message {
        None => "Success",
        Some(_) => "Failed",
    };
    serde_json::to_vec(&Review {
        api_version: "apiextensions.k8s.io/v1",
        kind: FORM.kind,
        response: Response {
            uid,
            converted_objects,
            result: Status { status, message },
        },
    })
}

/// Splits objects into batches of at most [`BATCH_BYTES`], in their order. A larger object is a
/// batch of its own.
pub(crate) fn batches(objects: Vec<Box<RawValue>>) -> Vec<Vec<Box<RawValue>>> {
    let mut batches = Vec::new();
    let mut batch = Vec::new();
    let mut bytes = 0_usize;
    for object in objects {
        let length = object.get().len();
        if !batch.is_empty() && bytes.saturating_add(length) > BATCH_BYTES {
            batches.push(std::mem::take(&mut batch));
            bytes = 0;
        }
        bytes = bytes.saturating_add(length);
        batch.push(object);
    }
    if !batch.is_empty() {
        batches.push(batch);
    }
    batches
}

impl Converted {
    /// Checks what became of these objects. The error says what is wrong, for the policy's author.
    pub fn check(
        objects: &[Box<RawValue>],
        converted: &[Box<RawValue>],
        desired: &str,
    ) -> Result<Self, String> {
        let (given, made) = (objects.len(), converted.len());
        if given != made {
            return Err(format!("{made} objects came back for {given}"));
        }
        let pairs = objects.iter().zip(converted);
        let restored = pairs.map(|(from, to)| restore(from, to, desired));
        restored.collect::<Result<_, _>>().map(Self)
    }

    /// Returns the objects.
    pub(crate) fn into_objects(self) -> Vec<Box<RawValue>> {
        self.0
    }
}

/// Checks what became of an object, and gives it the metadata that a conversion must not change.
/// The error says what is wrong, for the policy's author.
fn restore(from: &RawValue, to: &RawValue, desired: &str) -> Result<Box<RawValue>, String> {
    let unreadable =
        |which: &'static str| move |error: serde_json::Error| format!("{which} object: {error}");
    let before: Members<'_> =
        serde_json::from_str(from.get()).map_err(unreadable("the original"))?;
    let after: Members<'_> = serde_json::from_str(to.get()).map_err(unreadable("the converted"))?;
    let old = metadata(&before).map_err(unreadable("the original"))?;
    let mut new = metadata(&after).map_err(unreadable("the converted"))?;
    let name = text(&old, "name").unwrap_or_default();
    let version = text(&after, "apiVersion").unwrap_or_default();
    if version != desired {
        return Err(format!(
            "{name}: apiVersion is {version:?} and not {desired:?}"
        ));
    }
    if text(&after, "kind") != text(&before, "kind") {
        return Err(format!("{name}: the kind has changed"));
    }
    for field in ["name", "namespace", "uid"] {
        if text(&new, field).is_some_and(|value| Some(value) != text(&old, field)) {
            return Err(format!("{name}: metadata.{field} has changed"));
        }
    }
    new.retain(|field, _| CONVERTED.contains(&field.as_str()));
    for (field, value) in old {
        if !CONVERTED.contains(&field.as_str()) {
            new.insert(field, value);
        }
    }
    let new = serde_json::value::to_raw_value(&new).map_err(unreadable("the converted"))?;
    let mut whole = after;
    whole.insert("metadata".to_owned(), &new);
    serde_json::value::to_raw_value(&whole).map_err(unreadable("the converted"))
}

fn metadata<'a>(object: &Members<'a>) -> Result<Members<'a>, serde_json::Error> {
    match object.get("metadata") {
        Some(metadata) => serde_json::from_str(metadata.get()),
        None => Ok(Members::new()),
    }
}

fn text(members: &Members<'_>, field: &str) -> Option<String> {
    serde_json::from_str(members.get(field)?.get()).ok()
}

#[cfg(test)]
mod tests;
