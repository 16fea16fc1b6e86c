//! The operator's settings for clusters besides the host's own. Plain data, filled in by the
//! command line.

use vmhost_cluster::ConnectOptions;

use super::source::Source;

/// The operator's settings.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Where the clusters are found.
    pub sources: Vec<Source>,
    /// The guarded fields that kubeconfigs out of a cluster may use.
    pub allowed: Vec<String>,
    /// How the host's own cluster was chosen.
    pub home: ConnectOptions,
    /// Whether stores are filled from streaming lists.
    pub streaming_lists: bool,
}
