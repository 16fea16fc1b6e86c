//! Finds the field managers that wrote an object last, and which of them own a field, from the text
//! of `metadata.managedFields`.
//!
//! This module must not know which changes it is asked about.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::journal::path;

/// The parts of an entry that are read. The API server stores times in seconds, so that several
/// managers may have the newest time.
#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(default)]
    manager: String,
    #[serde(default)]
    time: Option<String>,
    #[serde(borrow, default, rename = "fieldsV1")]
    fields: Option<&'a RawValue>,
}

/// A manager with the newest time, and the fields that it owns.
struct Writer {
    name: String,
    /// Not read if there is no other manager.
    fields: Vec<Value>,
}

/// The managers that wrote an object last, with their fields. There is more than one if several
/// have the newest time.
#[derive(Default)]
pub(crate) struct Writers(Vec<Writer>);

impl Writers {
    /// Reads the text of `metadata.managedFields`.
    pub(crate) fn of(managed: &str) -> Self {
        let entries = newest_entries(managed);
        let is_alone = entries
            .iter()
            .all(|entry| entry.manager == entries[0].manager);
        let mut writers: Vec<Writer> = Vec::new();
        for entry in entries {
            let fields = entry.fields.filter(|_| !is_alone);
            let fields: Option<Value> =
                fields.and_then(|fields| serde_json::from_str(fields.get()).ok());
            match writers.iter_mut().find(|known| known.name == entry.manager) {
                Some(known) => known.fields.extend(fields),
                None => writers.push(Writer {
                    name: entry.manager,
                    fields: fields.into_iter().collect(),
                }),
            }
        }
        Self(writers)
    }

    /// Returns those of the managers that own the field with this path, and all of them if none
    /// does: a field that is gone has no owner.
    pub(crate) fn of_field(&self, path: &str) -> Vec<&str> {
        self.of_fields([path].into_iter())
    }

    /// Like [`Writers::of_field`], for several fields together.
    fn of_fields<'p>(&self, paths: impl Iterator<Item = &'p str>) -> Vec<&str> {
        let paths: Vec<Vec<String>> = paths.map(path::steps).collect();
        let owns = |writer: &&Writer| {
            let mut fields = writer.fields.iter();
            fields.any(|fields| paths.iter().any(|steps| owns(fields, steps)))
        };
        let owners: Vec<&Writer> = self.0.iter().filter(owns).collect();
        let found = match owners.is_empty() {
            true => self.0.iter().collect(),
            false => owners,
        };
        found.iter().map(|writer| writer.name.as_str()).collect()
    }
}

/// Returns the managers that wrote these fields last as one text, such as `kubectl-edit` or
/// `helm or kubectl-edit`. `None` if the text names no manager.
pub(crate) fn shown<'p>(managed: &str, paths: impl Iterator<Item = &'p str>) -> Option<String> {
    let writers = Writers::of(managed);
    let names = writers.of_fields(paths);
    (!names.is_empty()).then(|| names.join(" or "))
}

/// Returns whether these fields, in the form of `fieldsV1`, contain the field that these steps lead
/// to. The entry of a list's item has a key or a value in place of a number, so that any item of
/// the list counts.
fn owns(fields: &Value, steps: &[String]) -> bool {
    let Some(fields) = fields.as_object() else {
        return false;
    };
    let Some((step, rest)) = steps.split_first() else {
        return true;
    };
    let mut members = fields.iter().filter(|(name, _)| *name != ".").peekable();
    if members.peek().is_none() {
        // All that is below belongs to it.
        return true;
    }
    members.any(|(name, below)| {
        let is_it = match name.split_once(':') {
            Some(("f", name)) => name == step,
            Some(("k" | "v" | "i", _)) => path::is_item(step),
            _ => false,
        };
        is_it && owns(below, rest)
    })
}

