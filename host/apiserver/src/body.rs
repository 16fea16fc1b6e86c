//! Reads the body of a request.
//!
//! Owns how large a body may be, and how long a client may take to send it. Must not know what is
//! in it.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::StreamExt;

use crate::status::ApiError;

/// The most bytes of a body, as in a real server.
const MOST: usize = 3 << 20;
/// The most bytes that are read of a body that is too large. A client that is still sending would
/// not read the refusal: its connection would be reset.
const DROPPED: usize = 64 << 20;
/// The longest time that a body may take: how long a real server works on a request.
const LONGEST: Duration = Duration::from_secs(60);

/// Reads a whole body. What is too large is not kept.
pub(crate) async fn read(body: Body) -> Result<Bytes, ApiError> {
    let read = tokio::time::timeout(LONGEST, whole(body)).await;
    read.unwrap_or_else(|_| Err(ApiError::timed_out()))
}

async fn whole(body: Body) -> Result<Bytes, ApiError> {
    let mut data = body.into_data_stream();
    let mut parts: Vec<Bytes> = Vec::new();
    let mut size = 0_usize;
    while let Some(part) = data.next().await {
        let part = part.map_err(|error| ApiError::bad_request(error.to_string()))?;
        size = size.saturating_add(part.len());
        if size <= MOST {
            parts.push(part);
        } else if size <= DROPPED {
            parts.clear();
        } else {
            break;
        }
    }
    if size > MOST {
        return Err(ApiError::too_large());
    }
    Ok(match parts.as_slice() {
        // Most bodies arrive in one part, which is not copied.
        [one] => one.clone(),
        parts => {
            let mut whole = Vec::with_capacity(size);
            for part in parts {
                whole.extend_from_slice(part);
            }
            Bytes::from(whole)
        }
    })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;

    use super::*;

    fn body(parts: usize, of: usize) -> Body {
        let part = Bytes::from(vec![b'x'; of]);
        Body::from_stream(stream::iter(
            (0..parts).map(move |_| Ok::<_, Infallible>(part.clone())),
        ))
    }

    #[tokio::test]
    async fn a_body_has_three_mib_at_most() {
        assert_eq!(read(Body::empty()).await.unwrap().len(), 0);
        assert_eq!(read(body(3, 1 << 20)).await.unwrap().len(), MOST);
        let refused = read(body(4, 1 << 20)).await.unwrap_err();
        assert_eq!(refused, ApiError::too_large());
        // A body without an end is not read to its end.
        let refused = read(body(usize::MAX, 1 << 20)).await.unwrap_err();
        assert_eq!(refused.code, 413);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_does_not_send_for_ever() {
        let refused = read(Body::from_stream(stream::pending::<
            Result<Bytes, Infallible>,
        >()));
        assert_eq!(refused.await.unwrap_err().code, 504);
    }
}
