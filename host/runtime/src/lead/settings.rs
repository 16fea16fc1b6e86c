//! One election: its Lease and how long what lasts. Plain data.

use super::elector::Terms;

/// A standby's pause is drawn from `retry` to this many times `retry`, so that candidates do not try in step. client-go draws up to 2.2 times; less is what
/// lets a standby take over within 3 s of a lease that was given back.
pub const JITTER: f64 = 1.2;

/// One group of hosts of which one leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The Lease's name: hosts with the same one, in the same namespace, are one group.
    pub id: String,
    /// The Lease's namespace; none: the connection's default one.
    pub namespace: Option<String>,
    /// How long what lasts.
    pub terms: Terms,
}
