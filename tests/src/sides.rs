//! Which version of a plugin ran which key, and when: from the stream of turns of a running host.
//!
//! All times are of the host's clock. A host keeps a bounded number of turns between two looks of
//! the stream, so that of a very busy one some may be missing: [`Told::count`] says how many were
//! told.
//! This module must not know canaries.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, ensure};
use k8s_openapi::jiff::Timestamp;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use vmhost_runtime::journal::story::Turn;
use vmhost_runtime::observe::admin::questions::TurnsQuery;

use crate::host::Host;
use crate::wait::eventually;

/// The precision of a told time, in microseconds, and of one that is computed of two.
const PRECISION: i64 = 2;

/// The turns of a host, while it tells them.
pub struct Sides {
    ran: Arc<Mutex<Vec<Ran>>>,
    reading: JoinHandle<Result<()>>,
}

/// The turns that a host has told, in the order in which they began.
#[derive(Debug, Default)]
pub struct Told {
    turns: Vec<Ran>,
}

/// One turn. Times are in microseconds since 1970.
#[derive(Clone, Debug)]
struct Ran {
    key: String,
    generation: u64,
    began: i64,
    ended: i64,
}

impl Ran {
    fn of(turn: &Turn) -> Result<Ran> {
        let began = microseconds(&turn.time)?;
        Ok(Ran {
            key: turn.key.clone(),
            generation: turn.generation,
            began,
            ended: began + (turn.took_ms * 1000.0) as i64,
        })
    }
}

/// Returns a told time in microseconds since 1970.
pub fn microseconds(time: &str) -> Result<i64> {
    let parsed = time.parse::<Timestamp>();
    let parsed = parsed.with_context(|| format!("the time {time:?}"))?;
    Ok(parsed.as_microsecond())
}

impl Sides {
    /// Follows the turns of a host that end from now on.
    pub async fn follow(host: &Host) -> Result<Sides> {
        let query = TurnsQuery {
            follow: true,
            ..TurnsQuery::default()
        };
        let (path, address) = (query.path(), host.admin_addr());
        let stream = TcpStream::connect(address).await;
        let mut stream = stream.with_context(|| format!("connecting to {address}"))?;
        // Of HTTP/1.0, so that the answer is not divided into chunks.
        let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut lines = BufReader::new(stream).lines();
        let status = lines.next_line().await?.unwrap_or_default();
        let is_good = status.split(' ').nth(1) == Some("200");
        ensure!(is_good, "{path} answers {status:?}");
        let ran = Arc::<Mutex<Vec<Ran>>>::default();
        let reading = tokio::spawn(read(lines, ran.clone()));
        Ok(Sides { ran, reading })
    }

    /// Waits until a turn of this key is told, and with it all that ended before. Returns all turns
    /// so far.
    pub async fn end(self, key: &str) -> Result<Told> {
        eventually(&format!("a turn of {key} is told"), async || {
            let is_told = locked(&self.ran).iter().any(|ran| ran.key == key);
            ensure!(
                is_told || !self.reading.is_finished(),
                "the stream has ended"
            );
            Ok(is_told.then_some(()))
        })
        .await?;
        self.reading.abort();
        Ok(self.told())
    }

    /// Returns the turns that a host told until it was killed.
    pub async fn of_killed(mut self) -> Result<Told> {
        let read = (&mut self.reading).await;
        read.context("the reader panicked")??;
        Ok(self.told())
    }

    fn told(&self) -> Told {
        Told::of(std::mem::take(&mut *locked(&self.ran)))
    }
}

fn locked(ran: &Mutex<Vec<Ran>>) -> MutexGuard<'_, Vec<Ran>> {
    ran.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads server-sent events until the stream ends, or breaks with its host.
async fn read(mut lines: Lines<BufReader<TcpStream>>, ran: Arc<Mutex<Vec<Ran>>>) -> Result<()> {
    while let Ok(Some(line)) = lines.next_line().await {
        let Some(data) = line.strip_prefix("data:") else {
            continue;
        };
        // A host that is killed may leave half a line.
        if let Ok(turn) = serde_json::from_str::<Turn>(data) {
            let turn = Ran::of(&turn)?;
            locked(&ran).push(turn);
        }
    }
    Ok(())
}

