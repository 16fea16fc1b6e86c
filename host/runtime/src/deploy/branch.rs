//! What a plugin has of one member cluster: its Events, live reads and unmapped changes there, and
//! the circuit breakers of one generation there. Nothing of it is shared with another cluster, so
//! that one that is slow or full of bad objects holds up none of the others. This module must not
//! know how the cluster was found.

use std::sync::Arc;

use vmhost_cluster::Recorder;

use crate::controller::changes::buffer::MapBuffer;
use crate::deploy::breaker::Breaker;
use crate::outgoing::cut_off::CutOff;
use crate::site::member::Member;
use crate::wake::live::LiveReads;

/// A plugin's branch in a member cluster, for one generation.
pub(crate) struct Branch {
    /// The cluster.
    pub(crate) member: Arc<Member>,
    /// Records Events in the cluster.
    pub(crate) recorder: Recorder,
    /// Sends live reads to the cluster.
    pub(crate) live: Arc<LiveReads>,
    /// The HTTP requests of turns in the cluster that were cut off.
    pub(crate) cut_off: Arc<CutOff>,
    /// Limits the bytes of changes in the cluster that are not mapped yet.
    pub(crate) map_buffer: Arc<MapBuffer>,
    /// Opens when all reconcile calls for the cluster fail.
    pub(crate) breaker: Breaker,
    /// Opens when all `map-changes` calls for the cluster fail.
    pub(crate) map_breaker: Breaker,
}

impl Branch {
    /// The branch of the next generation in the same cluster.
    pub(crate) fn renewed(&self) -> Arc<Self> {
        Arc::new(Self {
            member: self.member.clone(),
            recorder: self.recorder.clone(),
            live: self.live.clone(),
            cut_off: self.cut_off.clone(),
            map_buffer: self.map_buffer.clone(),
            breaker: Breaker::default(),
            map_breaker: Breaker::default(),
        })
    }
}
