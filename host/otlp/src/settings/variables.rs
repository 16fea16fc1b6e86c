//! What each variable of OpenTelemetry means, one by one. This module must not know what becomes of
//! the settings.

use std::path::PathBuf;

use http::{HeaderMap, HeaderName, HeaderValue, Uri};

use super::error::SettingsError;
use super::text::{address, pairs};
use crate::sampler::{Sampler, Share};

/// The path of traces behind `OTEL_EXPORTER_OTLP_ENDPOINT`.
const TRACES_PATH: &str = "/v1/traces";

/// The name of the service if no variable gives one.
const SERVICE: &str = "vmhost";

/// A PEM file, with the variable that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PemFile {
    pub(crate) variable: &'static str,
    pub(crate) path: PathBuf,
}

/// The variables, read with this function.
pub(super) struct Variables<F>(pub(super) F);

impl<F: Fn(&str) -> Option<String>> Variables<F> {
    /// Returns the value of a variable. An empty one is absent.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        let value = (self.0)(name)?.trim().to_owned();
        Some(value).filter(|value| !value.is_empty())
    }

    /// The first of these variables that is set, with its name.
    fn first(&self, names: &[&'static str]) -> Option<(&'static str, String)> {
        let mut set = names
            .iter()
            .filter_map(|name| Some((*name, self.get(name)?)));
        set.next()
    }

    /// Returns whether traces are wanted even without an endpoint. `None` if they are not wanted.
    pub(super) fn exporter(&self) -> Result<Option<bool>, SettingsError> {
        match self.get("OTEL_TRACES_EXPORTER").as_deref() {
            None => Ok(Some(false)),
            Some("otlp") => Ok(Some(true)),
            Some("none") => Ok(None),
            Some(other) => Err(SettingsError::Exporter(other.to_owned())),
        }
    }

    pub(super) fn protocol(&self) -> Result<(), SettingsError> {
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

    /// Returns whether bodies are compressed, by gzip.
    pub(super) fn compresses(&self) -> Result<bool, SettingsError> {
        let set = self.first(&[
            "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION",
            "OTEL_EXPORTER_OTLP_COMPRESSION",
        ]);
        match set {
            None => Ok(false),
            Some((name, way)) => match way.as_str() {
                "gzip" => Ok(true),
                "none" => Ok(false),
                _ => Err(SettingsError::Compression(name, way)),
            },
        }
    }

    /// Returns the URL of traces, if a variable gives one.
    pub(super) fn endpoint(&self) -> Result<Option<Uri>, SettingsError> {
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
        let whole = format!("{}{TRACES_PATH}{query}", place.trim_end_matches('/'));
        address(base, &whole).map(Some)
    }

    pub(super) fn file(&self, names: &[&'static str]) -> Option<PemFile> {
        let (variable, path) = self.first(names)?;
        let path = PathBuf::from(path);
        Some(PemFile { variable, path })
    }

    pub(super) fn identity(&self) -> Result<Option<(PemFile, PemFile)>, SettingsError> {
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
    pub(super) fn propagates(&self) -> bool {
        let set = self.get("OTEL_PROPAGATORS");
        set.is_none_or(|set| set.split(',').any(|one| one.trim() == "tracecontext"))
    }

    pub(super) fn headers(&self) -> Result<HeaderMap, SettingsError> {
        let mut headers = HeaderMap::new();
        let set = self.first(&[
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
            "OTEL_EXPORTER_OTLP_HEADERS",
        ]);
        let Some((variable, text)) = set else {
            return Ok(headers);
        };
        let header = |name: String, value: String| {
            let mut value = HeaderValue::try_from(value).ok()?;
            value.set_sensitive(true);
            Some((HeaderName::try_from(name).ok()?, value))
        };
        for (name, value) in pairs(variable, &text, header)? {
            headers.insert(name, value);
        }
        Ok(headers)
    }

    pub(super) fn sampler(&self) -> Result<Sampler, SettingsError> {
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
    pub(super) fn resource(&self) -> Result<Vec<(String, String)>, SettingsError> {
        let variable = "OTEL_RESOURCE_ATTRIBUTES";
        let mut found = match self.get(variable) {
            Some(text) => pairs(variable, &text, |key, value| Some((key, value)))?,
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

    pub(super) fn number(
        &self,
        names: &[&'static str],
        default: u64,
    ) -> Result<u64, SettingsError> {
        let Some((name, text)) = self.first(names) else {
            return Ok(default);
        };
        let number = text.parse().ok().filter(|number: &u64| *number > 0);
        number.ok_or(SettingsError::Number(name, text))
    }
}
