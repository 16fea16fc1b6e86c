//! All values of a race, with their medians and ranges.

use std::cell::RefCell;

use serde::Serialize;

use crate::args::{Name, Scenario};

/// One value.
#[derive(Clone, Debug, Serialize)]
pub struct Value {
    /// The title of its scenario.
    pub scenario: String,
    /// The measure.
    pub measure: &'static str,
    /// The unit.
    pub unit: Unit,
    /// The entrant.
    pub entrant: &'static str,
    /// The round.
    pub round: u32,
    /// The value.
    pub value: f64,
}

/// The unit of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Unit {
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
    /// Mebibytes.
    Mib,
    /// Percent of one core.
    Percent,
    /// A count.
    Count,
}

impl Unit {
    /// Returns the printed unit.
    pub fn sign(self) -> &'static str {
        match self {
            Unit::Us => "µs",
            Unit::Ms => "ms",
            Unit::S => "s",
            Unit::Mib => "MiB",
            Unit::Percent => "%",
            Unit::Count => "number",
        }
    }
}

/// The median and the range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The minimum.
    pub least: f64,
    /// The maximum.
    pub most: f64,
}

/// All values. They are written one by one, so that an interrupted race keeps the earlier ones.
#[derive(Debug, Default, Serialize)]
pub struct Tally {
    values: RefCell<Vec<Value>>,
}

/// Records the values of one process.
pub struct Sheet<'a> {
    tally: &'a Tally,
    title: String,
    name: Name,
    round: u32,
}

impl Tally {
    /// Returns a sheet for one process.
    pub fn sheet(&self, scenario: Scenario, quick: bool, name: Name, round: u32) -> Sheet<'_> {
        Sheet {
            tally: self,
            title: scenario.title(quick),
            name,
            round,
        }
    }

    /// Returns the rows, in the order in which they were first measured.
    pub fn rows(&self) -> Vec<(String, &'static str, Unit)> {
        let mut rows: Vec<(String, &'static str, Unit)> = Vec::new();
        for value in self.values.borrow().iter() {
            let row = (value.scenario.clone(), value.measure, value.unit);
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        // Scenarios that share a process are measured alternately.
        let mut ordered = rows.clone();
        ordered.sort_by_key(|row| rows.iter().position(|first| first.0 == row.0));
        ordered
    }

    /// Returns the values of an entrant in a row.
    pub fn of(&self, scenario: &str, measure: &str, name: Name) -> Option<Spread> {
        let values = self.values.borrow();
        let values = values.iter().filter(|value| {
            (value.scenario.as_str(), value.measure, value.entrant)
                == (scenario, measure, name.title())
        });
        spread(values.map(|value| value.value).collect())
    }
}

impl Sheet<'_> {
    /// Moves on to another scenario of the same process.
    pub fn turn(&mut self, scenario: Scenario, quick: bool) {
        self.title = scenario.title(quick);
    }

    /// Records a value.
    pub fn put(&mut self, measure: &'static str, unit: Unit, value: f64) {
        self.tally.values.borrow_mut().push(Value {
            scenario: self.title.clone(),
            measure,
            unit,
            entrant: self.name.title(),
            round: self.round,
            value,
        });
    }

    /// Records the median and a high quantile of many times, in milliseconds.
    pub fn put_times(&mut self, mut times: Vec<f64>) {
        times.sort_by(f64::total_cmp);
        if let (Some(p50), Some(p99)) = (quantile(&times, 0.5), quantile(&times, 0.99)) {
            self.put("create -> complete, p50", Unit::Ms, p50);
            self.put("create -> complete, p99", Unit::Ms, p99);
        }
    }
}

/// Returns a quantile of sorted values, by nearest rank.
fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

fn spread(mut values: Vec<f64>) -> Option<Spread> {
    values.sort_by(f64::total_cmp);
    let (least, most) = (*values.first()?, *values.last()?);
    let middle = values.len() / 2;
    let median = match values.len() % 2 {
        0 => (values[middle - 1] + values[middle]) / 2.0,
        _ => values[middle],
    };
    Some(Spread {
        median,
        least,
        most,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        let of = |values: &[f64]| spread(values.to_vec()).unwrap();
        assert_eq!(of(&[3.0, 1.0, 2.0]).median, 2.0);
        let four = of(&[4.0, 1.0, 2.0, 3.0]);
        assert_eq!((four.median, four.least, four.most), (2.5, 1.0, 4.0));
        assert_eq!(spread(Vec::new()), None);
    }

    #[test]
    fn a_quantile_is_a_value_that_was_seen() {
        let values: Vec<f64> = (1..=40).map(f64::from).collect();
        assert_eq!(quantile(&values, 0.5), Some(20.0));
        assert_eq!(quantile(&values, 0.99), Some(40.0));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
