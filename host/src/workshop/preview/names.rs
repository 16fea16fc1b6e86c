//! Placeholders for the names, uids and times that make equal changes of two objects look
//! different.
//!
//! This module must not know changes.

use jiff::Timestamp;
use serde_json::Value;

/// The shortest name that is replaced inside a longer text. Shorter names would be found
/// everywhere.
const SHORTEST: usize = 3;

/// Replaces a time during the preview.
const NOW: &str = "<now>";

/// Replaces the hash of a hidden value.
const HIDDEN: &str = "<redacted>";

/// The names and uids of an object and of its owners.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// Texts with their placeholders, the longest first.
    pairs: Vec<(String, String)>,
    namespace: Option<String>,
    /// The time in which the preview ran.
    during: Option<(Timestamp, Timestamp)>,
}

impl Names {
    /// Collects the names of an object in a namespace. `others` are further names and uids with
    /// their placeholders; of equal texts, the first one counts.
    pub(super) fn new(
        name: &str,
        namespace: Option<&str>,
        others: impl IntoIterator<Item = (String, &'static str)>,
        during: (Timestamp, Timestamp),
    ) -> Self {
        let mut pairs: Vec<(String, String)> = vec![(name.to_owned(), "<name>".into())];
        for (text, mark) in others {
            if !text.is_empty() && !pairs.iter().any(|(known, _)| *known == text) {
                pairs.push((text, mark.to_owned()));
            }
        }
        if let Some(namespace) = namespace {
            let joined: Vec<(String, String)> = pairs
                .iter()
                .flat_map(|(text, mark)| {
                    [
                        (format!("{namespace}/{text}"), format!("<namespace>/{mark}")),
                        (format!("{namespace}.{text}"), format!("<namespace>.{mark}")),
                        (format!("{text}.{namespace}"), format!("{mark}.<namespace>")),
                    ]
                })
                .collect();
            pairs.extend(joined);
        }
        // The sort is stable: of equally long texts, the one that was added first stays first.
        pairs.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        Self {
            pairs,
            namespace: namespace.map(str::to_owned),
            during: Some(during),
        }
    }

    /// Replaces the names in the path of a field.
    pub(super) fn path(&self, path: &str) -> String {
        self.inside(path)
    }

    /// Replaces the names in the value of a field at this path.
    pub(super) fn value(&self, path: &str, value: &Value) -> Value {
        let Value::String(text) = value else {
            return value.clone();
        };
        let is_namespace = path.ends_with("namespace") && self.namespace.as_ref() == Some(text);
        if is_namespace {
            return "<namespace>".into();
        }
        self.text(text).into()
    }

    fn text(&self, text: &str) -> String {
        if let Some((_, mark)) = self.pairs.iter().find(|(known, _)| known == text) {
            return mark.clone();
        }
        let is_now = self.during.is_some_and(|(first, last)| {
            let time = text.parse::<Timestamp>();
            time.is_ok_and(|time| first <= time && time <= last)
        });
        match is_now {
            true => NOW.into(),
            false => self.inside(text),
        }
    }

    /// Replaces the names inside a text where they are whole words.
    fn inside(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let (mut rest, mut before) = (text, None);
        while let Some(first) = rest.chars().next() {
            let found = self.pairs.iter().find(|(name, _)| {
                let after = rest.strip_prefix(name.as_str());
                name.len() >= SHORTEST
                    && is_boundary(before)
                    && after.is_some_and(|after| is_boundary(after.chars().next()))
            });
            match found {
                Some((name, mark)) => {
                    out.push_str(mark);
                    before = name.chars().next_back();
                    rest = rest.get(name.len()..).unwrap_or_default();
                }
                None => {
                    out.push(first);
                    before = Some(first);
                    rest = rest.get(first.len_utf8()..).unwrap_or_default();
                }
            }
        }
        out
    }
}

fn is_boundary(c: Option<char>) -> bool {
    !c.is_some_and(char::is_alphanumeric)
}

/// Replaces the hashes of hidden values, so that changes which differ only in them are equal.
pub(super) fn without_hashes(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("<redacted ") {
        out.push_str(before);
        out.push_str(HIDDEN);
        rest = behind.split_once('>').map_or("", |(_, rest)| rest);
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names() -> Names {
        let others = [
            ("web".to_owned(), "<key>"),
            ("u-1".to_owned(), "<uid>"),
            ("web-db".to_owned(), "<key>"),
            (String::new(), "<uid>"),
        ];
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let during = (at("2026-01-01T10:00:00Z"), at("2026-01-01T10:00:05Z"));
        Names::new("web-db", Some("shop"), others, during)
    }

    #[test]
    fn names_are_replaced_where_they_are_whole_words() {
        let names = names();
        for (text, replaced) in [
            ("web-db", "<name>"),
            ("web", "<key>"),
            ("web-front", "<key>-front"),
            ("website", "website"),
            ("a.web-db:8080", "a.<name>:8080"),
            ("shop/web", "<namespace>/<key>"),
            ("web-db.shop.svc", "<name>.<namespace>.svc"),
            ("shop", "shop"),
            ("u-1", "<uid>"),
            ("é web é", "é <key> é"),
            ("", ""),
        ] {
            assert_eq!(
                names.value("spec.x", &json!(text)),
                json!(replaced),
                "{text}"
            );
        }
        assert_eq!(
            names.value("a.namespace", &json!("shop")),
            json!("<namespace>")
        );
        assert_eq!(names.value("spec.x", &json!(7)), json!(7));
        assert_eq!(
            names.path(r#"data["shop.web"]"#),
            r#"data["<namespace>.<key>"]"#
        );
    }

    #[test]
    fn a_short_name_is_replaced_only_as_a_whole() {
        let at = Timestamp::UNIX_EPOCH;
        let names = Names::new("a", None, [], (at, at));
        assert_eq!(names.value("x", &json!("a")), json!("<name>"));
        assert_eq!(names.value("x", &json!("not a word")), json!("not a word"));
    }

    #[test]
    fn times_of_the_preview_are_all_now() {
        let names = names();
        for (time, replaced) in [
            ("2026-01-01T10:00:03Z", "<now>"),
            ("2026-01-01T11:00:03+01:00", "<now>"),
            ("2026-01-01T10:00:06Z", "2026-01-01T10:00:06Z"),
        ] {
            assert_eq!(names.value("x", &json!(time)), json!(replaced));
        }
    }

    #[test]
    fn hidden_values_look_alike() {
        let text = "x<redacted 1f2e3d4c>y<redacted 00000000>";
        assert_eq!(without_hashes(text), "x<redacted>y<redacted>");
        assert_eq!(without_hashes("<redacted"), "<redacted");
    }
}
