//! Writes to clusters by their members: each write goes through the connection of its own cluster,
//! and asks the lease at home, that cluster's fence and that of the turn's own cluster right before
//! it is sent. This module must not know which turn writes.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use vmhost_cluster::{Error, Written};
use vmhost_core::{Effect, ObjectKey};

use super::there::Reach;
use super::writes::guard::Guard;
use super::writes::{FencedWriter, Unwritten};
use crate::lead::Leadership;
use crate::site::member::Member;
use crate::site::sites::Sites;

/// The clusters of the host.
pub(crate) struct Clusters {
    /// Writes to the host's own cluster.
    pub(crate) home: FencedWriter,
    /// The members.
    pub(crate) sites: Arc<Sites>,
    /// Whether this host leads.
    pub(crate) leadership: Arc<Leadership>,
}

/// Why no write was sent to a cluster.
#[derive(Debug, thiserror::Error)]
#[error("the cluster {0} does not work now")]
struct Unreached(Arc<str>);

impl Clusters {
    /// The writer of a member. One that is known not to answer, or did not answer the last write of
    /// this manager, has none until a look finds it well: it would hold up a worker of another
    /// cluster.
    fn writer(&self, member: &Arc<Member>, manager: &str) -> Result<FencedWriter, Error> {
        let site = self.sites.of(member.number);
        let is_well = self.sites.is_up(&member.name) && !member.is_silent(manager);
        let Some(site) = site.filter(|_| is_well) else {
            let unreached = Unreached(member.name.clone());
            return Err(Error::NotSent(Box::new(unreached)));
        };
        let (resources, writer) = (site.resources.clone(), site.connection.writer());
        let writer = FencedWriter::new(resources, writer, self.leadership.clone());
        Ok(writer.within(member.clone()))
    }
}

impl Reach for Clusters {
    fn send<'a>(
        &'a self,
        member: Option<&'a Arc<Member>>,
        (effect, key): (&'a Effect, &'a ObjectKey),
        guard: Guard<'a>,
        manager: &'a str,
    ) -> BoxFuture<'a, Result<Written, Error>> {
        Box::pin(async move {
            let there = match member {
                Some(member) => Some(self.writer(member, manager)?),
                None => None,
            };
            let writer = there.as_ref().unwrap_or(&self.home);
            let written = writer.carry_out(effect, key, guard, manager, false).await;
            written.map_err(|Unwritten { error, .. }| {
                let has_no_answer = matches!(error, Error::Timeout(_) | Error::Network(_));
                if let Some(member) = member.filter(|_| has_no_answer) {
                    member.fell_silent(manager);
                }
                error
            })
        })
    }
}
