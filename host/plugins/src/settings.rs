//! The settings of a plugin: put together, compared with the schema in its description, and turned
//! into the texts that it reads. No error shows a value. It must not know what a setting is for.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value};
use vmhost_cluster::Informers;
use vmhost_core::RESERVED_SETTINGS;
use vmhost_engine::Settings;
use vmhost_schema::Schema;

use crate::object::Spec;
use crate::watched::{Kind, Watched};

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

/// Compares settings with a plugin's schema, and adds its defaults. Each fault is named by its
/// path.
pub(crate) fn check(
    schema: Option<&Value>,
    settings: Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    let Some(schema) = schema else {
        return Ok(settings);
    };
    let schema = Schema::parse(schema)
        .map_err(|error| format!("the component's settingsSchema makes no sense: {error}"))?;
    let mut value = Value::Object(settings);
    schema.apply_defaults(&mut value);
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
