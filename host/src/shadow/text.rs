//! Formats a shadow's report and turns for a person. This module must not know more of a host than
//! these documents.

use serde_json::Value;
use vmhost_core::{cut, one_line};
use vmhost_runtime::journal::story::{Effect, Field};
use vmhost_runtime::shadow::report::{
    Differing, Group, Masked, Reason, ShadowReport, ShadowStory, ShadowTurn,
};
use vmhost_runtime::table::table;

use crate::why::phrases::{day, field, short_kind, time_of_day, wish};

/// The most bytes of a value that are shown.
const VALUE: usize = 40;

/// The length of a digest that is enough to tell two builds apart, with `sha256:`.
const DIGEST: usize = "sha256:".len() + 12;

/// Formats the first line of a report: which version follows which, and since when.
pub(crate) fn title(report: &ShadowReport) -> String {
    let version = match report.version.as_str() {
        "" => String::new(),
        version => format!(" ({version})"),
    };
    let candidate = match cut(&report.candidate, DIGEST) {
        "" => "a candidate".to_owned(),
        digest => format!("candidate {digest}{version}"),
    };
    let live = match cut(&report.live, DIGEST) {
        "" => String::new(),
        digest => format!(" beside {digest}"),
    };
    let mut text = format!(
        "shadow of {}: {candidate}{live}, {} since {}",
        report.plugin,
        report.state,
        at(&report.since)
    );
    if let Some(until) = &report.until {
        text += &format!(", until {}", at(until));
    }
    if let (Some(why), Some(time)) = (&report.ended, &report.at) {
        text = format!(
            "shadow of {}: {candidate}{live}, from {} to {}: {why}",
            report.plugin,
            at(&report.since),
            at(time)
        );
    }
    one_line(&text).into_owned()
}

