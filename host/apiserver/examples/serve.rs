//! Serves an empty cluster until interrupted, to try clients manually:
//! `serve [kubeconfig-to-write]`.

use vmhost_apiserver::{Options, Server, State};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::start(State::new(), Options::default()).await?;
    let path = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "kubeconfig".to_owned());
    std::fs::write(&path, server.kubeconfig())?;
    tokio::signal::ctrl_c().await?;
    server.stop().await;
    Ok(())
}
