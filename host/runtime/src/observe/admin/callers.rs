//! Asks the API server for a caller's user and rights, and remembers the answers for as long as
//! controller-runtime's filters do.
//!
//! All that is remembered is bounded, however many tokens, users and paths there are: tokens and
//! questions are kept as digests. This module must not know what is served.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use lru::LruCache;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::sync::{Semaphore, SemaphorePermit};
use vmhost_cluster::{Caller, CallerReviews, Error};

/// How long the API server's answer about a token holds.
const KNOWN: Duration = Duration::from_secs(60);

/// How long a right that a caller has is not asked for again.
const ALLOWED: Duration = Duration::from_secs(5 * 60);

/// How long a right that a caller lacks is not asked for again: a grant is felt soon.
const DENIED: Duration = Duration::from_secs(30);

/// The answers of each kind that are kept: far more than there are scrapers. Callers without a
/// valid token and questions that were denied have shares of their own, so that they push no other
/// answer out.
const KEPT: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1023);

/// Reviews in flight. A flood of requests waits here, and not in the API server.
const AT_ONCE: usize = 8;

/// Requests that wait for a review or are in one. Further ones are turned away, so that a flood
/// does not keep those of scrapers waiting for long: at 5 ms a review, this is a sixth of a second.
const WAITING: usize = 256;

/// The longest token that is asked about. Those of service accounts have 1 KiB.
const LONGEST: usize = 16 << 10;

/// How often the log tells that the API server cannot be asked: anybody may cause the line.
const TOLD: Duration = Duration::from_secs(60);

/// A digest of a token, or of a caller, a verb and a path.
type Key = [u8; 32];

/// Knows callers of this host.
pub(crate) struct Callers {
    reviews: CallerReviews,
    waiting: Semaphore,
    places: Semaphore,
    known: Mutex<Kept<Caller>>,
    strangers: Mutex<Kept<()>>,
    allowed: Mutex<Kept<()>>,
    denied: Mutex<Kept<()>>,
    told: Mutex<Option<Instant>>,
}

/// What the API server said about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// The caller may do it.
    Allowed,
    /// This user may not do it.
    Denied(String),
    /// The API server does not know the token.
    Unknown,
    /// It was not asked: too many requests wait.
    Busy,
}

/// Answers, each with the time until which it holds.
struct Kept<V>(LruCache<Key, (Instant, V)>);

impl<V: Clone> Kept<V> {
    fn new() -> Mutex<Self> {
        Mutex::new(Self(LruCache::new(KEPT)))
    }

    fn get(&mut self, key: &Key, now: Instant) -> Option<V> {
        let (until, value) = self.0.get(key)?;
        (now < *until).then(|| value.clone())
    }

    fn put(&mut self, key: Key, value: V, until: Instant) {
        self.0.put(key, (until, value));
    }
}

impl Callers {
    pub(crate) fn new(reviews: CallerReviews) -> Self {
        Self {
            reviews,
            waiting: Semaphore::new(WAITING),
            places: Semaphore::new(AT_ONCE),
            known: Kept::new(),
            strangers: Kept::new(),
            allowed: Kept::new(),
            denied: Kept::new(),
            told: Mutex::default(),
        }
    }

    /// Asks whether the caller with this token may do this at this path.
    pub(crate) async fn ask(&self, token: &str, verb: &str, path: &str) -> Result<Said, Error> {
        match self.caller(token).await? {
            Ok(caller) => self.may(caller, verb, path).await,
            Err(said) => Ok(said),
        }
    }

    /// Returns whether the log should tell that the API server cannot be asked.
    pub(crate) fn is_news(&self) -> bool {
        let now = Instant::now();
        let mut told = self.told.lock();
        let is_news = told.is_none_or(|last| now.duration_since(last) >= TOLD);
        if is_news {
            *told = Some(now);
        }
        is_news
    }

    async fn caller(&self, token: &str) -> Result<Result<Caller, Said>, Error> {
        if token.len() > LONGEST {
            return Ok(Err(Said::Unknown));
        }
        let key: Key = Sha256::digest(token.as_bytes()).into();
        let now = Instant::now();
        let known = self.known.lock().get(&key, now);
        if let Some(caller) = known {
            return Ok(Ok(caller));
        }
        let stranger = self.strangers.lock().get(&key, now);
        if stranger.is_some() {
            return Ok(Err(Said::Unknown));
        }
        let Some(_place) = self.place().await else {
            return Ok(Err(Said::Busy));
        };
        let found = self.reviews.who(token).await?;
        let until = Instant::now() + KNOWN;
        match found {
            Some(caller) => {
                self.known.lock().put(key, caller.clone(), until);
                Ok(Ok(caller))
            }
            None => {
                self.strangers.lock().put(key, (), until);
                Ok(Err(Said::Unknown))
            }
        }
    }

    async fn may(&self, caller: Caller, verb: &str, path: &str) -> Result<Said, Error> {
        let key = digest(&caller, verb, path);
        let now = Instant::now();
        let allowed = self.allowed.lock().get(&key, now);
        if allowed.is_some() {
            return Ok(Said::Allowed);
        }
        let denied = self.denied.lock().get(&key, now);
        if denied.is_some() {
            return Ok(Said::Denied(caller.name));
        }
        let Some(_place) = self.place().await else {
            return Ok(Said::Busy);
        };
        let access = self.reviews.may(&caller, verb, path).await?;
        let now = Instant::now();
        if access.allowed {
            self.allowed.lock().put(key, (), now + ALLOWED);
            return Ok(Said::Allowed);
        }
        self.denied.lock().put(key, (), now + DENIED);
        Ok(Said::Denied(caller.name))
    }

    /// Waits for a place among the reviews in flight. Returns `None` if too many wait.
    async fn place(&self) -> Option<[SemaphorePermit<'_>; 2]> {
        let waiting = self.waiting.try_acquire().ok()?;
        let place = self.places.acquire().await.ok()?;
        Some([waiting, place])
    }
}

/// Returns the digest of a caller, a verb and a path.
fn digest(caller: &Caller, verb: &str, path: &str) -> Key {
    let Caller {
        name,
        uid,
        groups,
        extra,
    } = caller;
    let mut hasher = Sha256::new();
    for part in [name.as_str(), uid, verb, path] {
        add(&mut hasher, part);
    }
    add_all(&mut hasher, groups);
    for (name, values) in extra {
        add(&mut hasher, name);
        add_all(&mut hasher, values);
    }
    hasher.finalize().into()
}

/// Adds a text with its length, so that no two lists of texts have the same bytes.
fn add(hasher: &mut Sha256, text: &str) {
    hasher.update((text.len() as u64).to_le_bytes());
    hasher.update(text.as_bytes());
}

fn add_all(hasher: &mut Sha256, texts: &[String]) {
    hasher.update((texts.len() as u64).to_le_bytes());
    for text in texts {
        add(hasher, text);
    }
}

#[cfg(test)]
mod tests;
