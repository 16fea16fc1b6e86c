//! What a cluster says about itself: whether it answers, and which cluster it is. It must not know
//! what is made of the answers.

use vmhost_cluster::Connection;
use vmhost_core::chain_line;

use super::report::Trouble;

/// Asks whether a cluster answers, and takes the credentials.
pub(super) async fn check(connection: &Connection) -> Result<(), Trouble> {
    let checked = connection.check().await;
    checked.map_err(|error| Trouble::Ill(chain_line(&error)))?;
    Ok(())
}

/// What tells a cluster from others: its `kube-system`, or the way to it if that may not be read.
pub(super) async fn identify(connection: &Connection) -> Result<String, Trouble> {
    let uid = uid(connection).await?;
    Ok(uid.unwrap_or_else(|| connection.route().to_owned()))
}

/// The uid of a cluster's `kube-system`. `None` if that may not be read.
pub(super) async fn uid(connection: &Connection) -> Result<Option<String>, Trouble> {
    connection.cluster_id().await.map_err(|error| {
        Trouble::Ill(format!(
            "cannot read its namespace kube-system: {}",
            chain_line(&error)
        ))
    })
}
