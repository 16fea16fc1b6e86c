//! Accepts connections on a socket and serves a bounded number of them at once, so that clients
//! which say nothing take neither the host's memory nor each other's places.
//!
//! This module owns which connections have places. It must not know what is spoken on them.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::crowd::Crowd;
use crate::silence::Requests;

/// How many connections a listener serves at once. For a further one, that on which nothing was
/// asked for longest ends; if all are busy, it waits.
pub(crate) const CONNECTIONS: usize = 1000;
/// How long a client may take for its TLS handshake.
pub(crate) const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a client may take for a request's head, and stay silent between two requests: longer
/// than the 90 s for which the API server keeps a connection, so that it closes first.
pub(crate) const HEAD: Duration = Duration::from_secs(120);
/// Pause after a connection could not be accepted, or found no place.
const PAUSE: Duration = Duration::from_millis(100);

/// How a listener ends.
#[derive(Clone, Default)]
pub(crate) struct Ends {
    /// No connection is accepted, and connections end after their answers.
    pub stop: CancellationToken,
    /// Connections are dropped.
    pub kill: CancellationToken,
}

/// Accepts connections until stopped, then waits for the last one; or until killed, then drops all.
/// `serve` speaks on a connection and counts its requests. `name` is the listener's, in logs.
pub(crate) async fn accept<F>(
    name: &str,
    listener: TcpListener,
    places: usize,
    ends: Ends,
    serve: impl Fn(TcpStream, Requests) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let Ends { stop, kill } = ends;
    let (places, crowd) = (Arc::new(Semaphore::new(places)), Crowd::default());
    let mut connections = JoinSet::new();
    // The connection that waits for a place.
    let mut waiting: Option<TcpStream> = None;
    loop {
        tokio::select! {
            () = kill.cancelled() => break,
            () = stop.cancelled() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept(), if waiting.is_none() => match accepted {
                Ok((stream, _)) => {
                    waiting = Some(stream);
                    if places.available_permits() == 0 {
                        crowd.make_room();
                    }
                }
                // Most likely out of file descriptors.
                Err(error) => {
                    crowd.make_room();
                    tracing::warn!(%error, "{name}: cannot accept a connection; retrying in {PAUSE:?}");
                    tokio::time::sleep(PAUSE).await;
                }
            },
            // All were busy before.
            () = tokio::time::sleep(PAUSE), if waiting.is_some() => crowd.make_room(),
            // It is never closed.
            Ok(place) = places.clone().acquire_owned(), if waiting.is_some() => {
                if let Some(stream) = waiting.take() {
                    let guest = crowd.enter();
                    let served = serve(stream, guest.requests.clone());
                    connections.spawn(async move {
                        let leave = guest.leave.clone();
                        leave.run_until_cancelled(served).await;
                        drop((guest, place));
                    });
                }
            }
        }
    }
    drop(listener);
    tokio::select! {
        () = kill.cancelled() => connections.shutdown().await,
        () = async { while connections.join_next().await.is_some() {} } => {}
    }
}
