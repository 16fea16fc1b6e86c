//! `vmhost turns`: lists the turns that a running host remembers. This module must not know more of
//! a host than the document of turns.

use anyhow::Result;
use vmhost_core::{cut, one_line};
use vmhost_runtime::journal::story::Turn;
use vmhost_runtime::observe::admin::questions::{Listed, TurnsQuery};

use crate::ask::{Host, find};
use crate::cli::common::OutputFormat;
use crate::cli::running::TurnsArgs;
use crate::flags;
use crate::later::Later;
use crate::output::{json, json_line, print};
use crate::paint::{Paint, Tone};
use crate::why::phrases::{cause, day, duration, time_of_day};

/// The titles of the columns.
const HEADS: [&str; 6] = ["TIME (UTC)", "CONTROLLER", "KEY", "CAUSE", "RESULT", "TOOK"];

/// The smallest widths of the columns. A column grows with its cells.
const WIDTHS: [usize; 6] = [23, 16, 24, 32, 8, 6];

/// The number of the column with the result.
const RESULT: usize = 4;

/// The most bytes of a cause that are shown.
const CAUSE: usize = 60;

/// Rows whose columns are aligned.
struct Table {
    paint: Paint,
    widths: [usize; 6],
}

/// Lists turns, and with `--follow` those that end from now on.
pub(crate) async fn command(args: &TurnsArgs) -> Result<()> {
    let query = query(args)?;
    let (host, _) = find(&args.host).await?;
    let mut table = Table::new(Paint::stdout());
    if args.follow {
        return follow(args, &query, &host, &mut table).await;
    }
    let listed: Listed = host.get(&query.path()).await?.found()?;
    match args.output {
        OutputFormat::Text => table.print(&listed.turns),
        OutputFormat::Json => print(&json(&listed)?),
    }
    Ok(())
}

/// Lists the turns until now, and each turn afterwards.
async fn follow(
    args: &TurnsArgs,
    query: &TurnsQuery,
    host: &Host,
    table: &mut Table,
) -> Result<()> {
    let from_now = TurnsQuery {
        follow: true,
        ..query.clone()
    };
    let later = Later::of(host, &from_now.path()).await?;
    let listed: Listed = host.get(&query.path()).await?.found()?;
    match args.output {
        OutputFormat::Text => table.print(&listed.turns),
        OutputFormat::Json => {
            for turn in &listed.turns {
                print(&json_line(turn)?);
            }
        }
    }
    let shown = later.except(&listed.turns).print(|turn| match args.output {
        OutputFormat::Text => Ok(table.turn(turn)),
        OutputFormat::Json => json_line(turn),
    });
    shown.await
}

fn query(args: &TurnsArgs) -> Result<TurnsQuery> {
    let slow = args.slow.as_deref();
    let slow = slow.map(|text| flags::duration("--slow", text));
    Ok(TurnsQuery {
        controller: args.controller.clone(),
        failed: args.failed,
        slow: slow.transpose()?.map(|slow| slow.as_millis() as u64),
        ..TurnsQuery::default()
    })
}

impl Table {
    fn new(paint: Paint) -> Self {
        Self {
            paint,
            widths: WIDTHS,
        }
    }

    /// Prints the titles, and a row for each turn.
    fn print(&mut self, turns: &[Turn]) {
        for turn in turns {
            self.widen(&cells(turn));
        }
        print(&self.row(&HEADS.map(str::to_owned), |_| Tone::Plain));
        for turn in turns {
            print(&self.turn(turn));
        }
    }

    /// Formats the row of a turn.
    fn turn(&mut self, turn: &Turn) -> String {
        let cells = cells(turn);
        self.widen(&cells);
        let failed = matches!(turn.result.as_str(), "error" | "terminal" | "denied");
        self.row(&cells, |column| match column {
            RESULT if failed => Tone::Bad,
            0 => Tone::Dim,
            _ if turn.quiet > 0 => Tone::Dim,
            _ => Tone::Plain,
        })
    }

    fn widen(&mut self, cells: &[String; 6]) {
        for (width, cell) in self.widths.iter_mut().zip(cells) {
            *width = (*width).max(cell.chars().count());
        }
    }

