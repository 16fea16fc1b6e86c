//! Whether a store shows all objects of its kind, so that one that it does not show does not exist.
//! It must not know what the objects are for.

use std::time::Duration;

use vmhost_cluster::Subscription;

/// How long the first list may take.
const FIRST: Duration = Duration::from_secs(5);

/// Waits until a store shows all objects of its kind. The error says why it does not.
pub(crate) async fn listed(subscription: &Subscription) -> Result<(), String> {
    let waited = tokio::time::timeout(FIRST, subscription.synced()).await;
    // The wait also ends for a kind that the cluster stopped to serve, whose store is empty: a host
    // that took that for the truth would run plugins without their policies.
    match waited.is_ok() && subscription.store().is_complete() {
        true => Ok(()),
        false => Err(subscription.state().to_string()),
    }
}
