//! The settings of a plugin: put together, compared with the schema in its description, and turned
//! into the texts that it reads. No error shows a value. It must not know what a setting is for.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::task::spawn_blocking;
use vmhost_cluster::Informers;
use vmhost_core::{Description, RESERVED_SETTINGS};
use vmhost_engine::Settings;
use vmhost_schema::Schema;

use crate::object::Spec;
use crate::watched::{Kind, Watched};

/// How many bytes of defaults a schema may fill in. Its author is not trusted, and defaults within
/// defaults multiply.
const DEFAULTS: usize = 1 << 20;

/// How often a value may be compared with a part of the schema, at most: a second's work.
const COMPARED: usize = 10_000_000;

/// Puts the settings together: those of Secrets and ConfigMaps in their order, then the object's.
pub(crate) async fn gather(
    spec: &Spec,
    informers: &Informers,
    watched: &mut Watched,
) -> Result<Map<String, Value>, String> {
    let mut all = Map::new();
    for from in &spec.settings_from {
        if let Some(of) = &from.secret_ref {
            let secret = watched.get(informers, Kind::Secret, &of.name).await?;
            all.extend(decoded(&secret, &of.name)?);
        }
        if let Some(of) = &from.config_map_ref {
            let map = watched.get(informers, Kind::ConfigMap, &of.name).await?;
            let data = map.get("data").and_then(Value::as_object);
            all.extend(data.cloned().unwrap_or_default());
        }
    }
    all.extend(spec.settings.clone());
    let mut names = all.keys();
    match names.find(|name| name.starts_with(RESERVED_SETTINGS)) {
        None => Ok(all),
        Some(name) => Err(format!(
            "settings.{name}: names that begin with {RESERVED_SETTINGS} are vmhost's own"
        )),
    }
}

/// The values of a Secret as texts.
fn decoded(secret: &Value, name: &str) -> Result<Map<String, Value>, String> {
    let data = secret.get("data").and_then(Value::as_object);
    let mut texts = Map::new();
    for (key, value) in data.into_iter().flatten() {
        let bytes = value.as_str().map(|text| BASE64_STANDARD.decode(text));
        let text = match bytes {
            Some(Ok(bytes)) => String::from_utf8(bytes).ok(),
            _ => None,
        };
        let text = text.ok_or_else(|| format!("key {key} of Secret {name} is no text"))?;
        texts.insert(key.clone(), text.into());
    }
    Ok(texts)
}

/// Compares settings with a plugin's schema, and adds its defaults, away from the thread of watches
/// and writes: their authors decide how long it takes. Each fault is named by its path.
pub(crate) async fn checked(
    description: &Arc<Description>,
    settings: Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    if description.settings_schema.is_none() {
        return Ok(settings);
    }
    let description = description.clone();
    let checking = spawn_blocking(move || check(description.settings_schema.as_ref(), settings));
    let cut_off = |error| Err(format!("the settings could not be compared: {error}"));
    checking.await.unwrap_or_else(cut_off)
}

fn check(
    schema: Option<&Value>,
    settings: Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    let Some(schema) = schema else {
        return Ok(settings);
    };
    let parts = count(schema);
    let schema = Schema::parse(schema)
        .map_err(|error| format!("the component's settingsSchema makes no sense: {error}"))?;
    let mut value = Value::Object(settings);
    if !schema.apply_defaults_within(&mut value, DEFAULTS) {
        return Err(format!(
            "the defaults of the component's settingsSchema take more than {DEFAULTS} bytes"
        ));
    }
    let values = count(&value);
    if parts.saturating_mul(values) > COMPARED {
        return Err(format!(
            "{values} values are too many for the {parts} parts of the component's settingsSchema"
        ));
    }
    let mut pruned = value.clone();
    let unknown = schema.prune(&mut pruned);
    let unknown = unknown
        .iter()
        .map(|path| format!("settings.{path}: unknown"));
    let faults = schema.validate(&value);
    let faults = faults
        .iter()
        .map(|fault| format!("settings.{}: {}", fault.field, fault.reason.name()));
    let all: Vec<String> = unknown.chain(faults).collect();
    match (all.is_empty(), value) {
        (true, Value::Object(settings)) => Ok(settings),
        _ => Err(all.join("; ")),
    }
}

