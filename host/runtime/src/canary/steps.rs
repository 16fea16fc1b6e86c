//! The steps of a canary: how the candidate's share grows, and what follows the last step. Plain
//! data. This module must not know a clock.

use std::time::Duration;

/// The share of all objects, in thousandths.
pub(crate) const ALL: u16 = 1000;

/// The most steps of a canary.
const MOST: usize = 32;

/// The shortest time of a step. The host looks at a canary once a second.
const SHORTEST: Duration = Duration::from_secs(1);

/// The candidate's shares in thousandths, in the order of the steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps {
    weights: Vec<u16>,
    /// How long each step takes. `None`: the first share stays until an operator decides.
    every: Option<Duration>,
}

/// What comes after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The candidate gets this share.
    Weight(u16),
    /// The candidate becomes the live version.
    Promote,
    /// Nothing, until an operator decides.
    Stay,
}

/// Why the given steps are refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepsError {
    /// A share is not a percentage.
    #[error("the weight {0:?} is not a percentage from 0.1 to 100")]
    Weight(String),
    /// No share is given.
    #[error("a canary needs --weight, or --step with --every")]
    None,
    /// A step adds no objects.
    #[error(
        "the steps {0:?} do not grow: each has to be more than the one before, and the first more than --weight, or equal to it"
    )]
    NotGrowing(String),
    /// There are too many steps.
    #[error("there are more than {MOST} steps")]
    TooMany,
    /// Steps without a time.
    #[error("--step needs --every, the time of a step")]
    NoTime,
    /// A time without steps.
    #[error("--every needs --step, the weights of the steps")]
    NoSteps,
    /// A step is too short to show how the candidate does.
    #[error("a step of {0:?} is shorter than {SHORTEST:?} (--every)")]
    TooShort(Duration),
}

impl Steps {
    /// Parses the flags: `--weight 5`, `--step 5,25,100` and `--every`.
    pub fn parse(
        weight: Option<&str>,
        steps: Option<&str>,
        every: Option<Duration>,
    ) -> Result<Self, StepsError> {
        let mut weights = Vec::new();
        weights.extend(weight.map(permille).transpose()?);
        let parts = steps.into_iter().flat_map(|steps| steps.split(','));
        for step in parts {
            let step = permille(step)?;
            match weights.last() {
                // The first step may repeat `--weight`.
                Some(before) if weights.len() == 1 && weight.is_some() && *before == step => {}
                Some(before) if *before >= step => {
                    let steps = steps.unwrap_or_default();
                    return Err(StepsError::NotGrowing(steps.to_owned()));
                }
                _ => weights.push(step),
            }
        }
        match (steps, every) {
            _ if weights.is_empty() => Err(StepsError::None),
            _ if weights.len() > MOST => Err(StepsError::TooMany),
            (Some(_), None) => Err(StepsError::NoTime),
            (None, Some(_)) => Err(StepsError::NoSteps),
            (_, Some(every)) if every < SHORTEST => Err(StepsError::TooShort(every)),
            _ => Ok(Self { weights, every }),
        }
    }

    /// The first share.
    pub(crate) fn first(&self) -> u16 {
        self.weights.first().copied().unwrap_or_default()
    }

    /// All shares.
    pub(crate) fn weights(&self) -> &[u16] {
        &self.weights
    }

    /// How long each step takes, if steps follow by themselves.
    pub(crate) fn every(&self) -> Option<Duration> {
        self.every
    }

    /// What comes after the step with this number, from 0. The promotion follows the last step, if
    /// that takes all objects and the steps have a time.
    pub(crate) fn next(&self, step: usize) -> Next {
        if self.every.is_none() {
            return Next::Stay;
        }
        match (self.weights.get(step + 1), self.weights.last()) {
            (Some(weight), _) => Next::Weight(*weight),
            (None, Some(&ALL)) => Next::Promote,
            (None, _) => Next::Stay,
        }
    }
}

