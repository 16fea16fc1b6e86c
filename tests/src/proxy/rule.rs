//! What the proxy does to requests that a test picks.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::watch;

use super::Request;
use crate::wait::DEADLINE;

/// One order of a test; the first rule that matches and has some left is taken.
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

/// Makes another body of an answer's.
pub(super) type Change = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// An answer that the proxy gives in the server's place: a `Status`, as kube-apiserver words it.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// HTTP status code.
    pub code: u16,
    /// The `Status`.
    pub status: Value,
    /// Seconds of a `Retry-After` header.
    pub retry_after: Option<u32>,
}

impl Refusal {
    /// A `Status` with this code, reason and message.
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

    /// 403, as access control says it.
    pub fn forbidden() -> Refusal {
        Refusal::new(
            403,
            "Forbidden",
            "refused by the fault proxy: User \"vmhost\" cannot do that",
        )
    }

    /// 404 for an object.
    pub fn not_found() -> Refusal {
        Refusal::new(404, "NotFound", "refused by the fault proxy: not found")
    }

    /// 409 for a stale resourceVersion.
    pub fn conflict() -> Refusal {
        Refusal::new(
            409,
            "Conflict",
            "refused by the fault proxy: the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// 422, as validation says it.
    pub fn invalid() -> Refusal {
        Refusal::new(
            422,
            "Invalid",
            "refused by the fault proxy: spec.memory: Invalid value",
        )
    }

    /// 429 with `Retry-After` in seconds, there and in the details.
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

    /// 410 for a list or a watch from a version that is too old.
    pub fn expired() -> Refusal {
        Refusal::new(
            410,
            "Expired",
            "refused by the fault proxy: too old resource version",
        )
    }

    /// 500.
    pub fn internal() -> Refusal {
        Refusal::new(
            500,
            "InternalError",
            "refused by the fault proxy: internal error",
        )
    }

    /// 401.
    pub fn unauthorized() -> Refusal {
        Refusal::new(401, "Unauthorized", "Unauthorized")
    }
}

/// Requests that wait for the test. Dropping it releases them.
pub struct Hold {
    open: watch::Sender<bool>,
    waiting: watch::Receiver<usize>,
}

/// The proxy's end of a [`Hold`].
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
    /// Waits until at least `n` requests have been held, counting those that gave up since.
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

    /// How many requests have been held so far.
    pub fn held(&self) -> usize {
        *self.waiting.borrow()
    }

    /// Lets the held requests go on, and later ones pass.
    pub fn release(self) {
        self.open.send_replace(true);
    }
}

impl Gate {
    /// Returns when the hold is released or dropped.
    pub(super) async fn pass(mut self) {
        if *self.open.borrow() {
            return;
        }
        self.waiting.send_modify(|count| *count += 1);
        let _ = self.open.wait_for(|open| *open).await;
    }
}
