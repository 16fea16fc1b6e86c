//! The events that a running host sends until it ends. This module must not know what an event is
//! about.

use std::collections::VecDeque;

use anyhow::{Result, anyhow, bail};
use axum::body::{Body, BodyDataStream};
use futures_util::StreamExt;
use hyper::client::conn::http1::SendRequest;
use serde::de::DeserializeOwned;

use super::events::Events;

/// The maximum size of a document or an event. 64 plugins of 64 controllers with 100 failing keys
/// of 512 bytes would give a state of 200 MiB, far more than any real host.
pub(super) const LONGEST: usize = 256 << 20;

/// The events that a host sends until it ends.
pub(crate) struct Follow {
    address: String,
    body: BodyDataStream,
    events: Events,
    /// The data of events that the command has not taken yet.
    ready: VecDeque<Vec<u8>>,
    /// Keeps the connection open.
    _sender: SendRequest<Body>,
}

impl Follow {
    /// Follows the body of an answer of the host at this address.
    pub(super) fn new(address: String, body: Body, sender: SendRequest<Body>) -> Self {
        Self {
            address,
            body: body.into_data_stream(),
            events: Events::default(),
            ready: VecDeque::new(),
            _sender: sender,
        }
    }

    /// Waits for the next event. The end of the host is an error.
    pub(crate) async fn next<T: DeserializeOwned>(&mut self) -> Result<T> {
        let address = &self.address;
        loop {
            if let Some(data) = self.ready.pop_front() {
                return serde_json::from_slice(&data)
                    .map_err(|error| anyhow!("an event of {address} is not valid: {error}"));
            }
            match self.body.next().await {
                Some(Ok(bytes)) => self.ready.extend(self.events.push(&bytes)),
                Some(Err(error)) => bail!("the vmhost at {address} is gone: {error}"),
                None => bail!("the vmhost at {address} shut down"),
            }
            if self.events.open() > LONGEST {
                bail!("an event of {address} is longer than {LONGEST} bytes");
            }
        }
    }
}
