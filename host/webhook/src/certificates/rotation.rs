//! When an authority is replaced, as a function of what is kept, of what the cluster trusts, and of
//! the time.
//!
//! A new authority is trusted everywhere before it signs, and the old one is trusted long after.
//! This module must not know clocks, nor how the cluster is asked.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::authority::{AHEAD, Authority};
use super::moment::Moment;
use crate::error::Error;

/// How often a host reads the Secret if nothing happens.
pub(crate) const LOOK: SignedDuration = SignedDuration::from_hours(12);
/// How long a new authority stands in every bundle before it signs: longer than any host goes
/// without a look at the Secret ([`LOOK`]). Hosts with other plugins look after other bundles, and
/// API servers take their time to see a change.
const SETTLE: SignedDuration = SignedDuration::from_hours(13);
/// How long an old authority is trusted after it has signed its last.
const TRUSTED: SignedDuration = SignedDuration::from_hours(24 * 30);
/// When a new authority signs although it is not trusted everywhere: the old one ends.
const LAST_DAY: SignedDuration = SignedDuration::from_hours(24);

/// The Secret's key with the certificates, for people and tools.
const BUNDLE: &str = "ca.crt";
/// The Secret's key with all that is kept.
const STATE: &str = "state.json";

/// Whether everything that registers webhooks holds a bundle, as far as one host can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// All objects hold it.
    Everywhere,
    /// At least one object lacks it.
    NotEverywhere,
    /// None is known to lack it, and at least one could not be read.
    Unknown,
}

/// All that the Secret keeps.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Kept {
    /// The authority that signs.
    pub current: Authority,
    /// The authority that will sign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Next>,
    /// Authorities that have signed.
    #[serde(default)]
    old: Vec<Old>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Next {
    authority: Authority,
    /// Since when every bundle holds it.
    #[serde(default)]
    everywhere_since: Option<Moment>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Old {
    /// PEM.
    certificate: String,
    trusted_until: Moment,
}

impl Kept {
    /// Returns what a first host keeps.
    pub fn make(now: Timestamp) -> Result<Kept, Error> {
        Ok(Kept::of(Authority::make(now)?))
    }

    /// Returns what is kept of a single authority.
    pub fn of(current: Authority) -> Kept {
        Kept {
            current,
            next: None,
            old: Vec::new(),
        }
    }

    /// Reads a Secret's values; `None` if there is nothing yet. The error does not quote them.
    pub fn read(data: &BTreeMap<String, Vec<u8>>) -> Result<Option<Kept>, String> {
        let Some(text) = data.get(STATE) else {
            return Ok(None);
        };
        let kept = serde_json::from_slice(text);
        kept.map(Some)
            .map_err(|error| format!("{STATE} is damaged at line {}", error.line()))
    }

    /// Returns a Secret's values.
    pub fn data(&self) -> Result<BTreeMap<String, Vec<u8>>, String> {
        let state = serde_json::to_vec(self).map_err(|error| error.to_string())?;
        Ok(BTreeMap::from([
            (BUNDLE.to_owned(), self.bundle().into_bytes()),
            (STATE.to_owned(), state),
        ]))
    }

    /// Returns the certificates that clients must trust, PEM. It is the same text before and after
    /// another authority begins to sign.
    pub fn bundle(&self) -> String {
        let next = self.next.iter().map(|next| &next.authority.certificate);
        let old = self.old.iter().map(|old| &old.certificate);
        let mut all: Vec<&str> = next.chain(old).map(String::as_str).collect();
        all.push(&self.current.certificate);
        all.sort_unstable();
        all.concat()
    }

    /// Takes the next step of a rotation. `held` is about [`Kept::bundle`]. Returns what is to be
    /// kept instead; `None` if nothing changes.
    pub fn turned(&self, held: Held, now: Timestamp) -> Result<Option<Kept>, Error> {
        let mut kept = self.clone();
        kept.old.retain(|old| old.trusted_until.0 > now);
        kept.next = match kept.next.take() {
            None if kept.current.ends_within(AHEAD, now) => Some(Next {
                authority: Authority::make(now)?,
                everywhere_since: None,
            }),
            None => None,
            Some(mut next) => {
                next.everywhere_since = match (held, next.everywhere_since) {
                    (Held::NotEverywhere, _) => None,
                    (Held::Everywhere, None) => Some(Moment(now)),
                    // A host that cannot read an object does not take back what others saw.
                    (_, since) => since,
                };
                let is_settled = next
                    .everywhere_since
                    .is_some_and(|since| now.duration_since(since.0) >= SETTLE);
                if is_settled || kept.current.ends_within(LAST_DAY, now) {
                    let until = kept.current.not_after.0.min(now + TRUSTED);
                    let signed = std::mem::replace(&mut kept.current, next.authority);
                    kept.old.push(Old {
                        certificate: signed.certificate,
                        trusted_until: Moment(until),
                    });
                    None
                } else {
                    Some(next)
                }
            }
        };
        Ok((kept != *self).then_some(kept))
    }
}

#[cfg(test)]
mod tests;
