//! A selector as text.
//!
//! Owns the three forms in which objects hold a selector. Must not know which object it is.

use serde_json::Value;

/// Returns the text of a selector that is a text, a map of labels, or a `LabelSelector`. `None` for
/// anything else.
pub(crate) fn text(selector: &Value) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_are_written_as_kubectl_reads_them() {
        let text = |selector: Value| super::text(&selector);
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