impl Told {
    fn of(mut turns: Vec<Ran>) -> Told {
        turns.sort_by_key(|ran| ran.began);
        Told { turns }
    }

    /// Returns how many turns were told.
    pub fn count(&self) -> usize {
        self.turns.len()
    }

    /// Returns the keys that were on two versions at once: a turn on one began before a turn on the
    /// other had ended.
    pub fn on_both(&self) -> BTreeSet<String> {
        let mut known: HashMap<&str, HashMap<u64, i64>> = HashMap::new();
        let mut found = BTreeSet::new();
        for ran in &self.turns {
            let ends = known.entry(&ran.key).or_default();
            let is_running = ends.iter().any(|(generation, ended)| {
                *generation != ran.generation && ran.began + PRECISION < *ended
            });
            if is_running {
                found.insert(ran.key.clone());
            }
            let ended = ends.entry(ran.generation).or_insert(ran.ended);
            *ended = ran.ended.max(*ended);
        }
        found
    }

    /// Returns the keys that had a turn on the candidate, and then one on the live version.
    pub fn went_back(&self, live: u64, candidate: u64) -> BTreeSet<String> {
        let mut taken = HashSet::new();
        let mut found = BTreeSet::new();
        for ran in &self.turns {
            if ran.generation == candidate {
                taken.insert(ran.key.as_str());
            } else if ran.generation == live && taken.contains(ran.key.as_str()) {
                found.insert(ran.key.clone());
            }
        }
        found
    }

    /// Returns when the last turn of a generation began, in microseconds since 1970.
    pub fn last_start(&self, generation: u64) -> Option<i64> {
        let of = self.turns.iter().filter(|ran| ran.generation == generation);
        of.map(|ran| ran.began).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns: the key, the generation, and when it began and ended.
    fn told(turns: &[(&str, u64, i64, i64)]) -> Told {
        let ran = turns.iter().map(|(key, generation, began, ended)| Ran {
            key: (*key).to_owned(),
            generation: *generation,
            began: *began,
            ended: *ended,
        });
        Told::of(ran.collect())
    }

    fn keys(found: BTreeSet<String>) -> Vec<String> {
        found.into_iter().collect()
    }

    #[test]
    fn turns_on_two_versions_that_overlap_are_found() {
        let told = told(&[
            // Told later than it began.
            ("a", 2, 100, 200),
            ("a", 1, 0, 150),
            ("b", 1, 0, 100),
            ("b", 2, 100, 200),
            ("c", 1, 0, 1000),
            ("c", 1, 10, 20),
            ("c", 2, 500, 600),
            ("d", 1, 0, 1000),
            ("d", 1, 10, 20),
        ]);
        assert_eq!(keys(told.on_both()), ["a", "c"]);
        assert_eq!(told.count(), 9);
    }

    #[test]
    fn a_key_that_leaves_the_candidate_is_found() {
        let told = told(&[
            ("a", 1, 0, 10),
            ("a", 2, 20, 30),
            ("b", 2, 20, 30),
            ("b", 1, 40, 50),
            ("c", 1, 40, 50),
        ]);
        assert_eq!(keys(told.went_back(1, 2)), ["b"]);
        assert_eq!(keys(told.went_back(2, 1)), ["a"]);
        assert_eq!((told.last_start(2), told.last_start(3)), (Some(20), None));
    }

    #[test]
    fn a_turn_is_read_with_its_times() {
        let turn = Turn {
            time: "2026-01-01T00:00:00.000001Z".into(),
            key: "default/x".into(),
            generation: 3,
            took_ms: 0.25,
            ..Turn::default()
        };
        let ran = Ran::of(&turn).unwrap();
        assert_eq!((ran.generation, ran.ended - ran.began), (3, 250));
        let later = microseconds("2026-01-01T00:00:00.001Z").unwrap();
        assert_eq!(later - ran.began, 999);
        assert!(microseconds("now").is_err());
    }
}
