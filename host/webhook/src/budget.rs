//! The memory for the bodies of requests, and the time in which a body has to arrive.
//!
//! Clients are not authenticated: anybody who reaches the port may announce a body and not send it.
//! So a request holds nothing until something of its body has come. It then takes room for the
//! [`BEGINNING`], and room for all of the body once that has arrived. Most reviews end within their
//! beginning, and wait for no large one. Room for all of it is taken in one step, so that two
//! requests never wait for each other. What has come of a body that waits for room is not in that
//! room: so only [`WAITING`] bodies may wait.
//!
//! This module must not know what a body holds.

use std::fmt::Display;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

/// How much of a body is read before there is room for all of it.
pub(crate) const BEGINNING: usize = 64 << 10;
/// How many requests may wait for room.
const WAITING: usize = 512;
/// How long a client may take to send a body.
const ARRIVAL: Duration = Duration::from_secs(5);
/// How many bytes it must send in each second that it takes longer.
const RATE: usize = 4 << 20;

/// The memory for bodies of one kind.
pub(crate) struct Budget {
    /// The longest body.
    most: usize,
    /// The longest body of unknown length.
    unknown: usize,
    /// For beginnings, in KiB.
    beginnings: Semaphore,
    /// For longer bodies, in KiB.
    whole: Semaphore,
    /// For requests that wait for one of these.
    waiting: Semaphore,
}

/// Why a body was not read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unread {
    #[error("the body is longer than {0} bytes")]
    TooLarge(usize),
    #[error("the body did not arrive in time")]
    Slow,
    #[error("there was no room for the body in time: too many others are being answered")]
    NoRoom,
    #[error("the body broke off: {0}")]
    Cut(String),
}

impl Budget {
    /// Bodies of at most `most` bytes, or `unknown` if their length is not announced. All that are
    /// not longer than a beginning may hold `beginnings` bytes at once, all others `whole`.
    pub fn new(most: usize, unknown: usize, beginnings: usize, whole: usize) -> Budget {
        Budget {
            most,
            unknown,
            beginnings: Semaphore::new(beginnings / 1024),
            // Each body takes one KiB more than it may need.
            whole: Semaphore::new(whole / 1024 + whole.div_ceil(most)),
            waiting: Semaphore::new(WAITING),
        }
    }

    /// Reads a body. Its room is taken until the permit is dropped.
    pub async fn read<B>(
        &self,
        mut body: B,
        deadline: Instant,
    ) -> Result<(Bytes, SemaphorePermit<'_>), Unread>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: Display,
    {
        let length = match body.size_hint().exact() {
            None => self.unknown,
            Some(length) => match usize::try_from(length) {
                Ok(length) if length <= self.most => length,
                _ => return Err(Unread::TooLarge(self.most)),
            },
        };
        let beginning = length.min(BEGINNING);
        let mut read = BytesMut::new();
        let soon = || deadline.min(Instant::now() + ARRIVAL);
        let mut has_ended = append(&mut body, &mut read, (1, length), soon()).await?;
        let room = self.take(&self.beginnings, beginning, deadline).await?;
        if !has_ended && (read.len() < beginning || beginning == length) {
            has_ended = append(&mut body, &mut read, (beginning, length), soon()).await?;
        }
        if has_ended && read.len() <= beginning {
            return Ok((read.freeze(), room));
        }
        drop(room);
        let room = self.take(&self.whole, length, deadline).await?;
        if !has_ended {
            read.reserve(length - read.len());
            let longest = ARRIVAL + Duration::from_secs((length / RATE) as u64);
            let arrival = deadline.min(Instant::now() + longest);
            append(&mut body, &mut read, (length, length), arrival).await?;
        }
        Ok((read.freeze(), room))
    }

    /// Takes room for bytes, and waits for it until the deadline.
    async fn take<'a>(
        &self,
        room: &'a Semaphore,
        bytes: usize,
        deadline: Instant,
    ) -> Result<SemaphorePermit<'a>, Unread> {
        let kib = u32::try_from(bytes / 1024 + 1).map_err(|_| Unread::TooLarge(bytes))?;
        if let Ok(room) = room.try_acquire_many(kib) {
            return Ok(room);
        }
        let _waits = self.waiting.try_acquire().map_err(|_| Unread::NoRoom)?;
        match timeout_at(deadline, room.acquire_many(kib)).await {
            Ok(Ok(room)) => Ok(room),
            // It is never closed.
            Ok(Err(_)) | Err(_) => Err(Unread::NoRoom),
        }
    }
}

/// Appends what arrives until `enough` bytes are there, or the body ends. Returns whether it has
/// ended. It must not be longer than `length`.
async fn append<B>(
    body: &mut B,
    to: &mut BytesMut,
    (enough, length): (usize, usize),
    deadline: Instant,
) -> Result<bool, Unread>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Display,
{
    let appending = async {
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Unread::Cut(error.to_string()))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if data.len() > length - to.len() {
                return Err(Unread::TooLarge(length));
            }
            to.extend_from_slice(&data);
            if to.len() >= enough && !body.is_end_stream() && enough < length {
                return Ok(false);
            }
        }
        Ok(true)
    };
    let appended = timeout_at(deadline, appending).await;
    appended.unwrap_or(Err(Unread::Slow))
}

#[cfg(test)]
mod tests;