/// The number of values within a value, with itself.
fn count(value: &Value) -> usize {
    let below: usize = match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(map) => map.values().map(count).sum(),
        _ => 0,
    };
    1 + below
}

/// Turns settings into texts: what is no text becomes JSON.
pub(crate) fn texts(settings: Map<String, Value>) -> Settings {
    let text = |value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let texts = settings.into_iter();
    texts.map(|(name, value)| (name, text(value))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn a_wrong_setting_is_named_by_its_path_and_not_shown() {
        let schema = json!({ "type": "object", "required": ["size"], "properties": {
            "size": { "type": "integer", "maximum": 5 },
            "color": { "type": "string", "default": "red" },
        }});
        let good = check(Some(&schema), map(json!({ "size": 3 }))).unwrap();
        assert_eq!(Value::Object(good), json!({ "size": 3, "color": "red" }));
        for (settings, path) in [
            (json!({ "size": 77 }), "settings.size"),
            (json!({ "size": "hunter2" }), "settings.size"),
            (json!({}), "settings.size"),
            (json!({ "size": 3, "wieght": 1 }), "settings.wieght"),
        ] {
            let why = check(Some(&schema), map(settings)).unwrap_err();
            assert!(why.contains(path) && !why.contains("hunter2"), "{why}");
        }
        let any = map(json!({ "anything": true }));
        assert_eq!(check(None, any.clone()), Ok(any));
    }

    #[test]
    fn a_schema_cannot_ask_for_all_memory_or_time() {
        let mut items = json!({ "type": "object" });
        for _ in 0..9 {
            items = json!({ "type": "object", "properties": {
                "more": { "type": "array", "items": items, "default": vec![json!({}); 10] },
            } });
        }
        let why = check(Some(&items), Map::new()).unwrap_err();
        assert!(why.contains("defaults"), "{why}");

        let some = |count: usize| vec![json!({ "minimum": 1 }); count];
        let schema = json!({ "type": "object", "properties": {
            "list": { "type": "array", "items": { "type": "integer", "anyOf": some(1000) } },
        } });
        let settings = |length: usize| map(json!({ "list": vec![2; length] }));
        assert!(check(Some(&schema), settings(1000)).is_ok());
        let why = check(Some(&schema), settings(10_000)).unwrap_err();
        assert!(why.contains("too many"), "{why}");
    }

    #[tokio::test]
    async fn a_description_without_a_schema_takes_all_settings() {
        let with = |more: Value| {
            let mut text = json!({ "apiVersion": "vmhost/v1", "name": "p", "controllers": [] });
            text.as_object_mut().unwrap().extend(map(more));
            Arc::new(serde_json::from_value::<Description>(text).unwrap())
        };
        let any = map(json!({ "anything": true }));
        let description = with(json!({}));
        assert_eq!(checked(&description, any.clone()).await, Ok(any.clone()));
        let schema = json!({ "type": "object", "properties": {} });
        let strict = with(json!({ "settingsSchema": schema }));
        let why = checked(&strict, any).await.unwrap_err();
        assert!(why.contains("settings.anything"), "{why}");
    }

    #[test]
    fn a_policy_reads_texts() {
        let texts = texts(map(json!({ "a": "x", "b": 3, "c": { "d": true } })));
        assert_eq!(texts["a"], "x");
        assert_eq!(texts["b"], "3");
        assert_eq!(texts["c"], r#"{"d":true}"#);
    }

    #[test]
    fn a_secret_is_decoded() {
        let secret = json!({ "data": { "token": "aHVudGVyMg==", "none": "*" } });
        let why = decoded(&secret, "s").unwrap_err();
        assert!(why.contains("key none of Secret s"), "{why}");
        let good = json!({ "data": { "token": "aHVudGVyMg==" } });
        assert_eq!(decoded(&good, "s").unwrap()["token"], "hunter2");
    }
}
