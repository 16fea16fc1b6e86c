//! Replaces the credentials of a connection while it runs.
//!
//! ```text
//! each 30 s, before a plugin's answer expires, after a failure --> read --changed?--> new Backend
//! ```
//! client-go breaks all connections when a client certificate changes. Here only idle links close:
//! an API server checks a certificate when a request begins, so a running watch may go on; when the
//! server ends it, the next one uses the new certificate.
//!
//! It owns when to read again. It must not know where credentials come from
//! ([`crate::credentials`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use http::header;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::{Backend, headers};
use crate::api::{BoxError, chain};
use crate::backoff::Backoff;
use crate::credentials::{Credentials, Reader};
use crate::direct::{Direct, Headers, Links, Peer};
use crate::kubeconfig::Configuration;

/// The shortest time between two reads. A server that refuses every request must not make a plugin
/// run for each of them.
const PAUSE: Duration = Duration::from_secs(5);

/// Makes the backends of one connection, each with the credentials that were read last.
pub(super) struct Source {
    place: String,
    peer: Peer,
    fixed: Headers,
    reader: Reader,
    used: Credentials,
    links: Arc<Links>,
}

impl Source {
    pub(super) async fn new(configuration: &Configuration, peer: Peer) -> Result<Self, BoxError> {
        let mut reader = Reader::new(configuration)?;
        let used = reader.read(false).await?;
        Ok(Self {
            place: configuration.place.clone(),
            fixed: headers::fixed(&configuration.user).await?,
            links: Arc::new(Links::new(&peer, &used)?),
            peer,
            reader,
            used,
        })
    }

    pub(super) fn backend(&self) -> Result<Backend, BoxError> {
        let mut headers = self.fixed.clone();
        if let Some(value) = &self.used.authorization {
            headers.push((header::AUTHORIZATION, value.clone()));
        }
        let direct = Direct::new(&self.peer, headers, self.links.clone())?;
        Ok(Backend::Direct(direct))
    }

    /// Reads again. Returns a new backend if something has changed. After an error the next call
    /// tries again.
    async fn renew(&mut self, refused: bool) -> Result<Option<Backend>, BoxError> {
        let read = self.reader.read(refused).await?;
        if read == self.used {
            return Ok(None);
        }
        let before = (&self.used.authorities, &self.used.identity);
        if before != (&read.authorities, &read.identity) {
            self.links = Arc::new(Links::new(&self.peer, &read)?);
            tracing::info!(
                "{}: its certificates have changed; new connections use them",
                self.place
            );
        } else {
            tracing::debug!("{}: its token has changed", self.place);
        }
        self.used = read;
        self.backend().map(Some)
    }
}

/// The task that keeps a connection's credentials up to date; it ends with this value.
pub(super) struct Renewal {
    failures: Arc<Failures>,
    task: AbortHandle,
}

/// What requests report to the task.
#[derive(Default)]
struct Failures {
    /// The server has refused the credentials.
    refused: AtomicBool,
    reported: Notify,
}

impl Renewal {
    /// Returns `None` if the credentials cannot change.
    pub(super) fn start(source: Source, backend: Arc<ArcSwap<Backend>>) -> Option<Self> {
        source.reader.next_read_in()?;
        let failures = Arc::<Failures>::default();
        let task = tokio::spawn(keep_renewed(source, backend, failures.clone()));
        Some(Self {
            failures,
            task: task.abort_handle(),
        })
    }

    /// Reports that a request has failed with the present credentials, by a 401 if `refused`. They
    /// are read again soon.
    pub(super) fn report(&self, refused: bool) {
        if refused {
            self.failures.refused.store(true, Ordering::Relaxed);
        }
        self.failures.reported.notify_one();
    }
}

impl Drop for Renewal {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn keep_renewed(mut source: Source, backend: Arc<ArcSwap<Backend>>, failures: Arc<Failures>) {
    let mut backoff = Backoff::new();
    let mut last_warning = String::new();
    loop {
        tokio::time::sleep(PAUSE).await;
        let next_read = source.reader.next_read_in().unwrap_or_default();
        // Elapsed or reported, it is time to read.
        let _ = tokio::time::timeout(next_read, failures.reported.notified()).await;
        let refused = failures.refused.swap(false, Ordering::Relaxed);
        match source.renew(refused).await {
            Ok(renewed) => {
                last_warning.clear();
                backoff.reset();
                if let Some(renewed) = renewed {
                    backend.store(Arc::new(renewed));
                    // Requests that were refused meanwhile carried the old credentials.
                    failures.refused.store(false, Ordering::Relaxed);
                }
            }
            Err(error) => {
                let warning = chain(error.as_ref());
                if warning != last_warning {
                    tracing::warn!(
                        "{}: cannot renew its credentials, the old ones stay in use: {warning}",
                        source.place
                    );
                    last_warning = warning;
                }
                tokio::time::sleep(backoff.delay()).await;
            }
        }
    }
}

#[cfg(test)]
mod tests;
