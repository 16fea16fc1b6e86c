//! LimitRanges: what containers get that ask for nothing.

use serde_json::{Map, Value};

/// Completes the limits for containers from each other.
pub(super) fn fill(object: &mut Value) {
    let limits = object.pointer_mut("/spec/limits");
    let limits = limits.and_then(Value::as_array_mut);
    let containers = limits.into_iter().flatten();
    for limit in containers.filter(|limit| limit["type"] == "Container") {
        let part = |name: &str| -> Map<String, Value> {
            let part = limit.get(name).and_then(Value::as_object);
            part.cloned().unwrap_or_default()
        };
        let mut default = part("max");
        default.extend(part("default"));
        let mut request = part("min");
        request.extend(default.clone());
        request.extend(part("defaultRequest"));
        for (name, amounts) in [("default", default), ("defaultRequest", request)] {
            if !amounts.is_empty() {
                limit[name] = Value::Object(amounts);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_follow_defaults_and_minima() {
        let mut object = json!({ "spec": { "limits": [
            { "type": "Container", "max": { "cpu": "2" }, "min": { "cpu": "1", "memory": "1Gi" } },
        ] } });
        fill(&mut object);
        let limit = &object["spec"]["limits"][0];
        assert_eq!(limit["default"], json!({ "cpu": "2" }));
        assert_eq!(
            limit["defaultRequest"],
            json!({ "cpu": "2", "memory": "1Gi" })
        );
    }
}
