//! Makes a recorded call again. This module must not know where the record comes from, or why the
//! call is made again.

use std::sync::Arc;

use vmhost_core::{ObjectReader, Outcome, Request, Trace};

use super::load::visible;
use super::{Plugin, Settings};
use crate::error::CallError;
use crate::told::{Draws, Told};
use crate::world::World;

impl Plugin {
    /// Runs one turn on an instance of its own, with these settings, and with the clock readings
    /// and random numbers of a record. Also returns what the call asked the host, and whether it
    /// drew as many clock readings and random numbers as the recorded call.
    pub async fn call_told(
        &self,
        request: &Request<'_>,
        reader: Arc<dyn ObjectReader>,
        settings: Settings,
        told: &Told,
    ) -> (Result<Outcome, CallError>, Trace, Draws) {
        let mut trace = Trace::default();
        let called = self.told(request, reader, settings, told, &mut trace).await;
        let draws = told.compare(&trace);
        (called, trace, draws)
    }

    async fn told(
        &self,
        request: &Request<'_>,
        reader: Arc<dyn ObjectReader>,
        settings: Settings,
        told: &Told,
        trace: &mut Trace,
    ) -> Result<Outcome, CallError> {
        let of = self.image().await?;
        let world = World::Told(Arc::new(told.clone()));
        let mut instance = self
            .start(&of.image, visible(&self.description, settings), world)
            .await?;
        instance
            .reconcile(&self.engine, &self.limits, request, reader, trace)
            .await
    }
}
