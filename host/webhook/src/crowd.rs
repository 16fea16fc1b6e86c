//! The connections of a listener, so that one on which nothing is asked gives its place to another.
//!
//! Clients are not authenticated: without this, whoever opens enough connections and says nothing
//! keeps all others out until these end by themselves. This module must not know sockets.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::silence::Requests;

/// All connections. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Crowd(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    next: u64,
    all: HashMap<u64, (Requests, CancellationToken)>,
}

/// The place of a connection.
pub(crate) struct Guest {
    crowd: Crowd,
    number: u64,
    /// The requests of the connection.
    pub requests: Requests,
    /// Cancelled when the connection has to go.
    pub leave: CancellationToken,
}

impl Crowd {
    /// Adds a connection until the guard is dropped.
    pub fn enter(&self) -> Guest {
        let (requests, leave) = (Requests::default(), CancellationToken::new());
        let mut inner = self.lock();
        inner.next += 1;
        let number = inner.next;
        inner.all.insert(number, (requests.clone(), leave.clone()));
        drop(inner);
        Guest {
            crowd: self.clone(),
            number,
            requests,
            leave,
        }
    }

    /// Ends the connection on which nothing has been asked for longest. One with a request in
    /// flight stays.
    pub fn make_room(&self) {
        let mut inner = self.lock();
        let resting = inner.all.iter().filter_map(|(number, (requests, _))| {
            let since = requests.rest_since()?;
            Some((since, *number))
        });
        let longest = resting.min().map(|(_, number)| number);
        let gone = longest.and_then(|number| inner.all.remove(&number));
        drop(inner);
        if let Some((_, leave)) = gone {
            leave.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Each change is one step, so that it is whole after a panic too.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.crowd.lock().all.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_connection_that_rests_longest_goes_and_a_busy_one_stays() {
        let crowd = Crowd::default();
        let mut guests = Vec::new();
        for _ in 0..4 {
            guests.push(crowd.enter());
            advance(Duration::from_secs(1)).await;
        }
        let _busy = guests[0].requests.begin();
        drop(guests[1].requests.begin());
        drop(guests.remove(3));
        let gone = |guests: &[Guest]| -> Vec<bool> {
            let gone = guests.iter().map(|guest| guest.leave.is_cancelled());
            gone.collect()
        };
        for expected in [
            [false, false, true],
            [false, true, true],
            [false, true, true],
        ] {
            crowd.make_room();
            assert_eq!(gone(&guests), expected);
        }
    }
}
