//! A member cluster with what the host has of it: a connection, informers with their stores, and
//! live reads. It must not know plugins.

use std::sync::Arc;
use std::time::Duration;

use prometheus::IntCounterVec;
use vmhost_cluster::{Connection, InformerObserver, Informers};

use crate::site::member::Member;
use crate::wake::live::Live;
use crate::wake::resources::Resources;

/// A member cluster that the host works in.
pub(crate) struct Site {
    /// The cluster.
    pub(crate) member: Arc<Member>,
    /// The connection, which may be changed while the stores are in use.
    pub(crate) connection: Connection,
    /// The informers, which fill the stores.
    pub(crate) informers: Informers,
    /// The resources that serve kinds.
    pub(crate) resources: Arc<Resources>,
    /// Sends live reads.
    pub(crate) live: Arc<Live>,
}

impl Site {
    /// Opens a cluster. Watches will run on the current runtime; none runs yet.
    pub(crate) fn open(
        member: Arc<Member>,
        connection: Connection,
        observer: Arc<dyn InformerObserver>,
        silence: Duration,
        live_reads: IntCounterVec,
    ) -> Arc<Self> {
        let resources = Arc::new(Resources::new(connection.reader()));
        Arc::new(Self {
            member,
            informers: Informers::with_silence(connection.reader(), observer, silence),
            live: Live::new(resources.clone(), live_reads),
            resources,
            connection,
        })
    }

    /// Leaves the cluster: its workers and watches end, also if its stores are still held.
    pub(crate) fn close(&self) {
        self.member.leave();
        self.informers.stop();
    }
}
