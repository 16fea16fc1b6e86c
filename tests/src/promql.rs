//! A reader of PromQL, as far as dashboards and alerts are compared with metrics: which metrics an
//! expression names, with which labels. It computes nothing.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};

/// The functions and aggregations that our expressions use.
const FUNCTIONS: [&str; 7] = [
    "changes",
    "histogram_quantile",
    "increase",
    "max",
    "min",
    "rate",
    "sum",
];

/// What a list of labels follows.
const LISTS: [&str; 6] = [
    "by",
    "without",
    "on",
    "ignoring",
    "group_left",
    "group_right",
];

/// Words that are neither.
const OPERATORS: [&str; 5] = ["and", "or", "unless", "bool", "offset"];

/// The endings of counters, whose value alone says nothing.
const COUNTERS: [&str; 3] = ["_total", "_bucket", "_count"];

/// An expression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// The metrics that it names.
    pub selectors: Vec<Selector>,
    /// The labels that it groups by.
    pub grouped: Vec<String>,
}

/// A metric with its matchers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// The metric.
    pub metric: String,
    /// Label, operator and value of each matcher.
    pub matchers: Vec<(String, String, String)>,
    /// The function of its range, such as `rate`; empty for a value of the moment.
    pub of_range: String,
}

impl Selector {
    /// Returns whether the selector makes sense of a metric of this type: only counters have a
    /// rate, and only a rate says something about a counter, which begins anew with the process.
    pub fn fits_type(&self, of: &str) -> bool {
        let is_counted = matches!(self.of_range.as_str(), "rate" | "increase");
        match of {
            "counter" | "histogram" => is_counted,
            _ => !is_counted,
        }
    }

    /// Returns whether a series with these labels can be selected. A value with a variable of a
    /// dashboard selects all; of a regular expression only plain alternatives are compared.
    pub fn may_select(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matchers.iter().all(|(label, operator, value)| {
            let have = labels.get(label).map_or("", String::as_str);
            let plain = |text: &str| {
                text.chars()
                    .all(|c| c.is_alphanumeric() || "_-".contains(c))
            };
            match operator.as_str() {
                _ if value.contains('$') => true,
                "=" => have == value,
                "!=" => have != value,
                "=~" if value.split('|').all(plain) => value.split('|').any(|one| one == have),
                _ => true,
            }
        })
    }
}

/// Reads an expression.
pub fn read(text: &str) -> Result<Query> {
    let tokens = tokens(text)?;
    let mut query = Query::default();
    let (mut at, mut list) = (0, 0);
    let mut open: Vec<&str> = Vec::new();
    let token = |at: usize| tokens.get(at).map_or("", String::as_str);
    while at < tokens.len() {
        let (word, next) = (token(at), token(at + 1));
        match word {
            "(" => open.push(""),
            ")" => {
                open.pop().context("a bracket is closed and not opened")?;
            }
            _ if LISTS.contains(&word) => {
                ensure!(next == "(", "{word} without a list");
                list = query.grouped.len();
                at += 2;
                while token(at) != ")" {
                    ensure!(at < tokens.len(), "the list of {word} does not end");
                    if token(at) != "," {
                        query.grouped.push(token(at).to_owned());
                    }
                    at += 1;
                }
            }
            _ if OPERATORS.contains(&word) || !is_word(word) => {}
            _ if next == "(" || LISTS.contains(&next) => {
                ensure!(FUNCTIONS.contains(&word), "unknown function {word}");
                if next == "(" {
                    open.push(word);
                    at += 1;
                }
            }
            metric => {
                let mut selector = Selector {
                    metric: metric.to_owned(),
                    ..Selector::default()
                };
                if next == "{" {
                    at = matchers(&tokens, at + 2, &mut selector)?;
                }
                let has_range = token(at + 1) == "[";
                if has_range {
                    while token(at) != "]" {
                        ensure!(at < tokens.len(), "a range does not end");
                        at += 1;
                    }
                }
                let of = open.last().copied().unwrap_or_default();
                let wants_range = matches!(of, "rate" | "increase" | "changes");
                ensure!(wants_range == has_range, "{metric}: {of} and its range");
                let is_counter = COUNTERS.iter().any(|ending| metric.ends_with(ending));
                ensure!(!is_counter || wants_range, "{metric} is a counter");
                let is_bucket = metric.ends_with("_bucket");
                let in_quantile = open.contains(&"histogram_quantile");
                ensure!(
                    is_bucket == in_quantile,
                    "{metric}: quantiles are of buckets"
                );
                let last = query.grouped.get(list..).unwrap_or_default();
                let has_bounds = last.iter().any(|label| label == "le");
                ensure!(!is_bucket || has_bounds, "{metric} is not grouped by le");
                if wants_range {
                    selector.of_range = of.to_owned();
                }
                query.selectors.push(selector);
            }
        }
        at += 1;
    }
    ensure!(open.is_empty(), "a bracket is not closed");
    ensure!(!query.selectors.is_empty(), "no metric");
    Ok(query)
}

