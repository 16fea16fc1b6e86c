//! What envtest sees of etcd: a program that is healthy until it is stopped.
//!
//! Must not know objects: they live in `kube-apiserver`.

use anyhow::{Context, Result};
use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;

use super::flags::Flags;
use crate::signals::StopSignals;

/// envtest looks here for flags that only some versions have.
pub(crate) const HELP: &str = "\
etcd, as vmhost's kube-apiserver needs it: it says that it is healthy, and keeps nothing.

  --listen-client-urls URL     the address that answers /health; further ones are ignored
  --unsafe-no-fsync            accepted, like all other flags, without an effect
";
const ADDRESS: &str = "http://localhost:2379";

/// Answers `/health` until a signal ends the process.
pub(crate) async fn run(flags: &Flags) -> Result<()> {
    let mut stop = StopSignals::new()?;
    let urls = flags.value("listen-client-urls").unwrap_or(ADDRESS);
    let url = urls.split(',').next().unwrap_or(urls);
    let (_, address) = url.split_once("://").unwrap_or(("", url));
    let address = address.trim_end_matches('/');
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address} (--listen-client-urls)"))?;
    let router = Router::new().route("/health", get(healthy));
    tokio::select! {
        ended = axum::serve(listener, router).into_future() => {
            ended.context("cannot answer any longer")
        }
        () = stop.first() => Ok(()),
    }
}

async fn healthy() -> &'static str {
    r#"{"health":"true","reason":""}"#
}
