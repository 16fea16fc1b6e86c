//! `/healthz` and `/readyz`, answered like Kubernetes' `healthz` package does: `?verbose` names
//! each check, `?exclude=<check>` leaves one out, `/readyz/<check>` is one check alone, and a
//! failure is a 500 with all lines.
//!
//! Unlike that package, it also shows the reason of a failure: a kind, a namespace or a missing
//! right, which any client of the probes may know.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock, Weak};

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use percent_encoding::percent_decode_str;

use vmhost_cluster::InformerState;
use vmhost_core::Gvk;

use crate::deploy::plugins::Plugins;
use crate::deploy::slot::{Generation, Wired};
use crate::observe::metrics::controller::controller_label;
use crate::wake::sources::Sources;

/// The name of a check, and the reason if it failed.
type Check = (String, Result<(), String>);

/// The checks of a path.
#[derive(Clone, Copy)]
enum Probe {
    /// Whether the process is alive.
    Healthz,
    /// Whether the host works.
    Readyz,
}

/// The plugins, once the host has loaded them.
pub(crate) type Started = OnceLock<Weak<Plugins>>;

/// The routes of the probes.
pub(crate) fn router(plugins: Arc<Started>) -> Router {
    let mut router = Router::new();
    for (path, probe) in [("/healthz", Probe::Healthz), ("/readyz", Probe::Readyz)] {
        let all = move |State(plugins): State<Arc<Started>>, RawQuery(query): RawQuery| async move {
            let (checks, watches) = (probe.checks(&plugins), probe.watches(&plugins));
            root(probe.name(), checks, &watches, query.as_deref())
        };
        let one = move |State(plugins): State<Arc<Started>>, Path(name): Path<String>| async move {
            single(probe.checks(&plugins), &name)
        };
        router = router
            .route(path, get(all))
            .route(&format!("{path}/"), get(all))
            .route(&format!("{path}/{{*check}}"), get(one));
    }
    router.with_state(plugins)
}

impl Probe {
    fn name(self) -> &'static str {
        match self {
            Self::Healthz => "healthz",
            Self::Readyz => "readyz",
        }
    }

    fn checks(self, plugins: &Started) -> Vec<Check> {
        let mut checks = vec![("ping".to_owned(), Ok(()))];
        if matches!(self, Self::Readyz) {
            checks.extend(ready(plugins));
        }
        checks
    }

    /// The state of each watch, one line each. These are not checks: a store that lags for a while
    /// is no reason to restart the host.
    fn watches(self, plugins: &Started) -> Vec<String> {
        let plugins = plugins.get().filter(|_| matches!(self, Self::Readyz));
        let plugins = plugins.and_then(Weak::upgrade);
        let states = plugins.map(|plugins| plugins.informers.states());
        let line = |state: &InformerState| match state.silence {
            Some(silence) => format!("{state}; last sign of life {}s ago", silence.as_secs()),
            None => format!("{state}; no sign of life yet"),
        };
        states.iter().flatten().map(line).collect()
    }
}

/// The conditions for a working host: plugins are loaded, no shutdown has begun, each controller's
/// workers run on synced stores, and webhooks that are served can answer.
///
/// Stores of a kind that the host itself converts are not waited for: the API server may need the
/// conversion to fill them, and reaches it only on hosts that are ready.
fn ready(plugins: &Started) -> Vec<Check> {
    let (loaded, shutdown) = ("plugins".to_owned(), "shutdown".to_owned());
    let Some(plugins) = plugins.get() else {
        return vec![(loaded, Err("the host is starting".to_owned()))];
    };
    let Some(plugins) = plugins.upgrade() else {
        return vec![(shutdown, Err("shutting down".to_owned()))];
    };
    let slots = plugins.slots();
    let stopping = plugins.is_stopping();
    let mut checks = vec![
        (loaded, plugins.awaited().map_or(Ok(()), Err)),
        (shutdown, fail_if(stopping, "shutting down")),
    ];
    checks.extend(plugins.checked());
    let serves = plugins.loader.config.serve_webhooks;
    let live: Vec<_> = slots.iter().map(|slot| slot.current()).collect();
    let is_converted = |kind: &Gvk| serves && live.iter().any(|live| converts(live, kind));
    let mut parts: Vec<Check> = Vec::new();
    for generation in &live {
        for wired in generation.controllers.values() {
            let label = wired.controller.label.to_string();
            parts.push((label, works(wired, is_converted)));
        }
        for (name, sources) in generation.readers.iter().filter(|_| serves) {
            let label = controller_label(&generation.description().name, name);
            parts.push((label, filled(sources, is_converted)));
        }
    }
    parts.sort();
    checks.extend(parts);
    checks
}

/// Returns whether a generation converts objects of a kind.
fn converts(generation: &Generation, kind: &Gvk) -> bool {
    let mut conversions = generation.description().conversions.iter();
    conversions.any(|conversion| conversion.converts(kind))
}

/// Returns an error with the reason if a controller's workers do not run.
fn works(wired: &Wired, is_converted: impl Fn(&Gvk) -> bool) -> Result<(), String> {
    filled(&wired.sources, is_converted)?;
    fail_if(
        !wired.controller.has_started() && wired.sources.unfilled().next().is_none(),
        "stores are synced, workers are about to start",
    )
}

