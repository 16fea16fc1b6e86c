//! Formats a plan for a person. Every text of a plugin or of the cluster is put on one line here,
//! without control characters. This module must not know how a plan is made.

use std::fmt::Write as _;

use serde_json::Value;
use vmhost_core::{cut, one_line};
use vmhost_runtime::journal::story::Field;

use super::change::Verb;
use super::plan::{Counts, Events, Failing, Group, Plan, Side, Version};
use crate::paint::{Paint, Tone};

/// The most objects of a group that are named.
const NAMED: usize = 3;

/// The most fields of a group that are shown.
const FIELDS: usize = 20;

/// The most bytes of a field's value that are shown.
const VALUE: usize = 120;

/// Writes a plan.
pub(super) fn text(plan: &Plan, paint: Paint) -> String {
    let mut out = line(&plan.counts);
    if let Some(against) = &plan.against {
        let count = plan.groups.len() + plan.problems.len();
        let differs = match count {
            0 => "no difference from".to_owned(),
            1 => "1 difference from".to_owned(),
            count => format!("{count} differences from"),
        };
        let _ = write!(out, "\n{differs} {}", name(against));
    }
    for group in &plan.groups {
        out.push_str(&of_group(group, paint));
    }
    for failing in &plan.problems {
        out.push_str(&of_failing(failing, paint));
    }
    let head = |name: &str| paint.text(Tone::Dim, name);
    for events in &plan.events {
        let _ = write!(out, "\n{} {}", head("event"), of_events(events));
    }
    for note in &plan.notes {
        let _ = write!(out, "\n{} {}", head("note"), one_line(note));
    }
    for unseen in &plan.unseen {
        let _ = write!(out, "\n{} {}", head("not seen"), one_line(unseen));
    }
    out
}

/// Writes `vm 0.2.0 (sha256:0123456789ab)`.
fn name(version: &Version) -> String {
    let mut out = one_line(&version.plugin).into_owned();
    if !version.version.is_empty() {
        let _ = write!(out, " {}", one_line(&version.version));
    }
    let _ = write!(out, " ({})", cut(&version.digest, 19));
    out
}

/// Writes `plan: 12 patch, 0 create, 1 DELETE, 9,987 unchanged`.
pub(super) fn line(counts: &Counts) -> String {
    let Counts {
        patch,
        create,
        delete,
        unchanged,
        failed,
    } = *counts;
    let mut line = format!(
        "plan: {} patch, {} create, {} DELETE, {} unchanged",
        thousands(patch),
        thousands(create),
        thousands(delete),
        thousands(unchanged)
    );
    if failed > 0 {
        let _ = write!(line, ", {} failed", thousands(failed));
    }
    line
}

fn of_group(group: &Group, paint: Paint) -> String {
    let (verb, tone) = match group.verb {
        Verb::Delete => ("DELETE", Tone::Bad),
        Verb::Create => ("create", Tone::Bold),
        Verb::Patch => ("patch", Tone::Bold),
    };
    let mut out = format!(
        "\n\n{}{} {}: {}",
        side(group.by),
        paint.text(tone, verb),
        one_line(&group.kind),
        named(&group.objects, "objects")
    );
    if !group.waits_for.is_empty() {
        let finalizers = group.waits_for.join(", ");
        let _ = write!(out, "\n  waits for {}", one_line(&finalizers));
    }
    for field in group.fields.iter().take(FIELDS) {
        let _ = write!(out, "\n  {}", of_field(field));
    }
    let more = group.fields.len().saturating_sub(FIELDS);
    if more > 0 {
        let _ = write!(out, "\n  and {more} more fields (-o json shows all)");
    }
    out
}

fn of_failing(failing: &Failing, paint: Paint) -> String {
    format!(
        "\n\n{}{} {} {}: {}\n  {}",
        side(failing.by),
        paint.text(Tone::Bad, "fails"),
        one_line(&failing.controller),
        failing.what,
        named(&failing.keys, "keys"),
        one_line(&failing.text)
    )
}

fn of_events(events: &Events) -> String {
    let text = format!(
        "{} {} {} of {}: {}, first of {}",
        thousands(events.count),
        events.kind,
        events.reason,
        events.controller,
        events.note,
        events.object
    );
    one_line(&text).into_owned()
}

/// Names the version that does something which the other one does not do.
fn side(by: Option<Side>) -> &'static str {
    match by {
        None => "",
        Some(Side::New) => "only new: ",
        Some(Side::Old) => "only old: ",
    }
}

