//! The scale subresource: one number of an object, as `autoscaling/v1` shows it.
//!
//! Owns the form of `Scale`. Its writes go through the object's own pipeline.

use serde_json::{Value, json};

use crate::kinds::{Scale, Target};
use crate::meta;
use crate::patch::{self, Patch};
use crate::state::Inner;
use crate::status::{ApiError, INVALID, cause};
use crate::write::{self, Call, Done};

fn paths(target: &Target) -> Result<&Scale, ApiError> {
    target
        .version()
        .scale
        .as_ref()
        .ok_or_else(ApiError::no_such_path)
}

/// An object as a `Scale`.
pub(crate) fn show(target: &Target, object: &Value) -> Result<Value, ApiError> {
    let paths = paths(target)?;
    let mut metadata = json!({});
    for field in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ] {
        if let Some(value) = meta::get(object, field) {
            metadata[field] = value.clone();
        }
    }
    let number =
        |path: &crate::jsonpath::JsonPath| path.first(object).and_then(Value::as_i64).unwrap_or(0);
    let mut status = json!({ "replicas": number(&paths.status) });
    let selector = paths.selector.as_ref().and_then(|p| p.first(object));
    if let Some(text) = selector.and_then(selector_text) {
        status["selector"] = json!(text);
    }
    // A real server leaves out a zero here, and not in the status.
    let spec = match number(&paths.spec) {
        0 => json!({}),
        replicas => json!({ "replicas": replicas }),
    };
    Ok(json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }))
}

/// A selector as text: one that is text already, a map of labels, or a `LabelSelector`. `None` if it is no selector.
pub(crate) fn selector_text(selector: &Value) -> Option<String> {
    if let Value::String(text) = selector {
        return Some(text.clone());
    }
    let map = selector.as_object()?;
    let structured = ["matchLabels", "matchExpressions"]
        .iter()
        .any(|field| map.contains_key(*field));
    let labels = if structured {
        selector.get("matchLabels").and_then(Value::as_object)
    } else {
        Some(map)
    };
    let labels = labels.into_iter().flatten();
    let mut rules: Vec<(String, String)> = labels
        .map(|(key, value)| {
            let value = value.as_str().unwrap_or_default();
            (key.clone(), format!("{key}={value}"))
        })
        .collect();
    let expressions = selector.get("matchExpressions").filter(|_| structured);
    for expression in expressions.and_then(Value::as_array).into_iter().flatten() {
        let key = expression["key"].as_str().unwrap_or_default();
        let values = expression["values"].as_array().into_iter().flatten();
        let mut values: Vec<&str> = values.filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let text = match expression["operator"].as_str()? {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return None,
        };
        rules.push((key.to_owned(), text));
    }
    rules.sort_by(|a, b| a.0.cmp(&b.0));
    let texts: Vec<String> = rules.into_iter().map(|(_, text)| text).collect();
    Some(texts.join(","))
}

/// PUT of a scale, and PATCH of any kind but an apply.
pub(crate) fn write(
    inner: &mut Inner,
    call: &Call<'_>,
    make: impl FnOnce(&Value) -> Result<Value, ApiError>,
) -> Result<Done, ApiError> {
    let paths = paths(call.target)?;
    let live = call.live(inner)?.clone();
    let shown = call.target.view(&live);
    let scale = make(&show(call.target, &shown)?)?;
    check_type(&scale)?;
    let (replicas, count) = replicas(call, &scale)?;
    let mut new = Value::clone(&shown);
    for field in ["resourceVersion", "uid"] {
        meta::set(&mut new, field, meta::get(&scale, field).cloned());
    }
    if paths.spec.first(&shown).and_then(Value::as_i64) != Some(count)
        && !paths.spec.set(&mut new, replicas)
    {
        return Err(ApiError::internal("the scale path leads nowhere"));
    }
    let done = write::replace(inner, call, &live, new, false)?;
    let object = show(call.target, &done.object)?.into();
    Ok(Done { object, ..done })
}

/// An apply of a scale: an apply of the object that states this one number, noted under the subresource.
pub(crate) fn apply(inner: &mut Inner, call: &Call<'_>, scale: &Value) -> Result<Done, ApiError> {
    let target = call.target;
    let paths = paths(target)?;
    check_type(scale)?;
    let mut applied = json!({
        "apiVersion": target.api_version(),
        "kind": target.kind.kind,
        "metadata": scale.get("metadata").cloned().unwrap_or_else(|| json!({})),
    });
    let stated = scale.pointer("/spec/replicas").is_some();
    let (replicas, _) = replicas(call, scale)?;
    if stated && !paths.spec.set(&mut applied, replicas) {
        return Err(ApiError::internal("the scale path leads nowhere"));
    }
    let done = patch::patch(inner, call, &Patch::Apply(applied))?;
    let object = show(target, &done.object)?.into();
    Ok(Done { object, ..done })
}

fn check_type(scale: &Value) -> Result<(), ApiError> {
    for (field, expected) in [("apiVersion", "autoscaling/v1"), ("kind", "Scale")] {
        match scale.get(field).and_then(Value::as_str) {
            None | Some("") => {}
            Some(got) if got == expected => {}
            Some(got) => {
                return Err(ApiError::bad_request(format!(
                    "the {field} of a scale is {expected}, not {got}"
                )));
            }
        }
    }
    Ok(())
}

/// The number that a scale states, as it stands there and as a number.
fn replicas(call: &Call<'_>, scale: &Value) -> Result<(Value, i64), ApiError> {
    let replicas = scale
        .pointer("/spec/replicas")
        .cloned()
        .unwrap_or_else(|| json!(0));
    let Some(count) = replicas.as_i64() else {
        return Err(ApiError::bad_request(
            "json: cannot unmarshal into Go struct field ScaleSpec.spec.replicas of type int32",
        ));
    };
    if count < 0 {
        let why = format!("Invalid value: {count}: should be a non-negative integer");
        return Err(ApiError::invalid(
            call.target,
            call.name,
            &[cause(INVALID, "spec.replicas", why)],
        ));
    }
    Ok((replicas, count))
}

/// A patch of the shown scale.
pub(crate) fn patched(patch: &Patch) -> impl FnOnce(&Value) -> Result<Value, ApiError> + '_ {
    |scale| patch.onto(scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_written_as_kubectl_reads_them() {
        let text = |selector: Value| selector_text(&selector);
        assert_eq!(text(json!("a=b")).as_deref(), Some("a=b"));
        assert_eq!(
            text(json!({ "b": "2", "a": "1" })).as_deref(),
            Some("a=1,b=2")
        );
        let all = json!({ "matchLabels": { "m": "1" }, "matchExpressions": [
            { "key": "z", "operator": "DoesNotExist" }, { "key": "k", "operator": "In", "values": ["y", "x"] },
            { "key": "n", "operator": "NotIn", "values": ["x"] }, { "key": "e", "operator": "Exists" },
        ] });
        let expected = "e,k in (x,y),m=1,n notin (x),!z";
        assert_eq!(text(all).as_deref(), Some(expected));
        assert_eq!(text(json!(7)), None);
    }
}
