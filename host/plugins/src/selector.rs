//! Label selectors as Kubernetes objects write them. Plain data: it must not know what is selected.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A label selector, as in all Kubernetes objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Selector {
    match_labels: BTreeMap<String, String>,
    match_expressions: Vec<Expression>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Expression {
    key: String,
    operator: String,
    values: Vec<String>,
}

impl Selector {
    /// The selector as kubectl writes it. Empty if it selects everything. What is no part of a
    /// label is refused, so that nothing can be read as something else.
    pub(crate) fn text(&self) -> Result<String, String> {
        let mut parts = Vec::new();
        for (key, value) in &self.match_labels {
            plain([key, value])?;
            parts.push(format!("{key}={value}"));
        }
        for Expression {
            key,
            operator,
            values,
        } in &self.match_expressions
        {
            plain(std::iter::once(key).chain(values))?;
            let listed = values.join(",");
            parts.push(match (operator.as_str(), values.is_empty()) {
                ("In", false) => format!("{key} in ({listed})"),
                ("NotIn", false) => format!("{key} notin ({listed})"),
                ("Exists", true) => key.clone(),
                ("DoesNotExist", true) => format!("!{key}"),
                _ => {
                    return Err(format!(
                        "the operator {operator:?} of {key} with {} values: In and NotIn have \
                         some, Exists and DoesNotExist none",
                        values.len()
                    ));
                }
            });
        }
        Ok(parts.join(","))
    }
}

/// Refuses what can be no part of a label.
fn plain<'a>(texts: impl IntoIterator<Item = &'a String>) -> Result<(), String> {
    let sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    let mut texts = texts.into_iter();
    match texts.find(|text| !text.chars().all(sound)) {
        None => Ok(()),
        Some(text) => Err(format!("{text:?} is no part of a label")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_written_as_by_kubectl() {
        let selector: Selector = serde_json::from_str(
            r#"{"matchLabels":{"a":"b"},"matchExpressions":[
                {"key":"c","operator":"In","values":["d","e"]},
                {"key":"f","operator":"DoesNotExist"}]}"#,
        )
        .unwrap();
        assert_eq!(selector.text().unwrap(), "a=b,c in (d,e),!f");
        assert_eq!(Selector::default().text().unwrap(), "");
    }
}
