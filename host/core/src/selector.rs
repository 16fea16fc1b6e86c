//! Label selectors as kubectl writes them: `app=web,tier in (a,b),!legacy`. Grammar and meaning are
//! those of k8s.io/apimachinery/pkg/labels. This module must not know what is selected.

use std::collections::BTreeMap;

/// A parsed label selector; an empty selector matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    DoesNotExist,
}

impl LabelSelector {
    /// Parses a selector. The error names the text at fault.
    pub fn parse(text: &str) -> Result<Self, String> {
        split_outside_parentheses(text)?
            .into_iter()
            .map(Requirement::parse)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Returns whether these labels satisfy every requirement.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches_by(|key| labels.get(key).map(String::as_str))
    }

    /// As [`Self::matches`], for labels that are stored elsewhere: `label` returns the value of a
    /// key.
    pub fn matches_by<'l>(&self, label: impl Fn(&str) -> Option<&'l str>) -> bool {
        self.0.iter().all(|requirement| {
            let value = label(&requirement.key);
            let is_in = |values: &[String], value: &str| values.iter().any(|of| of == value);
            match &requirement.test {
                Test::In(values) => value.is_some_and(|value| is_in(values, value)),
                Test::NotIn(values) => value.is_none_or(|value| !is_in(values, value)),
                Test::Exists => value.is_some(),
                Test::DoesNotExist => value.is_none(),
            }
        })
    }
}

fn split_outside_parentheses(text: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_i32, 0);
    for (at, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        if !(0..=1).contains(&depth) {
            return Err(format!("unbalanced parentheses in {text:?}"));
        }
    }
    if depth != 0 {
        return Err(format!("unbalanced parentheses in {text:?}"));
    }
    parts.push(&text[start..]);
    if parts.len() == 1 && parts[0].trim().is_empty() {
        parts.clear();
    }
    Ok(parts)
}

impl Requirement {
    fn parse(part: &str) -> Result<Self, String> {
        let part = part.trim();
        let (key, test) = if let Some(key) = part.strip_prefix('!') {
            (key, Test::DoesNotExist)
        } else if let Some((key, value)) = part.split_once("!=") {
            (key, Test::NotIn(vec![value.trim().to_owned()]))
        } else if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
            (key, Test::In(vec![value.trim().to_owned()]))
        } else if let Some((head, values)) =
            part.strip_suffix(')').and_then(|part| part.split_once('('))
        {
            let values = values
                .split(',')
                .map(|value| value.trim().to_owned())
                .collect();
            let mut words = head.split_whitespace();
            match (words.next(), words.next(), words.next()) {
                (Some(key), Some("in"), None) => (key, Test::In(values)),
                (Some(key), Some("notin"), None) => (key, Test::NotIn(values)),
                _ => {
                    return Err(format!(
                        "{part:?} is neither `key in (..)` nor `key notin (..)`"
                    ));
                }
            }
        } else {
            (part, Test::Exists)
        };
        let key = key.trim();
        if !is_label_key(key) {
            return Err(format!("{key:?} is not a label key (in {part:?})"));
        }
        if let Test::In(values) | Test::NotIn(values) = &test
            && let Some(bad) = values.iter().find(|value| !is_label_value(value))
        {
            return Err(format!("{bad:?} is not a label value (in {part:?})"));
        }
        Ok(Self {
            key: key.to_owned(),
            test,
        })
    }
}

/// Returns whether this is a valid label key.
pub(crate) fn is_label_key(key: &str) -> bool {
    let (prefix, name) = key
        .split_once('/')
        .map_or((None, key), |(prefix, name)| (Some(prefix), name));
    !name.is_empty()
        && is_label_value(name)
        && prefix.is_none_or(|prefix| !prefix.is_empty() && is_label_value(prefix))
}

/// Returns whether this is a valid label value.
pub(crate) fn is_label_value(value: &str) -> bool {
    let ends = |c: char| c.is_ascii_alphanumeric();
    value.len() <= 253
        && value
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        && (value.is_empty() || (value.starts_with(ends) && value.ends_with(ends)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> BTreeMap<String, String> {
        text.split(',')
            .filter_map(|pair| pair.split_once('='))
            .map(|(k, v)| (k.into(), v.into()))
            .collect()
    }

    #[test]
    fn selectors_match_as_kubectl_says() {
        for (selector, of, expect) in [
            ("", "a=1", true),
            ("a=1", "a=1", true),
            ("a==1,b", "a=1", false),
            ("a==1,b", "a=1,b=", true),
            ("a!=1", "", true),
            ("a!=1", "a=1", false),
            ("a in (1, 2),!c", "a=2", true),
            ("a in (1,2),!c", "a=2,c=", false),
            ("a notin (1,2)", "a=3", true),
            ("a notin (1,2)", "a=1", false),
            ("x.io/app = web", "x.io/app=web", true),
        ] {
            assert_eq!(
                LabelSelector::parse(selector).unwrap().matches(&labels(of)),
                expect,
                "{selector} on {of}"
            );
        }
    }

    #[test]
    fn nonsense_is_named() {
        for bad in [
            "a in 1", "a in (1", "=1", "a=-b", "a,,b", "a b", "/x=1", "a~=1",
        ] {
            assert!(LabelSelector::parse(bad).is_err(), "{bad}");
        }
    }
}
