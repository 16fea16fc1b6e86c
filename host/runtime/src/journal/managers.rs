//! Finds the field managers that wrote an object last, from the text of `metadata.managedFields`.
//!
//! This module must not know which fields a manager owns.

use jiff::Timestamp;
use serde::Deserialize;

/// The parts of an entry that are read. The API server stores times in seconds, so that several
/// managers may have the newest time.
#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    manager: String,
    #[serde(default)]
    time: Option<String>,
}

/// Returns the managers with the newest time, each once, in the order of the text. An entry without
/// a time counts as the oldest. Empty if the text is not a list of entries.
pub(crate) fn newest(managed: &str) -> Vec<String> {
    let entries: Vec<Entry> = serde_json::from_str(managed).unwrap_or_default();
    let mut found = Vec::new();
    let mut newest = None;
    for Entry { manager, time } in entries {
        if manager.is_empty() {
            continue;
        }
        let time = time.and_then(|time| time.parse::<Timestamp>().ok());
        if time > newest {
            newest = time;
            found.clear();
        }
        if time == newest && !found.contains(&manager) {
            found.push(manager);
        }
    }
    found
}

/// Returns the managers with the newest time as one text, such as `kubectl-edit` or
/// `helm or kubectl-edit`. `None` if there are none.
pub(crate) fn shown(managed: &str) -> Option<String> {
    let newest = newest(managed);
    (!newest.is_empty()).then(|| newest.join(" or "))
}

/// Returns the managers with the newest time, without `own`, the controller's field manager
/// (`vmhost/<plugin>/<controller>`). If `own` has the same time, the text does not tell which of
/// them wrote last.
pub(crate) fn foreign(managed: &str, own: &str) -> Vec<String> {
    let mut newest = newest(managed);
    newest.retain(|manager| manager != own);
    newest
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "vmhost/vm/virtualmachines";

    #[test]
    fn the_newest_time_wins() {
        let managed = r#"[
            {"manager":"old","operation":"Apply","time":"2026-01-31T12:00:00Z"},
            {"manager":"kubectl-edit","time":"2026-01-31T13:00:01+01:00","fieldsType":"FieldsV1"},
            {"manager":"never","fieldsV1":{"f:spec":{}}}]"#;
        assert_eq!(shown(managed).unwrap(), "kubectl-edit");
        assert_eq!(foreign(managed, OWN), ["kubectl-edit"]);
    }

    #[test]
    fn managers_with_the_same_time_are_all_named_once() {
        let managed = format!(
            r#"[{{"manager":"{OWN}","subresource":"status","time":"2026-01-31T12:00:00Z"}},
            {{"manager":"helm","time":"2026-01-31T12:00:00Z"}},
            {{"manager":"helm","subresource":"status","time":"2026-01-31T12:00:00Z"}}]"#
        );
        assert_eq!(shown(&managed).unwrap(), format!("{OWN} or helm"));
        assert_eq!(foreign(&managed, OWN), ["helm"]);
        assert!(foreign(&managed, "helm") == [OWN]);
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
