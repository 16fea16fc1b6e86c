//! Watches the keys that have turns for warnings: which warnings are new, and how many there are
//! now.
//!
//! A task calls [`Watch::look`] every [`STEP`]. A look only covers keys with a turn since the
//! last look, so that an idle host has nothing to do. This module must not know that task, Events
//! or metrics, and reads no clock.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use vmhost_core::{ObjectName, Snapshot};

use crate::journal::record::{Act, Origin, Quiet, TurnRecord};
use crate::journal::redact::Redact;
use crate::journal::sensitive::Sensitive;
use crate::journal::story::Warning;
use crate::journal::wakes::Wakened;
use crate::journal::warnings::warnings;
use crate::journal::{Journal, mark_own};

/// The pause between two looks.
pub(crate) const STEP: Duration = Duration::from_secs(2);

/// Number of warnings that are kept: 1,000 of about half a KiB each. If a policy is wrong about
/// every object, the first thousand warnings show it.
const MOST: usize = 1000;

/// A warning ends this long after its key's last turn.
const FORGET: Duration = Duration::from_secs(600);

/// How far a look reaches back before the last one, because a record is written a moment after its
/// turn has ended.
const OVERLAP: Duration = Duration::from_secs(1);

/// Every warning about turns that are not quiet needs at least this many of them. Most keys of a
/// busy host have only one.
const FEWEST_TURNS: usize = 2;

/// A controller's label and a key.
type Place = (Arc<str>, ObjectName);

/// The warnings of a host, and the rules that hide sensitive values in every document of the
/// journal.
pub struct Warnings {
    watch: Mutex<Watch>,
    /// The warnings that held after the last look.
    held: ArcSwap<Vec<Warning>>,
    pub(crate) redact: Arc<Redact>,
}

impl Warnings {
    /// Starts without any warnings.
    pub(crate) fn new(sensitive: Vec<Sensitive>) -> Arc<Self> {
        Arc::new(Self {
            watch: Mutex::new(Watch::new(Instant::now())),
            held: ArcSwap::from_pointee(Vec::new()),
            redact: Arc::new(Redact::new(sensitive)),
        })
    }

    /// Like [`Watch::look`]. A look takes long, but [`Warnings::all`] does not wait for it.
    pub(crate) fn look(
        &self,
        journal: &Journal,
        now: Instant,
        tell: impl Fn(&str, &ObjectName) -> Vec<Warning>,
    ) -> Vec<News> {
        let mut watch = self.watch.lock();
        let news = watch.look(journal, now, tell);
        self.held.store(Arc::new(watch.warnings()));
        news
    }

    /// The warnings that hold, by controller and key.
    pub(crate) fn all(&self) -> Vec<Warning> {
        self.held.load().to_vec()
    }
}

/// The warnings of a host.
#[derive(Debug)]
pub(crate) struct Watch {
    /// When the last look began.
    looked: Instant,
    keys: BTreeMap<Place, Known>,
}

/// A key that has a warning, or had one a short time ago.
#[derive(Debug)]
struct Known {
    /// When a look saw its last turn.
    seen: Instant,
    warnings: Vec<Told>,
}

/// A warning that a look has returned.
#[derive(Debug)]
struct Told {
    warning: Warning,
    /// Whether the key's newest turns show it. A warning that comes and goes is returned only once.
    holds: bool,
}

/// A new warning, with what an Event about it needs.
#[derive(Debug)]
pub(crate) struct News {
    /// The warning.
    pub(crate) warning: Warning,
    /// The controller and the kind of the key.
    pub(crate) origin: Arc<Origin>,
    /// The key.
    pub(crate) key: ObjectName,
    /// The object that the newest recorded turn saw, if it is known.
    pub(crate) object: Option<Snapshot>,
}

/// The turns of one key that are not quiet.
#[derive(Default)]
struct Seen {
    turns: usize,
    /// Whether one of them ended since the last look.
    recently: bool,
}

/// The records of one key.
#[derive(Default)]
struct Records {
    turns: Vec<TurnRecord>,
    quiet: Vec<Quiet>,
    woken: Vec<Wakened>,
}

