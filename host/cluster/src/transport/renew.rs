//! Replaces the credentials of a connection while it runs.
//!
//! ```text
//! each 30 s, before a plugin's answer expires, after a failure --> read --changed?--> new Backend
//! ```
//! client-go breaks all connections when a client certificate changes. Here only idle links close:
//! an API server checks a certificate when a request begins, so a running watch may continue; when
//! the server ends it, the next watch uses the new certificate.
//!
//! This module owns when to read again. It must not know where credentials come from
//! ([`crate::credentials`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use http::header;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::backend::Backend;
use super::headers;
use crate::backoff::Backoff;
use crate::credentials::{Credentials, Reader};
use crate::direct::{Direct, Headers, Links, Peer};
use crate::error::BoxError;
use crate::kubeconfig::Configuration;
use vmhost_core::chain_line;

/// Minimum time between two reads, so that a server that refuses every request does not make a
/// plugin run for each of them.
const PAUSE: Duration = Duration::from_secs(5);

/// Builds the backends of one connection, each with the latest credentials.
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

    /// Reads the credentials again. Returns a new backend if something changed. After an error the
    /// next call retries.
    async fn renew(&mut self, refused: bool) -> Result<Option<Backend>, BoxError> {
        let read = self.reader.read(refused).await?;
        if read == self.used {
            return Ok(None);
        }
        let before = (&self.used.authorities, &self.used.identity);
        if before != (&read.authorities, &read.identity) {
            self.links = Arc::new(Links::new(&self.peer, &read)?);
            tracing::info!(
                "{}: certificates changed; new connections use them",
                self.place
            );
        } else {
            tracing::debug!("{}: token changed", self.place);
        }
        self.used = read;
        self.backend().map(Some)
    }
}

/// The task that keeps a connection's credentials up to date. Dropping this value ends the task.
pub(super) struct Renewal {
    failures: Arc<Failures>,
    task: AbortHandle,
}

/// Failures that requests report to the task.
#[derive(Default)]
struct Failures {
    /// Whether the server has refused the credentials.
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

    /// Reports that a request failed with the present credentials, with a 401 if `refused`. The
    /// credentials are read again soon.
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
        // Read again, whether the time elapsed or a failure was reported.
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
                let warning = chain_line(error.as_ref());
                if warning != last_warning {
                    tracing::warn!(
                        "{}: cannot renew credentials: {warning}; still using the old ones",
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
