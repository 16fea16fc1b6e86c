//! The faults that the proxy applies to the requests that a test selects.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::watch;

use super::Request;
use crate::wait::DEADLINE;

/// One rule of a test. The first matching rule with remaining uses applies.
pub(super) struct Rule {
    pub left: usize,
    pub action: Action,
    pub matching: Box<dyn Fn(&Request) -> bool + Send>,
}

#[derive(Clone)]
pub(super) enum Action {
    Refuse(Refusal),
    LoseAnswer,
    Hold(Gate),
    Rewrite(Change),
}

/// Converts the body of an answer.
pub(super) type Change = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// An answer that the proxy gives in the server's place: a `Status`, worded like kube-apiserver's.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// HTTP status code.
    pub code: u16,
    /// The `Status`.
    pub status: Value,
    /// The seconds in a `Retry-After` header.
    pub retry_after: Option<u32>,
}

impl Refusal {
    /// Returns a `Status` with this code, reason and message.
    pub fn new(code: u16, reason: &str, message: &str) -> Refusal {
        let status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "code": code,
        });
        Refusal {
            code,
            status,
            retry_after: None,
        }
    }

    /// Returns a 403 of access control.
    pub fn forbidden() -> Refusal {
        Refusal::new(
            403,
            "Forbidden",
            "refused by the fault proxy: User \"vmhost\" cannot do that",
        )
    }

    /// Returns a 404 for an object.
    pub fn not_found() -> Refusal {
        Refusal::new(404, "NotFound", "refused by the fault proxy: not found")
    }

    /// Returns a 409 for a stale resourceVersion.
    pub fn conflict() -> Refusal {
        Refusal::new(
            409,
            "Conflict",
            "refused by the fault proxy: the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// Returns a 422 of validation.
    pub fn invalid() -> Refusal {
        Refusal::new(
            422,
            "Invalid",
            "refused by the fault proxy: spec.memory: Invalid value",
        )
    }

    /// Returns a 429 with `Retry-After` in seconds, in the header and in the details.
    pub fn too_many_requests(retry_after: u32) -> Refusal {
        let mut refusal = Refusal::new(
            429,
            "TooManyRequests",
            "refused by the fault proxy: too many requests",
        );
        refusal.status["details"] = json!({ "retryAfterSeconds": retry_after });
        refusal.retry_after = Some(retry_after);
        refusal
    }

    /// Returns a 410 for a list or a watch from a version that is too old.
    pub fn expired() -> Refusal {
        Refusal::new(
            410,
            "Expired",
            "refused by the fault proxy: too old resource version",
        )
    }

    /// Returns a 500.
    pub fn internal() -> Refusal {
        Refusal::new(
            500,
            "InternalError",
            "refused by the fault proxy: internal error",
        )
    }

    /// Returns a 401.
    pub fn unauthorized() -> Refusal {
        Refusal::new(401, "Unauthorized", "Unauthorized")
    }
}

/// Held requests. Dropping it releases them.
pub struct Hold {
    open: watch::Sender<bool>,
    waiting: watch::Receiver<usize>,
}

/// The proxy's side of a [`Hold`].
#[derive(Clone)]
pub(super) struct Gate {
    open: watch::Receiver<bool>,
    waiting: watch::Sender<usize>,
}

pub(super) fn gate() -> (Hold, Gate) {
    let (open_tx, open) = watch::channel(false);
    let (waiting, waiting_rx) = watch::channel(0);
    (
        Hold {
            open: open_tx,
            waiting: waiting_rx,
        },
        Gate { open, waiting },
    )
}

impl Hold {
    /// Waits until at least `n` requests have been held, including those whose client gave up.
    pub async fn reached(&self, n: usize) -> anyhow::Result<()> {
        let mut waiting = self.waiting.clone();
        match tokio::time::timeout(DEADLINE, waiting.wait_for(|count| *count >= n)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => anyhow::bail!("the proxy ended"),
            Err(_) => anyhow::bail!(
                "{} requests were held and not {n} within {DEADLINE:?}",
                *self.waiting.borrow()
            ),
        }
    }

    /// Returns how many requests have been held so far.
    pub fn held(&self) -> usize {
        *self.waiting.borrow()
    }

    /// Releases the held requests, and lets later ones pass.
    pub fn release(self) {
        self.open.send_replace(true);
    }
}

impl Gate {
    /// Waits until the hold is released or dropped.
    pub(super) async fn pass(mut self) {
        if *self.open.borrow() {
            return;
        }
        self.waiting.send_modify(|count| *count += 1);
        let _ = self.open.wait_for(|open| *open).await;
    }
}
