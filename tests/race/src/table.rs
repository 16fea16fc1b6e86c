//! The output: a markdown table with a row per measure and a column per entrant.

use std::fmt::Write as _;

use crate::args::Name;
use crate::entrant::Entrant;
use crate::tally::{Spread, Tally, Unit};

/// The entrant that ratios refer to.
const BASE: Name = Name::ClientGo;

/// Returns the table, with the facts below.
pub fn print(tally: &Tally, entrants: &[Entrant], facts: &[String]) -> String {
    let mut text = String::from("| Scenario | Measure |");
    for entrant in entrants {
        let _ = write!(text, " {} |", entrant.name.title());
    }
    text += "\n|---|---|";
    text += &"---|".repeat(entrants.len());
    text.push('\n');
    let mut last = String::new();
    for (scenario, measure, unit) in tally.rows() {
        let head = if scenario == last { "" } else { &scenario };
        let _ = write!(text, "| {head} | {measure}, {} |", unit.sign());
        let base = tally.of(&scenario, measure, BASE);
        for entrant in entrants {
            let spread = tally.of(&scenario, measure, entrant.name);
            let cell = spread.map(|spread| cell(spread, base, unit, entrant.name == BASE));
            let _ = write!(text, " {} |", cell.unwrap_or_else(|| "-".into()));
        }
        text.push('\n');
        last = scenario;
    }
    text += "\nMedian (least–most) **ratio to client-go**.\n\n";
    for fact in facts {
        let _ = writeln!(text, "- {fact}");
    }
    for entrant in entrants {
        let _ = writeln!(text, "- {}: {}", entrant.name.title(), entrant.version);
    }
    text
}

fn cell(spread: Spread, base: Option<Spread>, unit: Unit, is_base: bool) -> String {
    let mut text = number(spread.median);
    if spread.least < spread.most {
        let _ = write!(text, " ({}–{})", number(spread.least), number(spread.most));
    }
    // A ratio to almost zero is noise.
    if let Some(base) =
        base.filter(|base| base.median > 0.0 && !matches!(unit, Unit::Percent | Unit::Count))
    {
        let ratio = spread.median / base.median;
        match is_base {
            true => text += " **1.00**",
            false => {
                let _ = write!(text, " **{ratio:.2}**");
            }
        }
    }
    text
}

/// Formats a number with three significant digits.
fn number(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_holds_median_spread_and_ratio() {
        let of = |median, least, most| Spread {
            median,
            least,
            most,
        };
        let base = of(1000.0, 900.0, 1100.0);
        let cell = cell(of(254.0, 250.0, 260.4), Some(base), Unit::Us, false);
        assert_eq!(cell, "254 (250–260) **0.25**");
    }
}
