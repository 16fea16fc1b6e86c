//! TLS for another server of the host, such as that of its metrics: accepts connections and shakes
//! hands, with a certificate out of a folder, or one that the process makes for itself.
//!
//! This module owns sockets until the handshake is done. It must not know what is served.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{interval, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use vmhost_core::chain_line;

use crate::certificates::authority::{Authority, Leaf};
use crate::certificates::folder::{ADMIN, Folder, METRICS};
use crate::certificates::shown::{self, Shown};
use crate::error::Error;

/// How many handshakes are made at once. Further connections wait in the socket's queue.
const HANDSHAKES: usize = 64;
/// How long a client may take for its handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Pause between two looks at the certificate.
const PERIOD: Duration = Duration::from_secs(10);
/// Pause after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// A connection over TLS.
pub type Connection = TlsStream<TcpStream>;

/// What a server over TLS needs besides its socket.
pub struct Https {
    /// Which server it is, in logs.
    server: &'static str,
    shown: Arc<Shown>,
    source: Source,
    /// What was wrong at the last look.
    told: Option<String>,
}

/// Where the certificate comes from.
enum Source {
    Folder(Folder),
    Own(Option<Box<Own>>),
}

/// A certificate of this process, in memory only: clients encrypt, but cannot know the server by
/// it.
struct Own {
    authority: Authority,
    leaf: Leaf,
}

/// Connections whose handshakes are done. Dropping it closes the socket.
pub struct Connections(mpsc::Receiver<(Connection, SocketAddr)>);

impl Https {
    /// Shows the certificate `tls.crt` of a folder, with `tls.key`, and reads them again when they
    /// change: for metrics.
    pub async fn of_folder(path: PathBuf) -> Result<Https, Error> {
        Https::of(METRICS, Source::Folder(Folder::new(path, METRICS))).await
    }

    /// Like [`Https::of_folder`], for the admin address.
    pub async fn of_admin_folder(path: PathBuf) -> Result<Https, Error> {
        Https::of(ADMIN, Source::Folder(Folder::new(path, ADMIN))).await
    }

    /// Shows a certificate that this process makes, and makes again before it ends.
    pub async fn self_made() -> Result<Https, Error> {
        Https::of(METRICS, Source::Own(None)).await
    }

    async fn of(server: &'static str, source: Source) -> Result<Https, Error> {
        let mut https = Https {
            server,
            shown: Arc::default(),
            source,
            told: None,
        };
        https.look().await?;
        Ok(https)
    }

    /// Accepts connections on a socket, on the runtime of the caller.
    pub fn accept(self, listener: TcpListener) -> Result<Connections, Error> {
        let mut config = shown::server_config(self.shown.clone())?;
        // A scraper has no use for the streams of HTTP/2, which keep a server busier.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let tls = TlsAcceptor::from(Arc::new(config));
        let (done, connections) = mpsc::channel(HANDSHAKES);
        tokio::spawn(accept(listener, tls, self, done));
        Ok(Connections(connections))
    }

    async fn look(&mut self) -> Result<(), Error> {
        match &mut self.source {
            Source::Folder(folder) => folder.look(&self.shown).await,
            Source::Own(own) => {
                let now = Timestamp::now();
                let is_good = |own: &Own| own.leaf.is_good(&own.authority, now);
                if !own.as_deref().is_some_and(is_good) {
                    let made = Own::make(now)?;
                    self.shown.show(made.leaf.key.clone());
                    *own = Some(Box::new(made));
                }
                Ok(())
            }
        }
    }

    /// Looks again. A trouble is told once while it lasts, and the certificate before stays.
    async fn look_again(&mut self) {
        let trouble = self.look().await.err().map(|error| chain_line(&error));
        if let Some(trouble) = trouble.as_ref().filter(|_| self.told != trouble) {
            tracing::warn!("{}: {trouble}", self.server);
        }
        self.told = trouble;
    }
}

impl Own {
    fn make(now: Timestamp) -> Result<Own, Error> {
        let authority = Authority::make(now)?;
        let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let leaf = authority.leaf(&names, now)?;
        Ok(Own { authority, leaf })
    }
}

impl Connections {
    /// Returns the next connection; `None` after the end of the runtime only.
    pub async fn next(&mut self) -> Option<(Connection, SocketAddr)> {
        self.0.recv().await
    }
}

async fn accept(
    listener: TcpListener,
    tls: TlsAcceptor,
    mut https: Https,
    done: mpsc::Sender<(Connection, SocketAddr)>,
) {
    let server = https.server;
    let mut handshakes = JoinSet::new();
    let mut looks = interval(PERIOD);
    loop {
        let has_place = handshakes.len() < HANDSHAKES;
        tokio::select! {
            () = done.closed() => return,
            _ = looks.tick() => https.look_again().await,
            Some(_) = handshakes.join_next(), if !handshakes.is_empty() => {}
            accepted = listener.accept(), if has_place => match accepted {
                Ok((stream, address)) => {
                    let shaken = shake_hands(server, (stream, address), tls.clone(), done.clone());
                    handshakes.spawn(shaken);
                }
                // Most likely out of file descriptors: other connections may end in the meantime.
                Err(error) => {
                    tracing::warn!(%error, "{server}: cannot accept a connection; retrying");
                    sleep(PAUSE).await;
                }
            }
        }
    }
}

async fn shake_hands(
    server: &str,
    (stream, address): (TcpStream, SocketAddr),
    tls: TlsAcceptor,
    done: mpsc::Sender<(Connection, SocketAddr)>,
) {
    let _ = stream.set_nodelay(true);
    match timeout(HANDSHAKE, tls.accept(stream)).await {
        // The server is gone if it does not take it.
        Ok(Ok(stream)) => drop(done.send((stream, address)).await),
        Ok(Err(error)) => tracing::debug!(%error, "{server}: tls handshake failed"),
        Err(_) => tracing::debug!("{server}: tls handshake timed out"),
    }
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, ServerName};
    use rustls::{ClientConfig, RootCertStore};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio_rustls::TlsConnector;

    use super::*;
    use crate::certificates::shown::provider;

    #[tokio::test]
    async fn a_plain_client_keeps_no_other_one_out() {
        let https = Https::self_made().await.unwrap();
        let Source::Own(Some(own)) = &https.source else {
            panic!("it made no certificate");
        };
        let mut roots = RootCertStore::empty();
        let authority = own.authority.certificate.as_bytes();
        roots
            .add(CertificateDer::from_pem_slice(authority).unwrap())
            .unwrap();
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut connections = https.accept(listener).unwrap();

        // One that says nothing, and one that speaks no TLS.
        let _silent = TcpStream::connect(address).await.unwrap();
        let mut plain = TcpStream::connect(address).await.unwrap();
        plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        let stream = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        let mut client = connector.connect(name, stream).await.unwrap();
        client.write_all(b"hello").await.unwrap();
        client.flush().await.unwrap();
        let (mut served, _) = connections.next().await.unwrap();
        assert_eq!(served.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
        let mut said = [0; 5];
        served.read_exact(&mut said).await.unwrap();
        assert_eq!(&said, b"hello");
    }

    #[tokio::test]
    async fn a_folder_without_a_certificate_is_an_error_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let error = Https::of_folder(folder.path().to_owned()).await;
        let text = error.err().unwrap().to_string();
        assert!(
            text.contains("--metrics-cert-dir") && text.contains("tls.crt"),
            "{text}"
        );
        let error = Https::of_admin_folder(folder.path().to_owned()).await;
        let text = error.err().unwrap().to_string();
        assert!(text.contains("--admin-cert-dir"), "{text}");
    }
}
