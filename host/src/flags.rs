//! Interprets the flags: checks them and derives settings, before any socket is opened. Each error
//! names its flag. This module must not know what a setting does.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use vmhost_cluster::EventLimit;
use vmhost_core::{Limits, RESERVED_SETTINGS, is_dns_label};
use vmhost_engine::{Compiler, Settings};
use vmhost_http::{Allow, Authorities};
use vmhost_runtime::config::Config;
use vmhost_runtime::deploy::history::keep::Keep;
use vmhost_runtime::journal::sensitive::{Sensitive, SensitiveError};

use crate::cli::common::CommonArgs;
use crate::folders;

/// The longest call. A plugin only computes; longer waits belong into `requeue-after-ms`.
const LONGEST_CALL: Duration = Duration::from_secs(3600);

/// The shortest watch silence, since each restarted watch costs the server two requests.
const SHORTEST_SILENCE: Duration = Duration::from_secs(1);

/// Checks the flags and returns the settings.
pub(crate) fn config(args: &CommonArgs, reload: bool, allow_wider: bool) -> Result<Config> {
    let limits = Limits {
        call_timeout: call_limit(&args.call_timeout)?,
        memory: size("--memory-limit", &args.memory_limit)?,
        reuse: args.instance_reuse,
        ..Limits::default()
    };
    check_namespaces(&args.namespaces)?;
    Ok(Config {
        namespaces: args.namespaces.clone(),
        watch_silence: watch_silence(&args.watch_silence)?,
        workers: args.workers,
        limits,
        events: event_limit(args.event_qps, args.event_burst),
        record_bytes: size_or_none("--record-bytes", &args.record_bytes)?,
        map_buffer: size("--map-buffer", &args.map_buffer)?,
        settings: settings(&args.settings)?,
        allow_http: allow_http(&args.allow_http)?,
        http_authorities: authorities(&args.http_ca)?,
        sensitive: sensitive(&args.sensitive)?,
        cache: cache_folder(args.cache.as_deref()),
        history: history(args.history.as_deref(), history_folder()),
        auto_rollback: args.auto_rollback,
        compiler: Compiler::Here,
        idle_unload: Some(duration("--idle-unload", &args.idle_unload)?)
            .filter(|after| !after.is_zero()),
        cache_sync_timeout: duration("--cache-sync-timeout", &args.cache_sync_timeout)?,
        shutdown_timeout: duration("--shutdown-timeout", &args.shutdown_timeout)?,
        reload,
        allow_wider,
        install_crds: false,
        serve_webhooks: false,
        register_webhooks: false,
    })
}

/// Parses `--call-timeout`.
pub(crate) fn call_limit(text: &str) -> Result<Duration> {
    let limit = duration("--call-timeout", text)?;
    if limit > LONGEST_CALL {
        bail!("--call-timeout {text}: at most {LONGEST_CALL:?}");
    }
    if limit.is_zero() {
        bail!("--call-timeout {text} must not be zero");
    }
    Ok(limit)
}

/// Parses `--watch-silence`.
fn watch_silence(text: &str) -> Result<Duration> {
    let limit = duration("--watch-silence", text)?;
    if limit < SHORTEST_SILENCE {
        bail!("--watch-silence {text}: at least {SHORTEST_SILENCE:?}");
    }
    Ok(limit)
}

/// Returns the limit, or `None` if either value is 0.
fn event_limit(per_second: u32, burst: u32) -> Option<EventLimit> {
    (per_second > 0 && burst > 0).then_some(EventLimit { per_second, burst })
}

/// Parses `500ms`, `10s`, `1m30s`.
pub(crate) fn duration(flag: &str, text: &str) -> Result<Duration> {
    let parsed: jiff::SignedDuration = text
        .parse()
        .ok()
        .with_context(|| format!("{flag} {text:?} is not a duration such as 500ms, 10s or 1m"))?;
    Duration::try_from(parsed).with_context(|| format!("{flag} {text:?} is negative"))
}

/// Parses `64Mi`, `64MiB`, `1G`, `1000000`, as Kubernetes' quantities.
pub(crate) fn size(flag: &str, text: &str) -> Result<usize> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: usize = match text[digits.len()..].trim_end_matches('B') {
        "" => 1,
        "k" | "K" => 1000,
        "M" => 1000 * 1000,
        "G" => 1000 * 1000 * 1000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        _ => bail!("{flag} {text:?} is not a size such as 64Mi or 1Gi"),
    };
    let count: usize = digits
        .parse()
        .ok()
        .with_context(|| format!("{flag} {text:?} is not a size such as 64Mi or 1Gi"))?;
    count
        .checked_mul(unit)
        .filter(|&bytes| bytes > 0)
        .with_context(|| format!("{flag} {text:?} is out of range"))
}

