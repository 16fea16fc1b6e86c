//! The settings of an election: its Lease and its durations. Plain data.

use super::elector::Terms;

/// A standby's pause is drawn from `retry` to this many times `retry`, so that candidates do not
/// try in step. client-go draws up to 2.2 times. The smaller factor lets a standby take over within
/// 3 s after a lease was given back.
pub const JITTER: f64 = 1.2;

/// The settings of one group of hosts, one of which leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The Lease's name. Hosts with the same name in the same namespace are one group.
    pub id: String,
    /// The Lease's namespace. `None` for the connection's default namespace.
    pub namespace: Option<String>,
    /// The durations of the election.
    pub terms: Terms,
}