/// Writes `default/a`, or `12 objects: default/a, default/b, default/c and 9 more`.
fn named(names: &[String], what: &str) -> String {
    let shown: Vec<_> = names
        .iter()
        .take(NAMED)
        .map(|name| one_line(name))
        .collect();
    let shown = shown.join(", ");
    match names.len() {
        1 => shown,
        all if all <= NAMED => format!("{all} {what}: {shown}"),
        all => format!(
            "{} {what}: {shown} and {} more",
            thousands(all),
            thousands(all - NAMED)
        ),
    }
}

/// Writes `spec.replicas 2 -> 3`, `spec.x + 1` or `spec.x - 1`.
fn of_field(field: &Field) -> String {
    let path = one_line(&field.path);
    match (&field.old, &field.new) {
        (Some(old), Some(new)) => format!("{path} {} -> {}", value(old), value(new)),
        (None, Some(new)) => format!("{path} + {}", value(new)),
        (Some(old), None) => format!("{path} - {}", value(old)),
        (None, None) => path.into_owned(),
    }
}

fn value(value: &Value) -> String {
    let text = value.to_string();
    let shown = cut(&text, VALUE);
    let more = if shown.len() < text.len() { "..." } else { "" };
    format!("{}{more}", one_line(shown))
}

/// Writes `9,987`.
fn thousands(count: usize) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn group(verb: Verb, count: usize, fields: Vec<Field>) -> Group {
        Group {
            verb,
            kind: "Deployment.apps".into(),
            by: None,
            count,
            objects: (0..count).map(|number| format!("a/x{number}")).collect(),
            fields,
            waits_for: Vec::new(),
        }
    }

    fn plan() -> Plan {
        let version = || Version {
            plugin: "p".into(),
            version: "2".into(),
            digest: "sha256:0123456789abcdef0123".into(),
        };
        let field = |old: Option<Value>, new: Option<Value>| Field {
            path: "spec.x".into(),
            old,
            new,
        };
        let patched = vec![field(Some(json!("a\nb")), Some(json!(2)))];
        let mut deleted = group(Verb::Delete, 1, Vec::new());
        deleted.waits_for = vec!["f".into()];
        deleted.by = Some(Side::Old);
        Plan {
            new: version(),
            against: Some(version()),
            counts: Counts {
                patch: 12,
                create: 0,
                delete: 1,
                unchanged: 9987,
                failed: 1000,
            },
            groups: vec![deleted, group(Verb::Patch, 12, patched)],
            problems: vec![Failing {
                controller: "p/c".into(),
                what: "trap",
                text: "the plugin\ntrapped".into(),
                by: Some(Side::New),
                count: 2,
                keys: vec!["a/y".into(), "a/z".into()],
            }],
            events: vec![Events {
                controller: "p/c".into(),
                kind: "Normal",
                reason: "Done".into(),
                count: 3,
                object: "Deployment a/x".into(),
                note: "all done".into(),
            }],
            notes: vec!["noted".into()],
            unseen: vec!["quotas".into()],
        }
    }

    #[test]
    fn a_plan_reads_like_this() {
        let text = text(&plan(), Paint::Off);
        let wanted = [
            "plan: 12 patch, 0 create, 1 DELETE, 9,987 unchanged, 1,000 failed",
            "3 differences from p 2 (sha256:0123456789ab)",
            "",
            "only old: DELETE Deployment.apps: a/x0",
            "  waits for f",
            "",
            "patch Deployment.apps: 12 objects: a/x0, a/x1, a/x2 and 9 more",
            r#"  spec.x "a\nb" -> 2"#,
            "",
            "only new: fails p/c trap: 2 keys: a/y, a/z",
            "  the plugin trapped",
            "event 3 Normal Done of p/c: all done, first of Deployment a/x",
            "note noted",
            "not seen quotas",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn numbers_have_separators() {
        for (count, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (20_000, "20,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(thousands(count), text);
        }
    }

    #[test]
    fn long_lists_of_fields_and_long_values_are_cut() {
        let fields: Vec<Field> = (0..25)
            .map(|number| Field {
                path: format!("spec.f{number}"),
                old: None,
                new: Some(json!("x".repeat(500))),
            })
            .collect();
        let text = of_group(&group(Verb::Create, 1, fields), Paint::Off);
        assert!(text.contains("and 5 more fields"), "{text}");
        assert!(text.lines().all(|line| line.len() < 200), "{text}");
    }
}
