//! The settings of the export, from the variables that OpenTelemetry defines. Nothing is opened
//! here.
//!
//! Without an endpoint nothing is exported, unless `OTEL_TRACES_EXPORTER` asks for it: a controller
//! should not look for a collector that nobody named.

use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Uri};

use crate::sampler::{Sampler, Share};

mod error;
mod text;

pub use error::SettingsError;
use text::{address, pairs};

/// The path of traces behind `OTEL_EXPORTER_OTLP_ENDPOINT`.
const TRACES: &str = "/v1/traces";

/// The name of the service if no variable gives one.
const SERVICE: &str = "vmhost";

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

/// A PEM file, with the variable that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PemFile {
    pub(crate) variable: &'static str,
    pub(crate) path: PathBuf,
}

impl Settings {
    /// Reads the variables with this function. Returns `None` if nothing is to be exported. As the
    /// specification says, an empty variable counts as unset.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, SettingsError> {
        let of = Variables(|name: &str| {
            let value = variable(name)?.trim().to_owned();
            Some(value).filter(|value| !value.is_empty())
        });
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

/// Reads one variable; an empty one is absent.
struct Variables<F>(F);

impl<F: Fn(&str) -> Option<String>> Variables<F> {
    fn get(&self, name: &str) -> Option<String> {
        (self.0)(name)
    }

    /// The first of these variables that is set, with its name.
    fn first(&self, names: &[&'static str]) -> Option<(&'static str, String)> {
        let mut set = names
            .iter()
            .filter_map(|name| Some((*name, self.get(name)?)));
        set.next()
    }

    /// Returns whether traces are wanted even without an endpoint. `None` if they are not wanted.
    fn exporter(&self) -> Result<Option<bool>, SettingsError> {
        match self.get("OTEL_TRACES_EXPORTER").as_deref() {
            None => Ok(Some(false)),
            Some("otlp") => Ok(Some(true)),
            Some("none") => Ok(None),
            Some(other) => Err(SettingsError::Exporter(other.to_owned())),
        }
    }

    fn protocol(&self) -> Result<(), SettingsError> {
        let set = self.first(&[
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
            "OTEL_EXPORTER_OTLP_PROTOCOL",
        ]);
        match set {
            None => Ok(()),
            Some((_, protocol)) if protocol == "http/protobuf" => Ok(()),
            Some((name, other)) => Err(SettingsError::Protocol(name, other)),
        }
    }

    /// Returns the URL of traces, if a variable gives one.
    fn endpoint(&self) -> Result<Option<Uri>, SettingsError> {
        let own = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
        if let Some(url) = self.get(own) {
            // Used as it is.
            return address(own, &url).map(Some);
        }
        let base = "OTEL_EXPORTER_OTLP_ENDPOINT";
        let Some(url) = self.get(base) else {
            return Ok(None);
        };
        let (place, query) = match url.split_once('?') {
            Some((place, query)) => (place, format!("?{query}")),
            None => (url.as_str(), String::new()),
        };
        let whole = format!("{}{TRACES}{query}", place.trim_end_matches('/'));
        address(base, &whole).map(Some)
    }

    fn file(&self, names: &[&'static str]) -> Option<PemFile> {
        let (variable, path) = self.first(names)?;
        let path = PathBuf::from(path);
        Some(PemFile { variable, path })
    }

    fn identity(&self) -> Result<Option<(PemFile, PemFile)>, SettingsError> {
        let certificate = self.file(&[
            "OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE",
            "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
        ]);
        let key = self.file(&[
            "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY",
            "OTEL_EXPORTER_OTLP_CLIENT_KEY",
        ]);
        match (certificate, key) {
            (Some(certificate), Some(key)) => Ok(Some((certificate, key))),
            (Some(certificate), None) => Err(SettingsError::Alone(
                certificate.variable,
                "OTEL_EXPORTER_OTLP_CLIENT_KEY",
            )),
            (None, Some(key)) => Err(SettingsError::Alone(
                key.variable,
                "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
            )),
            (None, None) => Ok(None),
        }
    }

    /// Returns whether W3C's trace context is among the propagators, as it is by default.
    fn propagates(&self) -> bool {
        let set = self.get("OTEL_PROPAGATORS");
        set.is_none_or(|set| set.split(',').any(|one| one.trim() == "tracecontext"))
    }

    fn headers(&self) -> Result<HeaderMap, SettingsError> {
        let mut headers = HeaderMap::new();
        let set = self.first(&[
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
            "OTEL_EXPORTER_OTLP_HEADERS",
        ]);
        let Some((variable, text)) = set else {
            return Ok(headers);
        };
        for (index, (name, value)) in pairs(variable, &text)?.into_iter().enumerate() {
            let name = HeaderName::try_from(name);
            let value = HeaderValue::try_from(value);
            let (Ok(name), Ok(mut value)) = (name, value) else {
                return Err(SettingsError::Pairs(variable, index + 1));
            };
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(headers)
    }

    fn sampler(&self) -> Result<Sampler, SettingsError> {
        let sampler = self.get("OTEL_TRACES_SAMPLER");
        let sampler = sampler.unwrap_or_else(|| "parentbased_always_on".to_owned());
        let (by_parent, share) = match sampler.strip_prefix("parentbased_") {
            Some(share) => (true, share),
            None => (false, sampler.as_str()),
        };
        let share = match share {
            "always_on" => Share::All,
            "always_off" => Share::Nothing,
            "traceidratio" => {
                let argument = self.get("OTEL_TRACES_SAMPLER_ARG");
                let argument = argument.unwrap_or_else(|| "1".to_owned());
                let share = argument.parse().ok();
                let share = share.filter(|share: &f64| (0.0..=1.0).contains(share));
                share
                    .map(Share::ratio)
                    .ok_or(SettingsError::Share(argument))?
            }
            _ => return Err(SettingsError::Sampler(sampler)),
        };
        Ok(Sampler { share, by_parent })
    }

    /// The attributes of this process: what the operator says, and what is missing of it.
    fn resource(&self) -> Result<Vec<(String, String)>, SettingsError> {
        let variable = "OTEL_RESOURCE_ATTRIBUTES";
        let mut found = match self.get(variable) {
            Some(text) => pairs(variable, &text)?,
            None => Vec::new(),
        };
        if let Some(name) = self.get("OTEL_SERVICE_NAME") {
            found.retain(|(key, _)| key != "service.name");
            found.push(("service.name".to_owned(), name));
        }
        let instance = format!("{:032x}", fastrand::u128(..));
        for (key, value) in [
            ("service.name", SERVICE),
            ("service.version", env!("CARGO_PKG_VERSION")),
            ("service.instance.id", instance.as_str()),
            ("telemetry.sdk.name", SERVICE),
            ("telemetry.sdk.language", "rust"),
            ("telemetry.sdk.version", env!("CARGO_PKG_VERSION")),
        ] {
            if !found.iter().any(|(known, _)| known == key) {
                found.push((key.to_owned(), value.to_owned()));
            }
        }
        Ok(found)
    }

    fn number(&self, names: &[&'static str], default: u64) -> Result<u64, SettingsError> {
        let Some((name, text)) = self.first(names) else {
            return Ok(default);
        };
        let number = text.parse().ok().filter(|number: &u64| *number > 0);
        number.ok_or(SettingsError::Number(name, text))
    }
}

#[cfg(test)]
mod tests;
