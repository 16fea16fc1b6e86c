//! A parser of the Prometheus text format, as far as tests need it.

use std::collections::BTreeMap;

/// One scrape.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    samples: Vec<Sample>,
    /// The type of each family, by its name.
    types: BTreeMap<String, String>,
}

#[derive(Clone, Debug)]
struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

impl Metrics {
    /// Parses the text format; of other lines than samples, only the types count.
    pub fn parse(text: &str) -> Metrics {
        Metrics {
            samples: text
                .lines()
                .filter(|line| !line.starts_with('#'))
                .filter_map(sample)
                .collect(),
            types: text
                .lines()
                .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
                .map(|(name, of)| (name.to_owned(), of.to_owned()))
                .collect(),
        }
    }

    /// Returns the type of a metric, such as `counter`; of a histogram's parts, too.
    pub fn type_of(&self, name: &str) -> Option<&str> {
        let endings = ["", "_bucket", "_count", "_sum"].into_iter();
        let mut families = endings.filter_map(|ending| name.strip_suffix(ending));
        let found = families.find_map(|family| self.types.get(family));
        found.map(String::as_str)
    }

    /// Returns the sum of all samples of `name` with these labels; 0 if there is none, as for a
    /// counter that was never incremented.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.find(name, labels).map(|sample| sample.value).sum()
    }

    /// Returns whether there is a sample with these labels.
    pub fn has(&self, name: &str, labels: &[(&str, &str)]) -> bool {
        self.find(name, labels).next().is_some()
    }

    /// Returns the labels of all samples of `name`.
    pub fn series(&self, name: &str) -> impl Iterator<Item = &BTreeMap<String, String>> {
        let named = self
            .samples
            .iter()
            .filter(move |sample| sample.name == name);
        named.map(|sample| &sample.labels)
    }

    /// Returns all values of `label` in samples of `name`.
    pub fn values_of(&self, name: &str, label: &str) -> Vec<&str> {
        let named = self.samples.iter().filter(|sample| sample.name == name);
        named
            .filter_map(|sample| sample.labels.get(label))
            .map(String::as_str)
            .collect()
    }

    fn find<'a>(
        &'a self,
        name: &'a str,
        labels: &'a [(&'a str, &'a str)],
    ) -> impl Iterator<Item = &'a Sample> {
        self.samples.iter().filter(move |sample| {
            sample.name == name
                && labels
                    .iter()
                    .all(|(key, value)| sample.labels.get(*key).is_some_and(|have| have == value))
        })
    }
}

fn sample(line: &str) -> Option<Sample> {
    let (series, value) = match line.find('}') {
        Some(end) => line.split_at(end + 1),
        None => line.split_once(' ')?,
    };
    let value = value.split_whitespace().next()?.parse().ok()?;
    let (name, labels) = match series.split_once('{') {
        Some((name, labels)) => (name, parse_labels(labels.trim_end_matches('}'))),
        None => (series, BTreeMap::new()),
    };
    Some(Sample {
        name: name.to_owned(),
        labels,
        value,
    })
}

/// Parses `a="b",c="d"`, where a value may contain escaped quotes and commas.
fn parse_labels(mut text: &str) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    while let Some((key, rest)) = text.split_once("=\"") {
        let mut value = String::new();
        let mut chars = rest.char_indices();
        let mut end = rest.len();
        while let Some((at, char)) = chars.next() {
            match char {
                '"' => {
                    end = at + 1;
                    break;
                }
                '\\' => match chars.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, other)) => value.push(other),
                    None => {}
                },
                other => value.push(other),
            }
        }
        labels.insert(key.trim_start_matches([',', ' ']).to_owned(), value);
        text = &rest[end..];
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_found_by_name_and_labels() {
        let metrics = Metrics::parse(concat!(
            "# TYPE calls counter\n",
            "calls{plugin=\"a\",result=\"say \\\"hi\\\", you\"} 3\n",
            "calls{plugin=\"b\",result=\"ok\"} 4\n",
            "up 1\n",
        ));
        assert_eq!(metrics.sum("calls", &[]), 7.0);
        assert_eq!(
            metrics.sum("calls", &[("plugin", "a"), ("result", "say \"hi\", you")]),
            3.0
        );
        assert_eq!(metrics.sum("up", &[]), 1.0);
        assert!(!metrics.has("down", &[]));
        assert_eq!(metrics.type_of("calls"), Some("counter"));
        assert_eq!(metrics.type_of("up"), None);
        assert_eq!(metrics.values_of("calls", "plugin"), ["a", "b"]);
    }
}