/// Reads matchers up to the closing bracket, and returns its place.
fn matchers(tokens: &[String], mut at: usize, selector: &mut Selector) -> Result<usize> {
    loop {
        match tokens.get(at..).unwrap_or_default() {
            [end, ..] if end == "}" => return Ok(at),
            [comma, ..] if comma == "," => at += 1,
            [label, operator, value, ..] => {
                let is_operator = ["=", "!=", "=~", "!~"].contains(&operator.as_str());
                ensure!(is_word(label) && is_operator, "matcher {label} {operator}");
                let value = value.strip_prefix('"').context("a value has no quotes")?;
                let matcher = (label.clone(), operator.clone(), value.to_owned());
                selector.matchers.push(matcher);
                at += 3;
            }
            _ => bail!("matchers do not end"),
        }
    }
}

fn is_word(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
}

/// Words, signs, and texts: these begin with a quote, and have none at their end.
fn tokens(text: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "_:.$".contains(c);
        let length = if first == '"' {
            let end = rest[1..].find('"').context("a text does not end")?;
            found.push(rest[..=end].to_owned());
            end + 2
        } else {
            let length = match first {
                first if is_part(first) => rest.find(|c: char| !is_part(c)).unwrap_or(rest.len()),
                '=' | '!' | '<' | '>' if rest[1..].starts_with(['=', '~']) => 2,
                first => first.len_utf8(),
            };
            found.push(rest[..length].to_owned());
            length
        };
        rest = rest[length..].trim_start();
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_labels_and_groups_are_found() {
        let query = read(
            r#"histogram_quantile(0.9, sum by (le, job) (rate(a_bucket{x="1",y=~"$y"}[5m]))) > 60 and max(b{z!="2"}) == 0"#,
        )
        .unwrap();
        let matcher = |a: &str, b: &str, c: &str| (a.to_owned(), b.to_owned(), c.to_owned());
        assert_eq!(
            query.selectors,
            [
                Selector {
                    metric: "a_bucket".into(),
                    matchers: vec![matcher("x", "=", "1"), matcher("y", "=~", "$y")],
                    of_range: "rate".into(),
                },
                Selector {
                    metric: "b".into(),
                    matchers: vec![matcher("z", "!=", "2")],
                    ..Selector::default()
                },
            ]
        );
        assert_eq!(query.grouped, ["le", "job"]);
    }

    #[test]
    fn mistakes_are_found() {
        for wrong in [
            "",
            "sum(a",
            "sum a)",
            "rat(a[5m])",
            "rate(a)",
            "a_total > 0",
            "sum(a[5m])",
            "a{b=1}",
            r#"a{b="1}"#,
            "sum by x (a)",
            "histogram_quantile(0.9, sum by (job) (rate(a_bucket[1m])))",
            "sum by (le) (rate(a_bucket[1m]))",
            "histogram_quantile(0.9, sum by (le) (rate(a_sum[1m])))",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_fitting_series_are_selected() {
        let labels = BTreeMap::from([("kind".to_owned(), "trap".to_owned())]);
        for (text, fits) in [
            (r#"a{kind="trap"}"#, true),
            (r#"a{kind="other"}"#, false),
            (r#"a{kind!="trap"}"#, false),
            (r#"a{kind=~"x|trap"}"#, true),
            (r#"a{kind=~"x|y"}"#, false),
            (r#"a{kind=~"t.*"}"#, true),
            (r#"a{kind=~"$kind"}"#, true),
            (r#"a{no="x"}"#, false),
        ] {
            let query = read(text).unwrap();
            assert_eq!(query.selectors[0].may_select(&labels), fits, "{text}");
        }
    }
}
