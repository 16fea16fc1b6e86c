//! The clusters of a host: its own, called home, and the members. Each member has a connection,
//! informers, stores and live reads of its own, shared by all plugins; the queues, workers and
//! circuit breakers of a plugin in it belong to [`crate::deploy`].
//!
//! ```text
//! member   the name and the labels of a cluster, and whether it is still one of the host's
//!   |
//! place    a member with its connection, informers and live reads
//!   |
//! sites    all members that are engaged, and what is known of those that are not
//! ```
//! This room must not know how clusters are found ([`crate::fleet`] does), nor what runs in them.

pub(crate) mod member;
pub(crate) mod place;
pub mod sites;
