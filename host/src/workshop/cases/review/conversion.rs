//! Asks a conversion, and asks it to convert its result back.

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use vmhost_runtime::review::question::Question;
use vmhost_runtime::review::verdict;

use super::super::compare::difference_of_values;
use super::super::form::{Expectation, settle};
use super::super::request::BatchFile;
use super::super::run::Ran;
use super::ask::{Asking, failed};

/// The uid of the reviews.
const UID: &str = "00000000-0000-0000-0000-000000000001";

/// What an API server does not let a conversion change.
const KEPT: [&str; 4] = [
    "/kind",
    "/metadata/name",
    "/metadata/namespace",
    "/metadata/uid",
];

/// Asks the conversion, and again for the way back.
pub(super) async fn run(asking: &Asking<'_>, batch: &BatchFile) -> Ran {
    asking.lines.take();
    let converted = convert(asking, &batch.desired, &batch.objects).await;
    let logs = Some(asking.lines.take());
    let (mut actual, problem) = match converted {
        Err(error) => (failed(error), None),
        Ok(objects) => {
            let problem = match refused(batch, &objects) {
                None => back(asking, batch, &objects).await,
                refused => refused,
            };
            (answered(objects), problem)
        }
    };
    actual.logs = logs;
    asking.ran(actual, problem)
}

fn answered(mut objects: Vec<Value>) -> Expectation {
    objects.iter_mut().for_each(settle);
    Expectation {
        objects: Some(objects),
        ..Expectation::default()
    }
}

async fn convert(
    asking: &Asking<'_>,
    desired: &str,
    objects: &[Value],
) -> Result<Vec<Value>, String> {
    let texts: Result<Vec<Box<RawValue>>, _> = objects.iter().map(to_raw_value).collect();
    let texts = texts.map_err(|error| error.to_string())?;
    let question = Question::conversion(&asking.name, UID, desired, &texts);
    let outcome = asking.call(&question).await;
    let outcome = outcome.map_err(|error| error.to_string())?;
    let converted = verdict::conversion(outcome).map_err(|error| error.to_string())?;
    let objects: Result<Vec<Value>, _> = converted
        .iter()
        .map(|object| serde_json::from_str(object.get()))
        .collect();
    objects.map_err(|error| error.to_string())
}

/// Returns what an API server would refuse of a conversion.
fn refused(batch: &BatchFile, objects: &[Value]) -> Option<String> {
    let (given, made) = (batch.objects.len(), objects.len());
    if given != made {
        return Some(format!("it converts {given} objects to {made}"));
    }
    for (at, (before, after)) in batch.objects.iter().zip(objects).enumerate() {
        let version = api_version(after);
        if version != batch.desired {
            let desired = &batch.desired;
            return Some(format!(
                "objects[{at}]: its apiVersion is {version:?}, and {desired:?} is wanted"
            ));
        }
        let changed = KEPT
            .iter()
            .find(|field| before.pointer(field) != after.pointer(field));
        if let Some(field) = changed {
            let field = field.trim_start_matches('/').replace('/', ".");
            return Some(format!(
                "objects[{at}]: a conversion must not change {field}"
            ));
        }
    }
    None
}

/// Converts the objects to the versions that they had. Returns what gets lost on the way.
async fn back(asking: &Asking<'_>, batch: &BatchFile, objects: &[Value]) -> Option<String> {
    let mut versions: Vec<&str> = batch.objects.iter().map(api_version).collect();
    versions.sort_unstable();
    versions.dedup();
    for version in versions {
        if version == batch.desired {
            continue;
        }
        let pairs = batch.objects.iter().zip(objects).enumerate();
        let (before, after): (Vec<(usize, &Value)>, Vec<Value>) = pairs
            .filter(|(_, (before, _))| api_version(before) == version)
            .map(|(at, (before, after))| ((at, before), after.clone()))
            .unzip();
        let returned = match convert(asking, version, &after).await {
            Ok(returned) => returned,
            Err(error) => return Some(format!("the way back to {version} fails: {error}")),
        };
        if returned.len() != before.len() {
            let (given, made) = (before.len(), returned.len());
            return Some(format!("the way back converts {given} objects to {made}"));
        }
        for ((at, before), mut returned) in before.into_iter().zip(returned) {
            let mut before = before.clone();
            settle(&mut before);
            settle(&mut returned);
            if let Some(lost) = difference_of_values(("before", &before), ("after", &returned)) {
                let desired = &batch.desired;
                return Some(format!(
                    "objects[{at}] does not survive the way to {desired} and back:\n{lost}"
                ));
            }
        }
    }
    None
}

fn api_version(object: &Value) -> &str {
    object["apiVersion"].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_an_api_server_refuses_is_told() {
        let object = |version: &str, name: &str| {
            let metadata = json!({"name": name, "uid": "u", "labels": {"of": version}});
            json!({"apiVersion": format!("g.io/{version}"), "kind": "K", "metadata": metadata})
        };
        let batch = BatchFile {
            desired: "g.io/v2".into(),
            objects: vec![object("v1", "a"), object("v1", "b")],
        };
        let (a, b) = (object("v2", "a"), object("v2", "b"));
        assert_eq!(refused(&batch, &[a.clone(), b.clone()]), None);
        for (objects, says) in [
            (vec![a.clone()], "it converts 2 objects to 1"),
            (
                vec![a.clone(), object("v1", "b")],
                "objects[1]: its apiVersion is \"g.io/v1\"",
            ),
            (
                vec![b, a],
                "objects[0]: a conversion must not change metadata.name",
            ),
        ] {
            let told = refused(&batch, &objects).unwrap();
            assert!(told.starts_with(says), "{told}");
        }
    }
}