/// Parses a size that may be 0.
fn size_or_none(flag: &str, text: &str) -> Result<usize> {
    match text {
        "0" => Ok(0),
        text => size(flag, text),
    }
}

/// Parses the values of `--sensitive`.
pub(crate) fn sensitive(given: &[String]) -> Result<Vec<Sensitive>> {
    let parsed = given.iter().map(|text| text.parse());
    Ok(parsed.collect::<Result<_, SensitiveError>>()?)
}

/// Parses the values of `--allow-http`.
fn allow_http(given: &[String]) -> Result<Vec<Allow>> {
    let parse = |text: &String| text.parse().context("--allow-http");
    given.iter().map(parse).collect()
}

/// Reads the files of `--http-ca`.
fn authorities(files: &[PathBuf]) -> Result<Authorities> {
    let mut authorities = Authorities::default();
    for file in files {
        let flag = || format!("--http-ca {}", file.display());
        let pem = std::fs::read(file).with_context(flag)?;
        authorities.extend(Authorities::read(&pem).with_context(flag)?);
    }
    Ok(authorities)
}

/// Parses an address to listen on as controller-runtime does: `:8080` is all interfaces, `0` is
/// off.
pub(crate) fn listen_address(flag: &str, text: &str) -> Result<Option<Vec<SocketAddr>>> {
    if text == "0" {
        return Ok(None);
    }
    if let Some(port) = text.strip_prefix(':') {
        let port: u16 = port
            .parse()
            .ok()
            .with_context(|| format!("{flag} {text:?}: {port:?} is not a port"))?;
        // IPv6's wildcard accepts IPv4 too. A machine without IPv6 uses the second address.
        return Ok(Some(vec![
            (Ipv6Addr::UNSPECIFIED, port).into(),
            (Ipv4Addr::UNSPECIFIED, port).into(),
        ]));
    }
    let text = text.replace("localhost:", "127.0.0.1:");
    let address = text.parse().ok().with_context(|| {
        format!("{flag} {text:?} is not an address such as :8080, 127.0.0.1:8080 or 0")
    })?;
    Ok(Some(vec![address]))
}

/// Parses the values of `--setting`, by plugin.
pub(crate) fn settings(given: &[String]) -> Result<HashMap<String, Settings>> {
    let mut settings: HashMap<String, Settings> = HashMap::new();
    for setting in given {
        let parsed = setting
            .split_once('=')
            .and_then(|(left, value)| Some((left.split_once('.')?, value)));
        let Some(((plugin, name), value)) =
            parsed.filter(|((plugin, name), _)| !plugin.is_empty() && !name.is_empty())
        else {
            bail!("--setting {setting:?} is not of the form PLUGIN.NAME=VALUE");
        };
        if name.starts_with(RESERVED_SETTINGS) {
            bail!(
                "--setting {setting:?}: settings whose names begin with {RESERVED_SETTINGS} come from vmhost itself"
            );
        }
        settings
            .entry(plugin.to_owned())
            .or_default()
            .insert(name.to_owned(), value.to_owned());
    }
    Ok(settings)
}

/// Checks the values of `--namespace`.
pub(crate) fn check_namespaces(names: &[String]) -> Result<()> {
    match names.iter().find(|name| !is_dns_label(name)) {
        Some(bad) => bail!("--namespace {bad:?} is not the name of a namespace"),
        None => Ok(()),
    }
}

/// Returns the cache folder: the given one, else `$XDG_CACHE_HOME/vmhost/components` or
/// `~/.cache/vmhost/components`. `None` if the cache is disabled, or without a home folder, as in
/// many containers.
pub(crate) fn cache_folder(given: Option<&Path>) -> Option<PathBuf> {
    match given {
        Some(folder) if folder.as_os_str() == "0" => None,
        Some(folder) => Some(folder.to_owned()),
        None => Some(folders::cache()?.join("components")),
    }
}

/// Returns where versions are kept: in the given folder, or else in `default`, or else in memory.
pub(crate) fn history(given: Option<&Path>, default: Option<PathBuf>) -> Keep {
    match given {
        Some(folder) if folder.as_os_str() == "off" => Keep::Off,
        Some(folder) => Keep::Folder(folder.to_owned()),
        None => default.map_or(Keep::Memory, Keep::Folder),
    }
}

/// Returns `$XDG_CACHE_HOME/vmhost/history` or `~/.cache/vmhost/history`.
fn history_folder() -> Option<PathBuf> {
    Some(folders::cache()?.join("history"))
}

#[cfg(test)]
mod tests;
