//! Reproducible calls, for cases whose outcome is compared with an expectation.

use std::sync::Arc;

use vmhost_core::{MapRequest, ObjectName, ObjectReader, Outcome, Request, Trace};

use super::load::visible;
use super::{Plugin, Settings};
use crate::error::CallError;
use crate::instance::Instance;
use crate::world::World;

impl Plugin {
    /// Runs one turn on an instance of its own, with these settings. The clock stands at
    /// 2000-01-01T00:00:00Z, and random numbers are always the same.
    pub async fn call_still(
        &self,
        request: &Request<'_>,
        reader: Arc<dyn ObjectReader>,
        settings: Settings,
    ) -> Result<Outcome, CallError> {
        self.still(settings)
            .await?
            .reconcile(
                &self.engine,
                &self.limits,
                request,
                reader,
                &mut Trace::default(),
            )
            .await
    }

    /// Like [`Plugin::map_changes`], with the instance, clock and random numbers of
    /// [`Plugin::call_still`].
    pub async fn map_changes_still(
        &self,
        request: &MapRequest<'_>,
        reader: Arc<dyn ObjectReader>,
        settings: Settings,
    ) -> Result<Result<Vec<ObjectName>, String>, CallError> {
        self.still(settings)
            .await?
            .map(&self.engine, &self.limits, request, reader)
            .await
    }

    async fn still(&self, settings: Settings) -> Result<Instance, CallError> {
        let of = self.image().await?;
        let settings = visible(&self.description, settings);
        self.start(&of.image, settings, World::Still).await
    }
}