/// Returns the entries with the newest time that name a manager, in the order of the text. An entry
/// without a time counts as the oldest. Empty if the text is not a list of entries.
fn newest_entries(managed: &str) -> Vec<Entry<'_>> {
    let entries: Vec<Entry<'_>> = serde_json::from_str(managed).unwrap_or_default();
    let mut found = Vec::new();
    let mut newest = None;
    for entry in entries {
        if entry.manager.is_empty() {
            continue;
        }
        let time = entry.time.as_deref();
        let time = time.and_then(|time| time.parse::<Timestamp>().ok());
        if time > newest {
            newest = time;
            found.clear();
        }
        if time == newest {
            found.push(entry);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "vmhost/vm/virtualmachines";

    fn shown(managed: &str) -> Option<String> {
        super::shown(managed, std::iter::empty())
    }

    #[test]
    fn the_newest_time_wins() {
        let managed = r#"[
            {"manager":"old","operation":"Apply","time":"2026-01-31T12:00:00Z"},
            {"manager":"kubectl-edit","time":"2026-01-31T13:00:01+01:00","fieldsType":"FieldsV1"},
            {"manager":"never","fieldsV1":{"f:spec":{}}}]"#;
        assert_eq!(shown(managed).unwrap(), "kubectl-edit");
    }

    #[test]
    fn managers_with_the_same_time_are_all_named_once() {
        let managed = format!(
            r#"[{{"manager":"{OWN}","subresource":"status","time":"2026-01-31T12:00:00Z"}},
            {{"manager":"helm","time":"2026-01-31T12:00:00Z"}},
            {{"manager":"helm","subresource":"status","time":"2026-01-31T12:00:00Z"}}]"#
        );
        assert_eq!(shown(&managed).unwrap(), format!("{OWN} or helm"));
        assert_eq!(Writers::of(&managed).of_field("spec"), [OWN, "helm"]);
    }

    #[test]
    fn of_managers_with_the_same_time_the_owner_of_a_field_wrote_it() {
        let managed = r#"[
            {"manager":"old","time":"2026-01-31T11:00:00Z","fieldsV1":{"f:spec":{"f:image":{}}}},
            {"manager":"hpa","time":"2026-01-31T12:00:00Z","fieldsV1":{"f:spec":{"f:replicas":{}}}},
            {"manager":"helm","time":"2026-01-31T12:00:00Z","fieldsV1":{
                "f:metadata":{"f:labels":{".":{},"f:a.b/c":{}}},
                "f:spec":{"f:selector":{},"f:ports":{"k:{\"port\":80}":{".":{},"f:name":{}}}}}},
            {"manager":"hpa","subresource":"status","time":"2026-01-31T12:00:00Z","fieldsV1":{"f:status":{"f:n":{}}}}]"#;
        let writers = Writers::of(managed);
        let both = &["hpa", "helm"][..];
        for (path, expected) in [
            ("spec.replicas", &["hpa"][..]),
            ("status.n", &["hpa"]),
            (r#"metadata.labels["a.b/c"]"#, &["helm"]),
            ("spec.selector.app", &["helm"]),
            ("spec.ports[0].name", &["helm"]),
            ("spec.ports[0].port", both),
            // The older writer owns it, and did not write this time.
            ("spec.image", both),
            ("spec", both),
        ] {
            assert_eq!(writers.of_field(path), expected, "{path}");
        }
        let fields = ["status.n", "gone"].into_iter();
        assert_eq!(super::shown(managed, fields).unwrap(), "hpa");
        for odd in ["", "[]", r#"[{"manager":"x","fieldsV1":7}]"#] {
            assert!(Writers::of(odd).of_field("a").len() < 2, "{odd}");
        }
    }

    #[test]
    fn entries_without_a_time_count_as_the_oldest() {
        let managed = r#"[{"manager":"a"},{"manager":"b","time":null},{"manager":"c","time":"?"}]"#;
        assert_eq!(shown(managed).unwrap(), "a or b or c");
        for odd in [
            "",
            "{}",
            "[]",
            "null",
            r#"[{"time":"2026-01-31T12:00:00Z"}]"#,
        ] {
            assert_eq!(shown(odd), None, "{odd}");
        }
    }
}