    fn row(&self, cells: &[String; 6], tone: impl Fn(usize) -> Tone) -> String {
        let columns = cells.iter().zip(self.widths).enumerate();
        let cells: Vec<String> = columns
            .map(|(column, (cell, width))| {
                // The last column is not padded with spaces.
                let width = if column + 1 < HEADS.len() { width } else { 0 };
                self.paint.text(tone(column), &format!("{cell:<width$}"))
            })
            .collect();
        cells.join("   ")
    }
}

/// Returns the cells of a turn, without control characters.
fn cells(turn: &Turn) -> [String; 6] {
    let result = match turn.quiet {
        0 => turn.result.clone(),
        1 => "quiet".to_owned(),
        count => format!("{count} quiet"),
    };
    [
        format!("{} {}", day(&turn.time), time_of_day(&turn.time)),
        turn.controller.clone(),
        turn.key.clone(),
        causes(turn),
        result,
        duration(turn.took_ms),
    ]
    .map(|cell| one_line(&cell).into_owned())
}

/// Formats the first cause, and the number of the others.
fn causes(turn: &Turn) -> String {
    let Some(first) = turn.causes.first() else {
        return String::new();
    };
    let first = cause(first, turn);
    let shown = match cut(&first, CAUSE) {
        all if all.len() == first.len() => all.to_owned(),
        some => format!("{some}..."),
    };
    match turn.cause_count.max(turn.causes.len() as u64) - 1 {
        0 => shown,
        others => format!("{shown} and {others} more"),
    }
}

#[cfg(test)]
mod tests {
    use vmhost_runtime::journal::story::Woken;

    use super::*;

    fn turn() -> Turn {
        Turn {
            time: "2026-11-23T10:00:01.123456Z".into(),
            controller: "vm".into(),
            key: "default/x".into(),
            causes: vec![Woken {
                cause: "own-write".into(),
                version: Some(7),
                ..Woken::default()
            }],
            cause_count: 3,
            result: "error".into(),
            took_ms: 1.2,
            ..Turn::default()
        }
    }

    #[test]
    fn a_turn_is_one_row() {
        let mut table = Table::new(Paint::Off);
        assert_eq!(
            table.turn(&turn()),
            "2026-11-23 10:00:01.123   vm                 default/x                  \
             own write (version 7) and 2 more   error      1.2ms"
        );
        let quiet = Turn {
            quiet: 3,
            key: "a\x1b[2J\n/y".into(),
            ..turn()
        };
        let row = table.turn(&quiet);
        assert!(
            row.contains("3 quiet") && !row.contains(char::is_control),
            "{row:?}"
        );
    }

    #[test]
    fn a_denied_review_shows_why() {
        let denied = Turn {
            causes: vec![Woken {
                cause: "review".into(),
                ..Woken::default()
            }],
            cause_count: 1,
            act: "denied the CREATE of Pod.v1: 403 no tag".into(),
            result: "denied".into(),
            ..turn()
        };
        let row = Table::new(Paint::Off).turn(&denied);
        let shown = row.contains("  CREATE of Pod.v1: 403 no tag  ");
        assert!(shown && row.contains("  denied  "), "{row:?}");
    }

    #[test]
    fn columns_grow_with_their_cells() {
        let mut table = Table::new(Paint::Off);
        let long = Turn {
            key: "k".repeat(100),
            ..turn()
        };
        let rows = [&long, &turn()].map(|turn| table.turn(turn));
        let [first, second] = rows.map(|row| row.find("own write"));
        assert!(first.is_some() && first == second);
    }

    #[test]
    fn failures_are_red_on_a_terminal() {
        let row = Table::new(Paint::On).turn(&turn());
        assert!(row.contains("\x1b[31merror "), "{row:?}");
    }

    #[test]
    fn only_a_duration_is_slow() {
        let args = |slow: &str| TurnsArgs {
            failed: true,
            slow: Some(slow.into()),
            controller: None,
            follow: false,
            output: OutputFormat::Text,
            host: Default::default(),
        };
        assert_eq!(query(&args("1.5s")).unwrap().slow, Some(1500));
        let error = query(&args("slow")).unwrap_err().to_string();
        assert!(error.contains("--slow"), "{error}");
    }
}
