//! The index of one plugin's history: which versions ran, and which are refused. It decides which
//! versions are kept, and which version a rollback runs.
//!
//! It must not know where the bytes of a version are.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::error::HistoryError;
use super::keep::{BYTES, VERSIONS};
use super::report::Why;

/// The most runs that are kept. A host that starts again and again would otherwise add one each
/// time.
const RUNS: usize = 100;

/// Runs and refused versions. Digests are SHA-256 in hex.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Index {
    /// The runs, oldest first.
    pub(super) runs: Vec<Run>,
    /// The digests of versions that were rolled back, oldest first.
    pub(super) refused: Vec<String>,
}

/// A version that ran, from one swap or start to the next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Run {
    pub(super) digest: String,
    pub(super) version: String,
    pub(super) generation: u64,
    /// The time in UTC: `2026-01-31T12:00:00Z`.
    pub(super) began: String,
    /// `None` while the version runs, and if the process was killed.
    pub(super) ended: Option<String>,
    /// `None` while the version runs.
    pub(super) why: Option<Why>,
    /// The size of the component in bytes.
    pub(super) size: u64,
}

impl Index {
    /// Adds a run that begins now, and ends the run before it for the reason `why`. Drops runs that
    /// are too old.
    pub(super) fn begin(&mut self, run: Run, why: Why) {
        // The time of a crash is not known.
        let at = (why != Why::Crash).then(|| run.began.clone());
        self.end(at, why);
        self.runs.push(run);
        let kept: HashSet<String> = self.kept().into_iter().map(str::to_owned).collect();
        self.runs.retain(|run| kept.contains(&run.digest));
        let surplus = self.runs.len().saturating_sub(RUNS);
        self.runs.drain(..surplus);
    }

    /// Ends the present run, if there is one.
    pub(super) fn end(&mut self, at: Option<String>, why: Why) {
        if let Some(last) = self.runs.last_mut().filter(|last| last.why.is_none()) {
            (last.ended, last.why) = (at, Some(why));
        }
    }

    /// The versions whose bytes are kept, the newest first: at most [`VERSIONS`] versions and
    /// [`BYTES`], but always the last version that ran.
    pub(super) fn kept(&self) -> Vec<&str> {
        let mut kept: Vec<&str> = Vec::new();
        let mut bytes = 0;
        for run in self.runs.iter().rev() {
            if kept.contains(&run.digest.as_str()) {
                continue;
            }
            bytes = run.size.saturating_add(bytes);
            if !kept.is_empty() && (kept.len() >= VERSIONS || bytes > BYTES) {
                break;
            }
            kept.push(&run.digest);
        }
        kept
    }

    /// Returns whether a version was rolled back.
    pub(super) fn refuses(&self, digest: &str) -> bool {
        self.refused.iter().any(|refused| refused == digest)
    }

    /// Refuses the version `from` from now on, and the version `to` no longer.
    pub(super) fn roll_back(&mut self, from: &str, to: &str) {
        self.refused
            .retain(|refused| refused != from && refused != to);
        self.refused.push(from.to_owned());
        let surplus = self.refused.len().saturating_sub(VERSIONS);
        self.refused.drain(..surplus);
    }

    /// Ends the refusal of a version that runs now. If the plugin's source has it, ends all
    /// refusals: the source has other bytes than the refused version.
    pub(super) fn accept(&mut self, digest: &str, is_from_source: bool) {
        self.refused
            .retain(|refused| !is_from_source && refused != digest);
    }

    /// The newest version that is neither `current` nor refused, and whose bytes are there.
    pub(super) fn before(
        &self,
        current: &str,
        is_there: impl Fn(&str) -> bool,
    ) -> Result<&str, HistoryError> {
        let mut others = self.kept();
        others.retain(|digest| *digest != current && !self.refuses(digest));
        let found = others.iter().copied().find(|digest| is_there(digest));
        found.ok_or_else(|| match others.first() {
            None => HistoryError::NothingBefore,
            Some(digest) => HistoryError::Gone(named(digest)),
        })
    }

    /// Returns the digest that begins with this text, which may have `sha256:` in front.
    pub(super) fn find(&self, text: &str) -> Result<&str, HistoryError> {
        let prefix = text.strip_prefix("sha256:").unwrap_or(text).to_lowercase();
        if prefix.is_empty() {
            return Err(HistoryError::Empty);
        }
        let mut found = self.kept();
        found.retain(|digest| digest.starts_with(&prefix));
        match found[..] {
            [digest] => Ok(digest),
            [] => Err(HistoryError::Unknown(text.to_owned())),
            _ => Err(HistoryError::Ambiguous {
                to: text.to_owned(),
                found: found.iter().map(|digest| named(digest)).collect(),
            }),
        }
    }
}

/// Formats a digest as documents and errors show it.
pub(super) fn named(digest: &str) -> String {
    format!("sha256:{digest}")
}

#[cfg(test)]
mod tests;