impl Watch {
    /// Watches the turns that end from now on.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            looked: now,
            keys: BTreeMap::new(),
        }
    }

    /// Looks at the turns since the last look, and returns the new warnings. `tell` finds the
    /// warnings about a key, with sensitive values hidden.
    pub(crate) fn look(
        &mut self,
        journal: &Journal,
        now: Instant,
        tell: impl Fn(&str, &ObjectName) -> Vec<Warning>,
    ) -> Vec<News> {
        let then = self.looked.checked_sub(OVERLAP).unwrap_or(self.looked);
        self.looked = now;
        let is_full = self.len() >= MOST;
        self.keys.retain(|_, known| {
            let is_over = now.saturating_duration_since(known.seen) >= FORGET;
            !is_over && (!is_full || known.warnings.iter().any(|told| told.holds))
        });
        let places = self.places(journal, then);
        let mut news = Vec::new();
        let records = records(journal, &places);
        for (place, records) in records {
            let Records {
                turns,
                quiet,
                woken,
            } = records;
            let found = match warnings(&turns, &quiet, &woken) {
                found if found.is_empty() => found,
                _ => tell(&place.0, &place.1),
            };
            let newest = turns.last();
            let origins = newest.map(|turn| &turn.origin);
            let Some(origin) = origins.or(quiet.last().map(|quiet| &quiet.origin)) else {
                continue;
            };
            let key = &place.1;
            news.extend(
                self.keep(&place, found, now)
                    .into_iter()
                    .map(|warning| News {
                        warning,
                        origin: origin.clone(),
                        key: key.clone(),
                        object: newest.and_then(|turn| turn.object.clone()),
                    }),
            );
        }
        news
    }

    /// The warnings that hold, by controller and key.
    pub(crate) fn warnings(&self) -> Vec<Warning> {
        let told = self.keys.values().flat_map(|known| &known.warnings);
        let holding = told.filter(|told| told.holds).map(|told| &told.warning);
        holding.cloned().collect()
    }

    fn len(&self) -> usize {
        self.keys.values().map(|known| known.warnings.len()).sum()
    }

    /// Returns the keys that may have a new warning, or may lose one. A pause is not a turn, and a
    /// single quiet turn is no reason for a warning.
    fn places(&self, journal: &Journal, then: Instant) -> BTreeSet<Place> {
        let mut turns: HashMap<Place, Seen> = HashMap::new();
        let mut places = BTreeSet::new();
        journal.walk(
            |turn| {
                let place = (turn.origin.controller.clone(), turn.key.clone());
                let seen = turns.entry(place).or_default();
                seen.turns += 1;
                seen.recently |= turn.ended() > then;
            },
            |quiet| {
                let ran = matches!(quiet.act, Act::Returned(_));
                let place = (quiet.origin.controller.clone(), quiet.key.clone());
                let matters = quiet.is_prompt() || self.keys.contains_key(&place);
                if ran && matters && quiet.ended() > then {
                    places.insert(place);
                }
            },
        );
        let known = |place: &Place| self.keys.contains_key(place);
        let turns = turns.into_iter();
        let turns = turns
            .filter(|(place, seen)| seen.recently && (seen.turns >= FEWEST_TURNS || known(place)));
        places.extend(turns.map(|(place, _)| place));
        places
    }

    /// Replaces the warnings of a key. Returns the new ones.
    fn keep(&mut self, place: &Place, found: Vec<Warning>, now: Instant) -> Vec<Warning> {
        let mut room = MOST.saturating_sub(self.len());
        if !self.keys.contains_key(place) && (found.is_empty() || room == 0) {
            return Vec::new();
        }
        let known = self.keys.entry(place.clone()).or_insert_with(|| Known {
            seen: now,
            warnings: Vec::new(),
        });
        known.seen = now;
        for told in &mut known.warnings {
            told.holds = false;
        }
        let mut news = Vec::new();
        for warning in found {
            let mut told = known.warnings.iter_mut();
            if let Some(told) = told.find(|told| told.warning.name == warning.name) {
                *told = Told {
                    warning,
                    holds: true,
                };
            } else if room > 0 {
                room -= 1;
                news.push(warning.clone());
                known.warnings.push(Told {
                    warning,
                    holds: true,
                });
            }
        }
        news
    }
}

/// Returns all records of these keys, and the changes that woke them, with one walk over each.
fn records(journal: &Journal, places: &BTreeSet<Place>) -> BTreeMap<Place, Records> {
    let keys: HashSet<&ObjectName> = places.iter().map(|(_, key)| key).collect();
    if keys.is_empty() {
        return BTreeMap::new();
    }
    let (turns, quiet) = journal.pick(
        |turn| keys.contains(&turn.key),
        |quiet| keys.contains(&quiet.key),
    );
    let mut found: BTreeMap<Place, Records> = BTreeMap::new();
    for turn in turns {
        let place = (turn.origin.controller.clone(), turn.key.clone());
        found.entry(place).or_default().turns.push(turn);
    }
    for turn in quiet {
        let place = (turn.origin.controller.clone(), turn.key.clone());
        found.entry(place).or_default().quiet.push(turn);
    }
    // Another controller may have a key with the same name.
    found.retain(|place, _| places.contains(place));
    for change in journal.wakes.pick(|change| keys.contains(&change.key)) {
        let place = (change.controller.clone(), change.key.clone());
        if let Some(records) = found.get_mut(&place) {
            records.woken.push(change);
        }
    }
    for records in found.values_mut() {
        mark_own(&mut records.woken, &records.turns);
    }
    found
}

#[cfg(test)]
mod tests;
