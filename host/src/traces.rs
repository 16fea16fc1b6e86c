//! Traces of turns: reads OpenTelemetry's variables and starts the export. This module must not
//! know what a span is about.
//!
//! A variable that cannot be used stops no controller: the log names it, and nothing is exported.

use std::sync::Arc;

use vmhost_core::chain;
use vmhost_otlp::{Settings, Tracer};
use vmhost_runtime::observe::metrics::Metrics;

/// Starts the export on the current runtime. Returns `None` if no variable asks for traces, or if
/// one cannot be used.
pub(crate) fn start(metrics: &Arc<Metrics>) -> Option<Tracer> {
    let settings = match Settings::read(|name| std::env::var(name).ok()) {
        Ok(settings) => settings?,
        Err(error) => {
            tracing::warn!("{error}; no traces are exported");
            return None;
        }
    };
    let endpoint = settings.endpoint();
    match Tracer::start(settings, metrics.clone()) {
        Ok(tracer) => {
            tracing::info!("exporting traces of turns to {endpoint}");
            Some(tracer)
        }
        Err(error) => {
            tracing::warn!("{}; no traces are exported", chain(&error));
            None
        }
    }
}
