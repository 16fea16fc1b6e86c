//! The other listeners of the host, such as that of its metrics: HTTP/1.1, plain or over TLS, with
//! the limits of the webhooks' listener.
//!
//! This module owns their connections. It must not know what is asked on them.

use std::convert::Infallible;
use std::error::Error as StdError;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::accept::{CONNECTIONS, Ends, HANDSHAKE, HEAD, accept};
use crate::error::Error;
use crate::https::Https;
use crate::silence::{InFlight, Requests};

/// A listener with limits.
pub struct Limited {
    /// Which listener it is, in logs.
    name: &'static str,
    listener: TcpListener,
    /// How many connections are served at once.
    places: usize,
    /// How long a client may take for a request's head.
    head: Duration,
    tls: Option<(Https, TlsAcceptor)>,
}

impl Limited {
    /// Will serve on a socket; over TLS with `https`.
    pub fn new(
        name: &'static str,
        listener: TcpListener,
        https: Option<Https>,
    ) -> Result<Limited, Error> {
        let tls = match https {
            Some(https) => {
                let acceptor = https.acceptor()?;
                Some((https, acceptor))
            }
            None => None,
        };
        Ok(Limited {
            name,
            listener,
            places: CONNECTIONS,
            head: HEAD,
            tls,
        })
    }

    /// Serves until the future is dropped, and its connections with it.
    pub async fn serve<S, B>(self, service: S)
    where
        S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
        S: Clone + Send + 'static,
        S::Future: Send + 'static,
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn StdError + Send + Sync>>,
    {
        let (name, head) = (self.name, self.head);
        let (https, tls) = match self.tls {
            Some((https, tls)) => (Some(https), Some(tls)),
            None => (None, None),
        };
        // It ends with the process.
        let ends = Ends::default();
        let serving = accept(
            name,
            self.listener,
            self.places,
            ends,
            move |stream, requests| {
                let speaking = (service.clone(), requests, head);
                connected(name, stream, tls.clone(), speaking)
            },
        );
        match https {
            None => serving.await,
            Some(https) => tokio::select! {
                () = serving => {}
                () = https.keep() => {}
            },
        }
    }
}

async fn connected<S, B>(
    name: &'static str,
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    speaking: (S, Requests, Duration),
) where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else {
        return speak(name, stream, speaking).await;
    };
    match timeout(HANDSHAKE, tls.accept(stream)).await {
        Ok(Ok(stream)) => speak(name, stream, speaking).await,
        Ok(Err(error)) => tracing::debug!(%error, "{name}: tls handshake failed"),
        Err(_) => tracing::debug!("{name}: tls handshake timed out"),
    }
}

async fn speak<I, S, B>(
    name: &'static str,
    stream: I,
    (service, requests, head): (S, Requests, Duration),
) where
    I: AsyncRead + AsyncWrite + Unpin,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let in_flight = requests.begin();
        let answer = service.call(request);
        async move {
            let response = answer.await?;
            let answered = response.map(|body| Answer {
                body,
                _in_flight: in_flight,
            });
            Ok::<_, Infallible>(answered)
        }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(head);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "{name}: connection ended");
    }
}

/// The body of an answer, whose request is in flight until its last piece is handed to the
/// connection: some go on for long.
struct Answer<B> {
    body: B,
    _in_flight: InFlight,
}

impl<B: Body + Unpin> Body for Answer<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
