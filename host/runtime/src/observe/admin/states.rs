//! A stream of the state as server-sent events: one event for each change, at most two a second. It
//! looks at the state only while a client listens. This module must not know where the state comes
//! from.

use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::time::Instant;

use super::room::Room;
use super::state::HostState;

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(500);

/// The most time between two events when nothing but times changes.
const REFRESH: Duration = Duration::from_secs(5);

/// How long a browser waits before it connects again.
const AGAIN: Duration = Duration::from_secs(1);

/// The states that a client follows.
struct Follow<F> {
    /// Returns the present state. `None` if the host shuts down.
    look: F,
    /// The threads on which the states are made.
    room: Room,
    sent: Option<Sent>,
}

/// The last event.
struct Sent {
    /// The state of the last event, without times.
    lasting: HostState,
    at: Instant,
    /// Whether this is the last event of this host.
    last: bool,
}

/// Answers with the present state and then with each changed one, until the host shuts down. `look`
/// returns the present state. The states contain no names of keys and no warnings, so that an event
/// stays small however many keys fail.
pub(crate) fn follow(
    look: impl Fn() -> Option<HostState> + Send + 'static,
    room: Room,
) -> Response {
    let follow = Follow {
        look,
        room,
        sent: None,
    };
    let events = stream::unfold(follow, |mut follow| async move {
        loop {
            match follow.sent.as_ref().map(|sent| sent.last) {
                Some(true) => return None,
                Some(false) => tokio::time::sleep(PAUSE).await,
                None => {}
            }
            let room = follow.room.clone();
            let (state, back) = room.make(move || follow.look()).await??;
            follow = back;
            if let Some(state) = state {
                let event = Event::default().retry(AGAIN).json_data(state);
                return Some((event, follow));
            }
        }
    });
    Sse::new(events)
        .keep_alive(KeepAlive::default())
        .into_response()
}

impl<F: Fn() -> Option<HostState>> Follow<F> {
    /// Looks at the state once, and returns it if it has to be sent. Returns `None` if the host
    /// shuts down.
    fn look(mut self) -> Option<(Option<HostState>, Self)> {
        let state = counts((self.look)()?);
        let now = Instant::now();
        let new = Sent {
            lasting: lasting(state.clone()),
            at: now,
            last: state.stopping,
        };
        let is_due = self.sent.as_ref().is_none_or(|sent| {
            sent.lasting != new.lasting || now.saturating_duration_since(sent.at) >= REFRESH
        });
        if !is_due {
            return Some((None, self));
        }
        self.sent = Some(new);
        Some((Some(state), self))
    }
}

/// Returns the state without the names of keys.
fn counts(mut state: HostState) -> HostState {
    state.warnings.clear();
    for plugin in &mut state.plugins {
        for controller in &mut plugin.controllers {
            controller.failing.keys.clear();
        }
    }
    state
}

/// Returns the state without times, which change even if nothing happens.
fn lasting(mut state: HostState) -> HostState {
    state.time.clear();
    for plugin in &mut state.plugins {
        plugin.breaker.pause_ms = 0;
        for controller in &mut plugin.controllers {
            controller.queue.longest_running_ms = 0;
        }
    }
    for store in &mut state.stores {
        store.silence_ms = None;
    }
    state
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::StreamExt;
    use serde_json::{Value, json};

    use super::*;

    fn state(warned: usize, silence: u64) -> HostState {
        let store = json!({
            "kind": "Pod.v1", "wanted": "", "phase": "watching", "about": "",
            "synced": true, "objects": 1, "bytes": 1, "relists": 0, "skipped": 0, "failures": 0,
            "subscribers": 1, "silenceMs": silence,
        });
        let warning = json!({ "name": "never-quiet", "controller": "a", "key": "b", "text": "c" });
        serde_json::from_value(json!({
            "version": "1", "pid": 1, "time": silence.to_string(), "stopping": false,
            "leader": "alone", "plugins": [], "stores": [store], "warnings": [warning],
            "warned": warned,
        }))
        .unwrap()
    }

    /// Returns the numbers of warnings in the events that a client gets for these states, the
    /// number of looks, and the time that passed on the paused clock.
    async fn seen(states: &'static [(usize, u64)]) -> (Vec<u64>, usize, Duration) {
        let looks = Arc::new(AtomicUsize::new(0));
        let counted = looks.clone();
        let start = Instant::now();
        let look = move || {
            let look = counted.fetch_add(1, Ordering::SeqCst);
            let (warned, silence) = states.get(look)?;
            Some(state(*warned, *silence))
        };
        let answer = follow(look, Room::default());
        let mut body = answer.into_body().into_data_stream();
        let mut seen = Vec::new();
        while let Some(Ok(bytes)) = body.next().await {
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            let data = text.lines().find_map(|line| line.strip_prefix("data: "));
            let Some(data) = data else { continue };
            let state: Value = serde_json::from_str(data).unwrap();
            assert_eq!(state["warnings"], json!([]), "an event names no keys");
            seen.push(state["warned"].as_u64().unwrap());
        }
        (seen, looks.load(Ordering::SeqCst), start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_differs_is_sent() {
        let (seen, looks, took) = seen(&[(1, 10), (1, 20), (2, 30), (2, 40), (1, 50)]).await;
        assert_eq!((seen, looks), (vec![1, 2, 1], 6));
        assert!(took >= 5 * PAUSE, "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn times_are_refreshed_now_and_then() {
        const LONG: [(usize, u64); 12] = [(1, 0); 12];
        let (seen, _, _) = seen(&LONG).await;
        assert_eq!(seen, [1, 1]);
    }
}
