//! The backends that send requests.

use crate::direct::Direct;

/// One way to reach the API server.
pub(super) enum Backend {
    Direct(Direct),
    Kube(kube::Client),
}