/// Returns an error with the reason if stores are not filled, other than those of kinds that this
/// host converts.
fn filled(sources: &Sources, is_converted: impl Fn(&Gvk) -> bool) -> Result<(), String> {
    let waiting: BTreeSet<String> = sources
        .unfilled()
        .filter(|state| !is_converted(&state.spec.kind))
        .map(|state| state.to_string())
        .collect();
    match waiting.is_empty() {
        true => Ok(()),
        false => Err(waiting.into_iter().collect::<Vec<_>>().join("; ")),
    }
}

fn fail_if(failed: bool, why: &str) -> Result<(), String> {
    if failed { Err(why.to_owned()) } else { Ok(()) }
}

/// Answers `/readyz`: all checks except those that the query excludes, and the watches if it is
/// verbose.
fn root(name: &str, checks: Vec<Check>, watches: &[String], query: Option<&str>) -> Response {
    let (verbose, mut excluded) = asked(query);
    let mut lines = String::new();
    let mut failed = false;
    for (check, result) in checks {
        let _ = match result {
            _ if excluded.remove(&check) => writeln!(lines, "[+]{check} excluded: ok"),
            Ok(()) => writeln!(lines, "[+]{check} ok"),
            Err(why) => {
                failed = true;
                writeln!(lines, "[-]{check} failed: {why}")
            }
        };
    }
    if !excluded.is_empty() {
        let unknown: Vec<String> = excluded.iter().map(|name| format!("{name:?}")).collect();
        let unknown = unknown.join(",");
        let _ = writeln!(
            lines,
            "warn: some health checks cannot be excluded: no matches for {unknown}"
        );
    }
    for watch in watches.iter().filter(|_| verbose) {
        let _ = writeln!(lines, "{watch}");
    }
    if failed {
        return failure(format!("{lines}{name} check failed\n"));
    }
    if verbose {
        return success(format!("{lines}{name} check passed\n"));
    }
    success("ok".to_owned())
}

/// Answers `/readyz/<check>`.
fn single(checks: Vec<Check>, name: &str) -> Response {
    match checks.into_iter().find(|(check, _)| check == name) {
        Some((_, Ok(()))) => success("ok".to_owned()),
        Some((_, Err(why))) => failure(format!("internal server error: {why}\n")),
        None => (StatusCode::NOT_FOUND, PLAIN, "404 page not found\n").into_response(),
    }
}

/// Parses a query: whether it has `verbose`, and the values of each `exclude`.
fn asked(query: Option<&str>) -> (bool, BTreeSet<String>) {
    let mut verbose = false;
    let mut excluded = BTreeSet::new();
    for pair in query.unwrap_or_default().split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match name {
            "verbose" => verbose = true,
            "exclude" => {
                excluded.insert(decoded(value));
            }
            _ => {}
        }
    }
    (verbose, excluded)
}

/// Decodes the percent escapes of a query value. An invalid escape stays as it is.
fn decoded(text: &str) -> String {
    let text = text.replace('+', " ");
    percent_decode_str(&text).decode_utf8_lossy().into_owned()
}

const PLAIN: [(HeaderName, &str); 2] = [
    (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
];

fn success(text: String) -> Response {
    (PLAIN, text).into_response()
}

fn failure(text: String) -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, PLAIN, text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks() -> Vec<Check> {
        vec![
            ("ping".into(), Ok(())),
            ("vm/virtualmachines".into(), Err("waiting".into())),
        ]
    }

    async fn read(response: Response) -> (u16, String) {
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), 1 << 16)
            .await
            .unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn the_root_answers_as_kubernetes_does() {
        for (query, status, text) in [
            (
                None,
                500,
                "[+]ping ok\n[-]vm/virtualmachines failed: waiting\nreadyz check failed\n",
            ),
            (
                Some("verbose"),
                500,
                "[+]ping ok\n[-]vm/virtualmachines failed: waiting\na watch\nreadyz check failed\n",
            ),
            (Some("exclude=vm%2Fvirtualmachines"), 200, "ok"),
            (
                Some("verbose&exclude=vm/virtualmachines"),
                200,
                "[+]ping ok\n[+]vm/virtualmachines excluded: ok\na watch\nreadyz check passed\n",
            ),
            (
                Some("exclude=b&exclude=vm/virtualmachines&exclude=a%&verbose=true"),
                200,
                "[+]ping ok\n[+]vm/virtualmachines excluded: ok\nwarn: some health checks cannot be excluded: no matches for \"a%\",\"b\"\na watch\nreadyz check passed\n",
            ),
        ] {
            let answer = read(root("readyz", checks(), &["a watch".into()], query)).await;
            assert_eq!(answer, (status, text.to_owned()), "{query:?}");
        }
    }

    #[test]
    fn a_host_that_starts_lives_and_is_not_ready() {
        let started = Started::new();
        let alive = ("ping".to_owned(), Ok(()));
        assert_eq!(
            Probe::Healthz.checks(&started),
            std::slice::from_ref(&alive)
        );
        let starting = ("plugins".to_owned(), Err("the host is starting".to_owned()));
        assert_eq!(Probe::Readyz.checks(&started), [alive, starting]);
        let _ = started.set(Weak::new());
        let shutdown = &Probe::Readyz.checks(&started)[1];
        assert_eq!(shutdown.0, "shutdown");
    }

    #[tokio::test]
    async fn one_check_answers_alone() {
        for (name, status, text) in [
            ("ping", 200, "ok"),
            (
                "vm/virtualmachines",
                500,
                "internal server error: waiting\n",
            ),
            ("vm", 404, "404 page not found\n"),
        ] {
            assert_eq!(
                read(single(checks(), name)).await,
                (status, text.to_owned())
            );
        }
    }
}
