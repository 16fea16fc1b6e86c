//! `vmhost canary`: orders about a canary of a running host, and its report. This module must not
//! know more of a host than its documents.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use vmhost_core::one_line;
use vmhost_runtime::canary::told::{CanaryObject, CanaryReport, CanaryState};
use vmhost_runtime::observe::admin::paths;

use crate::ask::{Host, find};
use crate::cli::canary::{CanaryCommand, EndArgs, ReportArgs, StartArgs};
use crate::cli::common::OutputFormat;
use crate::flags;
use crate::output::{json, print};
use crate::why::phrases::field;
use crate::workshop::source::component_of;

/// The most fields of an object that are shown.
const FIELDS: usize = 8;

/// Carries out a command.
pub(crate) async fn command(command: &CanaryCommand) -> Result<()> {
    match command {
        CanaryCommand::Start(args) => start(args).await,
        CanaryCommand::Status(args) => status(args).await,
        CanaryCommand::Promote(args) => promote(args).await,
        CanaryCommand::Abort(args) => abort(args).await,
    }
}

/// Sends a new version to the host, which starts a canary of it.
async fn start(args: &StartArgs) -> Result<()> {
    let every = args.every.as_deref();
    let every = every.map(|text| flags::duration("--every", text));
    let every = every.transpose()?.map(|every| every.as_millis() as u64);
    let (host, _) = find(&args.host).await?;
    let file = component_of(&args.new, args.source).await?;
    let component =
        std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let (weight, step) = (args.weight.as_deref(), args.step.as_deref());
    let path = paths::start_canary(&args.plugin, weight, step, every);
    let state: CanaryState = host.post(&path, component).await?.found()?;
    print(&summary(&state));
    Ok(())
}

async fn status(args: &ReportArgs) -> Result<()> {
    let (host, _) = find(&args.host).await?;
    let report: CanaryReport = host.get(&paths::canary(&args.plugin)).await?.found()?;
    let report = whole(&host, &args.plugin, report).await?;
    match args.output {
        OutputFormat::Text => print(&shown(&report)),
        OutputFormat::Json => print(&json(&report)?),
    }
    Ok(())
}

/// Makes the candidate the live version.
pub(crate) async fn promote(args: &EndArgs) -> Result<()> {
    let (host, _) = find(&args.host).await?;
    let path = paths::canary_order(&args.plugin, "promote");
    let state: CanaryState = host.post(&path, Vec::new()).await?.found()?;
    match args.output {
        OutputFormat::Text => print(&summary(&state)),
        OutputFormat::Json => print(&json(&state)?),
    }
    Ok(())
}

/// Takes the candidate's objects back.
pub(crate) async fn abort(args: &EndArgs) -> Result<()> {
    let (host, _) = find(&args.host).await?;
    let path = paths::canary_order(&args.plugin, "abort");
    let report: CanaryReport = host.post(&path, Vec::new()).await?.found()?;
    let report = whole(&host, &args.plugin, report).await?;
    match args.output {
        OutputFormat::Text => print(&shown(&report)),
        OutputFormat::Json => print(&json(&report)?),
    }
    Ok(())
}

/// Adds the objects of all further pages to a report.
async fn whole(host: &Host, plugin: &str, mut report: CanaryReport) -> Result<CanaryReport> {
    while let Some(from) = report.next.take() {
        let path = paths::canary_from(plugin, from);
        let page: CanaryReport = host.get(&path).await?.found()?;
        if page.canary.generation != report.canary.generation || page.objects.is_empty() {
            // Another canary has begun in the meantime.
            break;
        }
        report.objects.extend(page.objects);
        (report.canary, report.next, report.unlisted) = (page.canary, page.next, page.unlisted);
    }
    Ok(report)
}

/// Describes a canary in one line: what runs, or how it ended.
pub(crate) fn summary(state: &CanaryState) -> String {
    let (plugin, generation, weight) = (&state.plugin, state.generation, &state.weight);
    let text = match (state.state.as_str(), &state.reason) {
        ("running", _) => {
            let next = match &state.next_step {
                Some(at) => format!(", next step {at}"),
                None => String::new(),
            };
            format!(
                "canary {plugin}: generation {generation} runs {weight} of the objects since {}{next}",
                state.since
            )
        }
        ("promoted", _) => format!("canary {plugin}: generation {generation} is the live version"),
        (end, Some(reason)) => {
            let ending = if state.over {
                ""
            } else {
                ", its keys are being put back"
            };
            format!("canary {plugin} {end} at {weight}{ending}: {reason}")
        }
        (end, None) => format!("canary {plugin}: {end}"),
    };
    one_line(&text).into_owned()
}