/// Formats a report.
pub(crate) fn report(report: &ShadowReport) -> String {
    let mut parts = vec![title(report), counts(report)];
    parts.push(differences(&report.differences));
    if report.other_differences > 0 {
        parts.push(format!(
            "and {} differences of other kinds",
            report.other_differences
        ));
    }
    parts.push(masked(&report.masked));
    if report.counts.drew > 0 {
        parts.push(format!(
            "in {} of the turns that differ, the candidate drew more of clock and chance than is recorded: a difference may come of that alone",
            report.counts.drew
        ));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

fn at(time: &str) -> String {
    format!("{} {}", day(time), time_of_day(time))
}

fn counts(report: &ShadowReport) -> String {
    let counts = &report.counts;
    let masked = match counts.masked {
        0 => String::new(),
        some => format!("{some} differ only where the live version differs from itself"),
    };
    let row =
        |result: &str, turns: u64, about: String| [result.to_owned(), turns.to_string(), about];
    let of = |result: &str| {
        let reasons = report.reasons.iter();
        let reasons = reasons.filter(|reason| reason.result == result);
        reasons
            .map(|reason| row("", reason.turns, why(reason)))
            .collect::<Vec<_>>()
    };
    let mut rows = vec![
        row("same", counts.same, masked),
        row("differs", counts.differs, String::new()),
        row("failed", counts.failed, String::new()),
    ];
    rows.extend(of("failed"));
    rows.push(row("incomparable", counts.incomparable, String::new()));
    rows.extend(of("incomparable"));
    let full = match counts.dropped {
        0 => String::new(),
        _ => "the queue was full".to_owned(),
    };
    rows.push(row("dropped", counts.dropped, full));
    rows.push(row("waiting", counts.waiting, String::new()));
    let rows: Vec<[String; 3]> = rows
        .into_iter()
        .map(|[result, turns, about]| {
            // The table would show an empty cell as `<none>`.
            let filled = |cell: String| if cell.is_empty() { " ".into() } else { cell };
            [filled(result), turns, filled(about)]
        })
        .collect();
    table(["RESULT", "TURNS", "ABOUT"], &rows)
}

/// Formats why turns were not compared, or how calls failed.
fn why(reason: &Reason) -> String {
    let about = &reason.about;
    let what = match (reason.reason.as_str(), about.as_str()) {
        ("read", about) => format!("{about}: not read in the turn"),
        ("unseen", about) => format!("the turn does not show {about}"),
        ("controller", about) => format!("one of the versions has no controller {about}"),
        ("trap", _) => "it trapped".to_owned(),
        ("deadline", _) => "it missed the deadline".to_owned(),
        ("memory", _) => "it asked for more memory than it may have".to_owned(),
        ("malformed", _) => "it returned what the host cannot accept".to_owned(),
        (word, "") => word.to_owned(),
        (_, about) => about.to_owned(),
    };
    format!("{what}, as in {}", reason.example)
}

fn differences(groups: &[Group]) -> String {
    let row = |group: &Group| {
        let example = &group.example;
        let (live, candidate) = match group.what.as_str() {
            "changed" => (value(&example.live), value(&example.candidate)),
            "missing" => ("wanted".to_owned(), "not wanted".to_owned()),
            _ => ("not wanted".to_owned(), "wanted".to_owned()),
        };
        [
            group.controller.clone(),
            place(&group.verb, &group.kind, &group.path),
            live,
            candidate,
            group.count.to_string(),
            example.key.clone(),
        ]
    };
    let heads = [
        "CONTROLLER",
        "DIFFERENCE",
        "LIVE",
        "CANDIDATE",
        "COUNT",
        "EXAMPLE",
    ];
    table(heads, &groups.iter().map(row).collect::<Vec<_>>())
}

fn masked(places: &[Masked]) -> String {
    let row = |one: &Masked| {
        [
            one.controller.clone(),
            place(&one.verb, &one.kind, &one.path),
        ]
    };
    let heads = ["CONTROLLER", "NOT COMPARED"];
    table(heads, &places.iter().map(row).collect::<Vec<_>>())
}

/// Formats `patch VirtualMachine: spec.status`.
fn place(verb: &str, kind: &str, path: &str) -> String {
    let what = match verb {
        "next" => "what comes next".to_owned(),
        "call" => "how the call ends".to_owned(),
        "order" => "the order of the effects".to_owned(),
        verb => format!("{verb} {kind}"),
    };
    match path {
        "" => what,
        path => format!("{what}: {path}"),
    }
}

fn value(value: &Option<Value>) -> String {
    let Some(value) = value else {
        return "(none)".to_owned();
    };
    let text = value.to_string();
    match cut(&text, VALUE) {
        all if all.len() == text.len() => text,
        some => format!("{some}..."),
    }
}

/// Formats what the shadow would have done with a key.
pub(crate) fn story(story: &ShadowStory) -> String {
    let turns: Vec<String> = story.turns.iter().map(turn).collect();
    turns.join("\n\n")
}

fn turn(turn: &ShadowTurn) -> String {
    let mut lines = vec![format!(
        "{} {}   controller {}, generation {}, shadow {}   {} UTC",
        short_kind(&turn.kind),
        turn.key,
        turn.controller,
        turn.generation,
        cut(&turn.candidate, DIGEST),
        day(&turn.time)
    )];
    let mut time = time_of_day(&turn.time);
    let mut line = |name: &str, text: &str| {
        lines.push(format!("{time:<14}{name:<9}{text}"));
        time = "";
    };
    match turn.effects.is_empty() {
        _ if turn.act.starts_with("broke") => line("would", &turn.act),
        true => line("would", "do nothing"),
        false => {
            for effect in &turn.effects {
                line("would", &wanted(effect));
            }
        }
    }
    if turn.next.is_some() {
        line("next", &wish(turn.next.as_ref()));
    }
    for one in &turn.differences {
        line("differs", &differing(one));
    }
    let lines: Vec<_> = lines.iter().map(|line| one_line(line)).collect();
    lines.join("\n")
}

fn wanted(effect: &Effect) -> String {
    let what = format!("{} {}", effect.verb, effect.object);
    let fields: Vec<String> = effect.fields.iter().map(field).collect();
    match fields.is_empty() {
        true => what,
        false => format!("{what}: {}", fields.join(", ")),
    }
}

/// Formats `patch VirtualMachine default/x: spec.status "complete" (live), "done" (candidate)`.
fn differing(one: &Differing) -> String {
    let what = match one.verb.as_str() {
        "next" | "call" | "order" => place(&one.verb, "", ""),
        verb => format!("{verb} {}", one.object),
    };
    match one.what.as_str() {
        "missing" => return format!("{what}: the live version wanted it"),
        "extra" => return format!("{what}: the live version did not want it"),
        _ => {}
    }
    let field = |field: &Field| {
        let (live, candidate) = (value(&field.old), value(&field.new));
        let values = format!("{live} (live), {candidate} (candidate)");
        match field.path.as_str() {
            "" => values,
            path => format!("{path} {values}"),
        }
    };
    let fields: Vec<String> = one.fields.iter().map(field).collect();
    let message = one.message.as_deref();
    let message = message.map_or_else(String::new, |message| format!(": {message}"));
    format!("{what}: {}{message}", fields.join("; "))
}

#[cfg(test)]
mod tests;