/// Parses a percentage with at most one decimal: `5`, `0.5`, `25%`.
fn permille(text: &str) -> Result<u16, StepsError> {
    let refused = || StepsError::Weight(text.trim().to_owned());
    let number = text.trim();
    let number = number.strip_suffix('%').unwrap_or(number);
    let (whole, tenth) = number.split_once('.').unwrap_or((number, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    if !is_number(whole) || !is_number(tenth) || tenth.len() != 1 {
        return Err(refused());
    }
    let [whole, tenth]: [Option<u16>; 2] = [whole, tenth].map(|part| part.parse().ok());
    let permille = whole
        .and_then(|whole| whole.checked_mul(10))
        .zip(tenth)
        .and_then(|(whole, tenth)| whole.checked_add(tenth));
    permille
        .filter(|permille| (1..=ALL).contains(permille))
        .ok_or_else(refused)
}

/// Formats a share as an operator writes it: `5%`, `0.5%`.
pub(crate) fn percent(permille: u16) -> String {
    match (permille / 10, permille % 10) {
        (whole, 0) => format!("{whole}%"),
        (whole, tenth) => format!("{whole}.{tenth}%"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Option<Duration> = Some(Duration::from_secs(60));

    fn weights(weight: Option<&str>, steps: Option<&str>) -> Vec<u16> {
        let every = steps.and(MINUTE);
        let steps = Steps::parse(weight, steps, every).unwrap();
        steps.weights().to_vec()
    }

    #[test]
    fn weights_are_percentages() {
        for (text, expected) in [("5", 50), ("0.5", 5), ("100", 1000), (" 25% ", 250)] {
            assert_eq!(weights(Some(text), None), [expected], "{text:?}");
        }
        for text in [
            "0", "0.0", "100.1", "-5", "5.25", "x", "", "%", "1e1", ".5", "99999",
        ] {
            let refused = Steps::parse(Some(text), None, None).unwrap_err();
            assert_eq!(refused, StepsError::Weight(text.into()), "{text:?}");
        }
        for (permille, text) in [(50, "5%"), (5, "0.5%"), (1000, "100%")] {
            assert_eq!(percent(permille), text);
        }
    }

    #[test]
    fn steps_grow() {
        assert_eq!(weights(None, Some("5,25,100")), [50, 250, 1000]);
        assert_eq!(weights(Some("5"), Some("5,25,100")), [50, 250, 1000]);
        assert_eq!(weights(Some("1"), Some("5,25")), [10, 50, 250]);
        let grow = StepsError::NotGrowing("25,5".into());
        for (weight, steps) in [(None, "25,5"), (Some("50"), "25,5")] {
            assert_eq!(Steps::parse(weight, Some(steps), MINUTE).unwrap_err(), grow);
        }
        let twice = Steps::parse(None, Some("5,5"), MINUTE).unwrap_err();
        assert_eq!(twice, StepsError::NotGrowing("5,5".into()));
    }

    #[test]
    fn steps_and_their_time_belong_together() {
        let parse = |weight, steps, every| Steps::parse(weight, steps, every).unwrap_err();
        assert_eq!(parse(None, None, None), StepsError::None);
        assert_eq!(parse(None, Some("5"), None), StepsError::NoTime);
        assert_eq!(parse(Some("5"), None, MINUTE), StepsError::NoSteps);
        let short = Duration::from_millis(10);
        let too_short = parse(None, Some("5"), Some(short));
        assert_eq!(too_short, StepsError::TooShort(short));
        let many: Vec<String> = (1..=40).map(|step| step.to_string()).collect();
        let many = parse(None, Some(&many.join(",")), MINUTE);
        assert_eq!(many, StepsError::TooMany);
    }

    #[test]
    fn only_a_last_step_with_all_objects_leads_to_the_promotion() {
        let steps = |text| Steps::parse(None, Some(text), MINUTE).unwrap();
        let all = steps("5,25,100");
        assert_eq!(all.first(), 50);
        let next: Vec<Next> = (0..3).map(|step| all.next(step)).collect();
        assert_eq!(next, [Next::Weight(250), Next::Weight(1000), Next::Promote]);
        assert_eq!(steps("5,25").next(1), Next::Stay);
        for weight in ["5", "100"] {
            let alone = Steps::parse(Some(weight), None, None).unwrap();
            assert_eq!(alone.next(0), Next::Stay, "an operator decides");
        }
    }
}
