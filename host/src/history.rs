//! `vmhost history` and `vmhost rollback`: the versions of a plugin that ran on a host, and the
//! order to run an older one again. This module must not know more of a host than its documents.

use anyhow::Result;
use vmhost_runtime::deploy::history::report::{HistoryReport, RolledBack, RunReport, Why};
use vmhost_runtime::observe::admin::paths;
use vmhost_runtime::table::{bytes, table};

use crate::ask::find;
use crate::cli::common::OutputFormat;
use crate::cli::running::{HistoryArgs, RollbackArgs};
use crate::output::{json, print};

/// The number of a digest's characters that are shown: enough to tell two builds apart, and to name
/// one.
const SHORT: usize = "sha256:".len() + 12;

/// Prints the versions of a plugin.
pub(crate) async fn list(args: &HistoryArgs) -> Result<()> {
    let (host, _) = find(&args.host).await?;
    let report: HistoryReport = host.get(&paths::history(&args.plugin)).await?.found()?;
    match args.output {
        OutputFormat::Text => print(&shown(&report)),
        OutputFormat::Json => print(&json(&report)?),
    }
    Ok(())
}

/// Orders a rollback, and prints the version that runs afterwards.
pub(crate) async fn roll_back(args: &RollbackArgs) -> Result<()> {
    let (host, _) = find(&args.host).await?;
    let path = paths::rollback(&args.plugin, args.to.as_deref());
    let done: RolledBack = host.post(&path, Vec::new()).await?.found()?;
    print(&done.about);
    Ok(())
}

fn shown(report: &HistoryReport) -> String {
    // The newest run comes first, so that the version that a rollback would run is near the top.
    let rows: Vec<_> = report
        .runs
        .iter()
        .rev()
        .map(|run| row(report, run))
        .collect();
    let heads = [
        "DIGEST",
        "VERSION",
        "GENERATION",
        "BEGAN",
        "ENDED",
        "WHY",
        "SIZE",
        "KEPT",
    ];
    match rows.is_empty() {
        true => format!("no version of {} ran", report.plugin),
        false => table(heads, &rows),
    }
}

fn row(report: &HistoryReport, run: &RunReport) -> [String; 8] {
    let ended = match (run.why, &run.ended) {
        (None, _) => "running".to_owned(),
        (Some(_), Some(at)) => at.clone(),
        (Some(_), None) => "unknown".to_owned(),
    };
    let why = run.why.map_or("", Why::words);
    // Every run of a refused version has ended; the last one ended in a rollback.
    let why = match report.refused.contains(&run.digest) {
        true => format!("{why}, refused"),
        false => why.to_owned(),
    };
    [
        run.digest.chars().take(SHORT).collect(),
        run.version.clone(),
        run.generation.to_string(),
        run.began.clone(),
        ended,
        why,
        bytes(run.size),
        run.kept.clone(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(letter: &str, why: Option<Why>, ended: Option<&str>) -> RunReport {
        RunReport {
            digest: format!("sha256:{}", letter.repeat(64)),
            version: "1.0".to_owned(),
            generation: 1,
            began: "2026-01-31T12:00:00Z".to_owned(),
            ended: ended.map(str::to_owned),
            why,
            size: 2048,
            kept: "memory".to_owned(),
        }
    }

    #[test]
    fn the_newest_run_is_on_top_and_a_refused_version_is_named() {
        let report = HistoryReport {
            plugin: "vm".to_owned(),
            runs: vec![
                run("a", Some(Why::Crash), None),
                run("b", Some(Why::RolledBack), Some("2026-01-31T13:00:00Z")),
                run("a", None, None),
            ],
            refused: vec![format!("sha256:{}", "b".repeat(64))],
            ..HistoryReport::default()
        };
        let text = shown(&report);
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        let [_, newest, rolled_back, oldest] = &lines[..] else {
            panic!("{text}");
        };
        assert!(
            newest.contains(&"running") && !newest.contains(&"refused"),
            "{text}"
        );
        assert!(
            rolled_back.join(" ").contains("rolled back, refused"),
            "{text}"
        );
        assert!(
            oldest.contains(&"crash") && oldest.contains(&"unknown"),
            "{text}"
        );
        assert_eq!(rolled_back[0], format!("sha256:{}", "b".repeat(12)));
    }

    #[test]
    fn a_plugin_without_a_run_has_no_table() {
        let report = HistoryReport {
            plugin: "vm".to_owned(),
            ..HistoryReport::default()
        };
        assert_eq!(shown(&report), "no version of vm ran");
    }
}
