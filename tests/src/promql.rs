//! A reader of PromQL, as far as dashboards and alerts are compared with metrics: which metrics an
//! expression names, with which labels. It computes nothing.

mod reader;

use std::collections::BTreeMap;

pub use reader::read;

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
