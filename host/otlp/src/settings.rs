//! The settings of the export, from the variables that OpenTelemetry defines. Nothing is opened
//! here.
//!
//! Without an endpoint nothing is exported, unless `OTEL_TRACES_EXPORTER` asks for it: a controller
//! should not look for a collector that nobody named.

use std::time::Duration;

use http::{HeaderMap, Uri};

use crate::sampler::Sampler;

mod error;
mod text;
mod variables;

pub use error::SettingsError;
pub(crate) use variables::PemFile;
use variables::Variables;

/// OpenTelemetry's defaults of the batches.
const TIMEOUT_MS: u64 = 10_000;
const DELAY_MS: u64 = 5_000;
const QUEUE: u64 = 2048;
const BATCH: u64 = 512;
const EXPORT_MS: u64 = 30_000;

/// How spans are exported.
#[derive(Clone)]
pub struct Settings {
    pub(crate) endpoint: Uri,
    pub(crate) headers: HeaderMap,
    /// Whether bodies are compressed.
    pub(crate) compresses: bool,
    /// The authorities of the collector's certificate. `None` for the machine's.
    pub(crate) certificate: Option<PemFile>,
    /// The certificate by which the collector knows this process, and its key.
    pub(crate) identity: Option<(PemFile, PemFile)>,
    pub(crate) sampler: Sampler,
    /// Whether traces go on from and to other processes by `traceparent`.
    pub(crate) propagates: bool,
    /// The attributes of this process.
    pub(crate) resource: Vec<(String, String)>,
    /// How long one request may take.
    pub(crate) timeout: Duration,
    /// How long a batch may take, with all its tries.
    pub(crate) export: Duration,
    /// How long a span waits for others at most.
    pub(crate) delay: Duration,
    /// Spans that wait at most.
    pub(crate) queue: usize,
    /// Spans of one request at most.
    pub(crate) batch: usize,
}

impl Settings {
    /// Reads the variables with this function. Returns `None` if nothing is to be exported. As the
    /// specification says, an empty variable counts as unset.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, SettingsError> {
        let of = Variables(variable);
        // If nothing is wanted, the rest does not matter.
        let is_disabled = of.get("OTEL_SDK_DISABLED");
        if is_disabled.is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let Some(wanted) = of.exporter()? else {
            return Ok(None);
        };
        let endpoint = of.endpoint()?;
        if endpoint.is_none() && !wanted {
            return Ok(None);
        }
        let sampler = of.sampler()?;
        if sampler.is_off() {
            return Ok(None);
        }
        of.protocol()?;
        let milliseconds =
            |names: &[&'static str], default| of.number(names, default).map(Duration::from_millis);
        let count = |name: &'static str, default| {
            let number = of.number(&[name], default);
            number.map(|number| usize::try_from(number).unwrap_or(usize::MAX))
        };
        let timeouts = [
            "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
            "OTEL_EXPORTER_OTLP_TIMEOUT",
        ];
        let queue = count("OTEL_BSP_MAX_QUEUE_SIZE", QUEUE)?;
        let batch = count("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", BATCH)?;
        let certificate = of.file(&[
            "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE",
            "OTEL_EXPORTER_OTLP_CERTIFICATE",
        ]);
        Ok(Some(Self {
            // Else where a collector on this machine listens.
            endpoint: endpoint
                .unwrap_or_else(|| Uri::from_static("http://localhost:4318/v1/traces")),
            headers: of.headers()?,
            compresses: of.compresses()?,
            certificate,
            identity: of.identity()?,
            sampler,
            propagates: of.propagates(),
            resource: of.resource()?,
            timeout: milliseconds(&timeouts, TIMEOUT_MS)?,
            export: milliseconds(&["OTEL_BSP_EXPORT_TIMEOUT"], EXPORT_MS)?,
            delay: milliseconds(&["OTEL_BSP_SCHEDULE_DELAY"], DELAY_MS)?,
            queue,
            batch: batch.min(queue),
        }))
    }

    /// The URL that spans are sent to, without what may be secret in it.
    pub fn endpoint(&self) -> String {
        let uri = &self.endpoint;
        let port = uri.port_u16().map(|port| format!(":{port}"));
        format!(
            "{}://{}{}{}",
            uri.scheme_str().unwrap_or_default(),
            uri.host().unwrap_or_default(),
            port.unwrap_or_default(),
            uri.path()
        )
    }
}

#[cfg(test)]
mod tests;