/// Formats the canary and each object that its candidate wrote.
fn shown(report: &CanaryReport) -> String {
    let state = &report.canary;
    let mut text = summary(state);
    let live = format!("live       generation {}", state.live_generation);
    let candidate = format!("candidate  generation {}", state.generation);
    for (side, digest, keys) in [
        (candidate, &state.digest, state.candidate),
        (live, &state.live_digest, state.live),
    ] {
        let digest: String = digest.chars().take("sha256:".len() + 12).collect();
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n{side}, {digest}: {} keys had a turn, {} fail",
            keys.ran, keys.failing
        );
    }
    let _ = write!(text, "\nthe candidate wrote {} objects", state.written);
    for object in &report.objects {
        let _ = write!(text, "\n{}", object_text(object));
    }
    if report.unlisted > 0 {
        let _ = write!(text, "\nand {} more, which are not listed", report.unlisted);
    }
    text
}

/// Formats an object with what the candidate changed first.
fn object_text(object: &CanaryObject) -> String {
    let turns = match object.turns {
        0 => " (no answer came, so that it may not have changed)".to_owned(),
        1 => String::new(),
        turns => format!(" ({turns} turns)"),
    };
    let what = match object.cut {
        true => "too large to keep what changed".to_owned(),
        false => object.verbs.join(", "),
    };
    let mut lines = vec![format!("{}{turns}: {what}", object.object)];
    lines.extend(object.fields.iter().take(FIELDS).map(field));
    if let Some(more) = object
        .fields
        .len()
        .checked_sub(FIELDS)
        .filter(|more| *more > 0)
    {
        lines.push(format!("and {more} more fields"));
    }
    let lines: Vec<_> = lines.iter().map(|line| one_line(line)).collect();
    lines.join("\n    ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use vmhost_runtime::canary::told::CanaryKeys;
    use vmhost_runtime::journal::story::Field;

    use super::*;

    fn state() -> CanaryState {
        CanaryState {
            plugin: "vm".into(),
            state: "running".into(),
            generation: 2,
            live_generation: 1,
            digest: format!("sha256:{}", "2".repeat(64)),
            live_digest: format!("sha256:{}", "1".repeat(64)),
            weight: "5%".into(),
            since: "2026-01-31T12:00:00.000Z".into(),
            candidate: CanaryKeys {
                ran: 25,
                failing: 1,
            },
            written: 1,
            ..CanaryState::default()
        }
    }

    #[test]
    fn a_canary_is_one_line() {
        assert_eq!(
            summary(&state()),
            "canary vm: generation 2 runs 5% of the objects since 2026-01-31T12:00:00.000Z"
        );
        let aborted = CanaryState {
            state: "aborted".into(),
            reason: Some("3 keys of the candidate broke:\n\x1b[2J".into()),
            over: true,
            ..state()
        };
        let text = summary(&aborted);
        assert!(
            text.starts_with("canary vm aborted at 5%: 3 keys"),
            "{text:?}"
        );
        assert!(!text.contains(char::is_control), "{text:?}");
    }

    #[test]
    fn each_object_is_told_with_its_diff() {
        let changed = Field {
            path: "spec.status".into(),
            old: Some(json!("creating")),
            new: Some(json!("broken")),
        };
        let report = CanaryReport {
            canary: state(),
            objects: vec![
                CanaryObject {
                    object: "VirtualMachine default/x".into(),
                    turns: 2,
                    verbs: vec!["patch".into()],
                    fields: vec![changed],
                    cut: false,
                },
                CanaryObject {
                    object: "VirtualMachine default/y".into(),
                    verbs: vec!["delete".into()],
                    ..CanaryObject::default()
                },
            ],
            next: None,
            unlisted: 3,
        };
        let text = shown(&report);
        for line in [
            "candidate  generation 2, sha256:222222222222: 25 keys had a turn, 1 fail",
            "live       generation 1, sha256:111111111111: 0 keys had a turn, 0 fail",
            "VirtualMachine default/x (2 turns): patch",
            "    spec.status \"creating\" -> \"broken\"",
            "VirtualMachine default/y (no answer came, so that it may not have changed): delete",
            "and 3 more, which are not listed",
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "no {line:?} in {text}"
            );
        }
    }
}
