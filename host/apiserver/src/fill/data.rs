//! What is wrong with the data of ConfigMaps and Secrets.
//!
//! Follows k8s.io/kubernetes `pkg/apis/core/validation`. Must not know what the data is for.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::meta;
use crate::status::{Cause, INVALID, REQUIRED, cause};

/// The most bytes of all values together.
const MOST: usize = 1 << 20;
/// How many keys are told: a body has room for a hundred thousand.
const TOLD: usize = 1000;
const KEY_RULE: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
/// The annotation that names the account of a token.
const ACCOUNT: &str = "kubernetes.io/service-account.name";

/// Returns what is wrong with a ConfigMap.
pub(super) fn config_map(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let (texts, bytes) = (map(object, "data"), map(object, "binaryData"));
    for key in texts.into_iter().flat_map(Map::keys) {
        if causes.len() > TOLD {
            break;
        }
        causes.extend(wrong_key("data", key));
        if bytes.is_some_and(|bytes| bytes.contains_key(key)) {
            causes.push(invalid(
                "data",
                key,
                "duplicate of key present in binaryData",
            ));
        }
    }
    let keys = bytes.into_iter().flat_map(Map::keys);
    let wrong = keys.filter_map(|key| wrong_key("binaryData", key));
    causes.extend(wrong.take(TOLD));
    let texts = values(texts).map(str::len).sum::<usize>();
    if texts + values(bytes).map(decoded).sum::<usize>() > MOST {
        // The whole object is at fault.
        causes.push(too_long("[]"));
    }
    causes
}

/// Returns what is wrong with a Secret.
pub(super) fn secret(object: &Value) -> Vec<Cause> {
    let data = map(object, "data");
    let keys = data.into_iter().flat_map(Map::keys);
    let wrong = keys.filter_map(|key| wrong_key("data", key));
    let mut causes: Vec<Cause> = wrong.take(TOLD).collect();
    if values(data).map(decoded).sum::<usize>() > MOST {
        causes.push(too_long("data"));
    }
    let value = |key: &str| data.and_then(|data| data.get(key)?.as_str());
    let missing = |key: &&str| value(key).is_none();
    let needed = |key: &str| required(format!("data[{key}]"));
    match object["type"].as_str().unwrap_or_default() {
        "kubernetes.io/service-account-token" => {
            let named = meta::get(object, "annotations").and_then(|all| all.get(ACCOUNT));
            if named.is_none_or(|name| name == "") {
                causes.push(required(format!("metadata.annotations[{ACCOUNT}]")));
            }
        }
        "kubernetes.io/dockercfg" => causes.extend(docker(value, ".dockercfg")),
        "kubernetes.io/dockerconfigjson" => causes.extend(docker(value, ".dockerconfigjson")),
        "kubernetes.io/basic-auth" => {
            let parts = ["username", "password"];
            if parts.iter().all(missing) {
                causes.extend(parts.map(needed));
            }
        }
        "kubernetes.io/ssh-auth" if value("ssh-privatekey").is_none_or(str::is_empty) => {
            causes.push(needed("ssh-privatekey"));
        }
        "kubernetes.io/tls" => {
            let parts = ["tls.crt", "tls.key"].into_iter();
            causes.extend(parts.filter(missing).map(needed));
        }
        _ => {}
    }
    causes
}

/// Checks the credentials of registries: an object in JSON.
fn docker<'a>(value: impl Fn(&str) -> Option<&'a str>, key: &str) -> Option<Cause> {
    let field = format!("data[{key}]");
    let Some(text) = value(key) else {
        return Some(required(field));
    };
    let bytes = STANDARD.decode(text).unwrap_or_default();
    // Go takes a null for an empty object.
    match serde_json::from_slice::<Option<Map<String, Value>>>(&bytes) {
        Ok(_) => None,
        Err(error) => {
            // In fewer words than Go's.
            let why = format!(r#"Invalid value: "<secret contents redacted>": {error}"#);
            Some(cause(INVALID, field, why))
        }
    }
}

fn map<'a>(object: &'a Value, field: &str) -> Option<&'a Map<String, Value>> {
    object.get(field)?.as_object()
}

