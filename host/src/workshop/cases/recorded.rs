//! `recorded.json`: the turn that a case comes from, and whether the case replays it exactly. This
//! module must not know how a case is replayed.

use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use vmhost_runtime::journal::case::{Ask, Case};

use super::json;
use super::read::RECORDED;

/// `recorded.json`. Fields are only ever added, and unknown ones are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Recorded {
    /// The plugin's name.
    pub(crate) plugin: String,
    /// The controller, as `vmhost status` names it.
    pub(crate) controller: String,
    /// The kind of the key.
    pub(crate) kind: String,
    /// `namespace/name`, or `name`.
    pub(crate) key: String,
    /// When the turn began.
    pub(crate) time: String,
    /// The plugin's generation.
    pub(crate) generation: u64,
    /// `sha256:` and the digest of the version that ran.
    pub(crate) digest: String,
    /// Whether the turn failed.
    pub(crate) failed: bool,
    /// Whether the case replays the turn exactly.
    pub(crate) exact: Exact,
    /// Why it is not exact, or may not be: a sentence for each reason.
    pub(crate) because: Vec<String>,
    /// The reads of the call, in order.
    pub(crate) asked: Vec<Ask>,
}

/// Whether a case replays its turn exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Exact {
    /// The version that ran did the same again, and the case has everything that its call got.
    Yes,
    /// The version that ran did something else, or the case lacks something that its call got.
    No,
    /// The case was not replayed.
    #[default]
    Unknown,
}

/// What became of the replay with the version that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// It did the same again.
    Same,
    /// It did something else, or could not run.
    Differs(String),
    /// It was not replayed, for this reason.
    Not(String),
}

impl Recorded {
    /// Describes the turn of a case, and what became of its replay.
    pub(crate) fn new(case: &Case, check: &Check) -> Self {
        let exact = match check {
            Check::Differs(_) => Exact::No,
            _ if !case.missing.is_empty() => Exact::No,
            Check::Same => Exact::Yes,
            Check::Not(_) => Exact::Unknown,
        };
        let replay = match check {
            Check::Same => None,
            Check::Differs(how) => Some(format!("a replay differs:\n{}", how.trim_end())),
            Check::Not(why) => Some(why.clone()),
        };
        let doubts: &[String] = match check {
            // The replay has shown that these reasons made no difference.
            Check::Same => &[],
            _ => &case.doubts,
        };
        let because = case.missing.iter().chain(doubts).cloned();
        Self {
            plugin: case.plugin.clone(),
            controller: case.controller.clone(),
            kind: case.kind.clone(),
            key: case.key.clone(),
            time: case.time.clone(),
            generation: case.generation,
            digest: case.digest.clone(),
            failed: case.failed,
            exact,
            because: because.chain(replay).collect(),
            asked: case.asked.clone(),
        }
    }

    /// Reads the file of a case. Returns `None` if the case is not a recorded turn.
    pub(crate) fn read(folder: &Path) -> Result<Option<Self>> {
        json::read(&folder.join(RECORDED))
    }

    /// Writes the file of a case.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let file = folder.join(RECORDED);
        let text = serde_json::to_string_pretty(self)?;
        std::fs::write(&file, format!("{text}\n")).with_context(|| file.display().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(missing: &[&str]) -> Case {
        Case {
            key: "a/x".into(),
            missing: missing.iter().copied().map(str::to_owned).collect(),
            doubts: vec!["a doubt".into()],
            failed: true,
            ..Case::default()
        }
    }

    #[test]
    fn a_case_is_exact_only_if_it_has_all_and_was_replayed() {
        let differs = Check::Differs("-1\n+2\n".into());
        let not = Check::Not("no plugin".into());
        let told = "a replay differs:\n-1\n+2";
        for (missing, check, exact, because) in [
            (&[][..], &Check::Same, Exact::Yes, &[][..]),
            (&["a seed"], &Check::Same, Exact::No, &["a seed"]),
            (&[], &differs, Exact::No, &["a doubt", told]),
            (
                &["a seed"],
                &differs,
                Exact::No,
                &["a seed", "a doubt", told],
            ),
            (&[], &not, Exact::Unknown, &["a doubt", "no plugin"]),
            (
                &["a seed"],
                &not,
                Exact::No,
                &["a seed", "a doubt", "no plugin"],
            ),
        ] {
            let recorded = Recorded::new(&case(missing), check);
            assert_eq!(recorded.exact, exact, "{check:?}");
            assert_eq!(recorded.because, because, "{check:?}");
            assert!(recorded.failed && recorded.key == "a/x");
        }
    }

    #[test]
    fn what_was_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Recorded::read(folder.path()).unwrap(), None);
        let recorded = Recorded::new(&case(&[]), &Check::Same);
        recorded.write(folder.path()).unwrap();
        assert_eq!(Recorded::read(folder.path()).unwrap(), Some(recorded));
        let file = folder.path().join(RECORDED);
        std::fs::write(&file, r#"{"exact":"perhaps"}"#).unwrap();
        let error = format!("{:#}", Recorded::read(folder.path()).unwrap_err());
        assert!(error.contains("recorded.json: exact"), "{error}");
    }
}