/// What is no text is refused by the schema.
fn values(map: Option<&Map<String, Value>>) -> impl Iterator<Item = &str> {
    map.into_iter()
        .flat_map(Map::values)
        .filter_map(Value::as_str)
}

/// Returns how many bytes a text in base64 stands for.
fn decoded(text: &str) -> usize {
    let digits = text.trim_end_matches('=').len();
    digits.saturating_mul(3) / 4
}

fn wrong_key(field: &str, key: &str) -> Option<Cause> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let why = match key {
        long if long.len() > 253 => "must be no more than 253 characters",
        odd if odd.is_empty() || !odd.chars().all(allowed) => KEY_RULE,
        "." => "must not be '.'",
        ".." => "must not be '..'",
        up if up.starts_with("..") => "must not start with '..'",
        _ => return None,
    };
    Some(invalid(field, key, why))
}

fn invalid(field: &str, key: &str, why: &str) -> Cause {
    let field = format!("{field}[{key}]");
    cause(INVALID, field, format!("Invalid value: {key:?}: {why}"))
}

fn required(field: String) -> Cause {
    cause(REQUIRED, field, "Required value")
}

fn too_long(field: &str) -> Cause {
    let why = format!("Too long: may not be more than {MOST} bytes");
    cause("FieldValueTooLong", field, why)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(causes: Vec<Cause>) -> Vec<String> {
        causes.into_iter().map(|cause| cause.field).collect()
    }

    #[test]
    fn config_maps_have_keys_and_a_size() {
        let map = json!({
            "data": { "a b": "", "..x": "", "a": "", "good.key_1-": "" }, "binaryData": { "a": "", "": "" },
        });
        let expected = ["data[..x]", "data[a]", "data[a b]", "binaryData[]"];
        assert_eq!(fields(config_map(&map)), expected);
        let half = "x".repeat(MOST / 2);
        let bytes = STANDARD.encode(&half);
        let fits = json!({ "data": { "a": half }, "binaryData": { "b": bytes } });
        assert!(config_map(&fits).is_empty());
        let more = json!({ "data": { "a": half, "c": "x" }, "binaryData": { "b": bytes } });
        assert_eq!(fields(config_map(&more)), ["[]"]);
        assert!(config_map(&json!({ "data": { "a": 1 }, "binaryData": "x" })).is_empty());
    }

    #[test]
    fn secrets_have_what_their_type_needs() {
        let told = |kind: &str, data: Value| {
            let object = json!({ "metadata": {}, "type": kind, "data": data });
            fields(secret(&object))
        };
        let of = |name: &str| format!("kubernetes.io/{name}");
        let account = format!("metadata.annotations[{ACCOUNT}]");
        assert_eq!(told(&of("service-account-token"), json!({})), [account]);
        let parts = ["data[tls.crt]", "data[tls.key]"];
        assert_eq!(told(&of("tls"), Value::Null), parts);
        assert_eq!(
            told(&of("tls"), json!({ "tls.crt": "", "tls.key": "" })),
            [""; 0]
        );
        assert_eq!(
            told(&of("ssh-auth"), json!({ "ssh-privatekey": "" })),
            ["data[ssh-privatekey]"]
        );
        assert_eq!(told(&of("basic-auth"), json!({ "username": "" })), [""; 0]);
        let config = of("dockerconfigjson");
        for wrong in [json!({}), json!({ ".dockerconfigjson": "eA==" })] {
            assert_eq!(told(&config, wrong), ["data[.dockerconfigjson]"]);
        }
        for right in ["e30=", "bnVsbA=="] {
            let data = json!({ ".dockerconfigjson": right });
            assert_eq!(told(&config, data), [""; 0]);
        }
        assert_eq!(told("Opaque", json!({ "a/b": "" })), ["data[a/b]"]);
        let large = STANDARD.encode(vec![0; MOST + 1]);
        assert_eq!(told("mine", json!({ "a": large })), ["data"]);
    }
}
