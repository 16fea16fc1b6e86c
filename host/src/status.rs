//! `vmhost status`: reads the state of a running host and prints it. It knows only the state
//! document.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::address::{DEV_KUBECONFIG, address_file};
use crate::cli::StatusArgs;
use crate::cli::common::OutputFormat;
use crate::output::print;
use vmhost_runtime::observe::admin::STATE_PATH;
use vmhost_runtime::observe::admin::state::{
    ControllerState, HostState, LastReload, PluginState, StoreState,
};
use vmhost_runtime::table::{bytes, table};

/// The default address of a host's state.
const DEFAULT_ADDRESS: &str = "127.0.0.1:8080";

/// The time limit for the host's answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum size of the document. 64 plugins of 64 controllers with 100 failing keys of 512
/// bytes would give 200 MiB, far more than any real host.
const LONGEST: usize = 256 << 20;

/// Reads the state of the host at an address, and prints it.
pub(crate) async fn command(args: &StatusArgs) -> Result<()> {
    let (address, state) = match &args.address {
        Some(given) => ask(address(given)).await?,
        None => find().await?,
    };
    match args.output {
        OutputFormat::Json => print(&serde_json::to_string_pretty(&state)?),
        OutputFormat::Text => print(&shown(&state, &address)),
    }
    Ok(())
}

/// Returns the state of the first host that answers: a `vmhost dev` of this folder or of
/// `$KUBECONFIG`, then a host at the default address.
async fn find() -> Result<(String, HostState)> {
    let named = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let kubeconfigs = std::env::split_paths(&named).chain([PathBuf::from(DEV_KUBECONFIG)]);
    for kubeconfig in kubeconfigs {
        let file = address_file(&kubeconfig);
        let Ok(address) = std::fs::read_to_string(&file) else {
            continue;
        };
        match ask(address.trim().to_owned()).await {
            Ok(found) => return Ok(found),
            // A `vmhost dev` that was killed leaves its address file behind.
            Err(error) => tracing::debug!("{}: {error:#}", file.display()),
        }
    }
    ask(DEFAULT_ADDRESS.to_owned()).await
}

/// Reads the state of the host at an address.
async fn ask(address: String) -> Result<(String, HostState)> {
    let text = tokio::time::timeout(TIMEOUT, fetch(&address))
        .await
        .unwrap_or_else(|_| {
            Err(anyhow!(
                "{address} (--address) did not answer within {TIMEOUT:?}"
            ))
        })?;
    let state = serde_json::from_slice(&text).map_err(|error| {
        not_vmhost(&address, &format!("its {STATE_PATH} is not valid: {error}"))
    })?;
    Ok((address, state))
}

/// Completes an address: `:8080` means this machine, as in the host's own flag.
fn address(given: &str) -> String {
    match given.strip_prefix(':') {
        Some(port) => format!("127.0.0.1:{port}"),
        None => given.to_owned(),
    }
}

async fn fetch(address: &str) -> Result<Vec<u8>> {
    let stream = TcpStream::connect(address).await.with_context(|| {
        format!("cannot connect to {address} (--address); check that vmhost runs and serves its metrics there (--metrics-bind-address)")
    })?;
    let other = |error: hyper::Error| not_vmhost(address, &error.to_string());
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(other)?;
    let connection = tokio::spawn(connection);
    let request = Request::get(STATE_PATH)
        .header(header::HOST, address)
        .body(Body::empty())
        .with_context(|| format!("{address:?} is not an address such as 127.0.0.1:8080"))?;
    let answer = sender.send_request(request).await.map_err(other)?;
    let status = answer.status();
    let body = to_bytes(Body::new(answer.into_body()), LONGEST)
        .await
        .map_err(|error| not_vmhost(address, &error.to_string()))?;
    connection.abort();
    match status {
        StatusCode::OK => Ok(body.to_vec()),
        StatusCode::SERVICE_UNAVAILABLE => bail!("the vmhost at {address} is shutting down"),
        other => Err(not_vmhost(address, &format!("GET {STATE_PATH}: {other}"))),
    }
}

fn not_vmhost(address: &str, why: &str) -> anyhow::Error {
    anyhow!("the server at {address} (--address) is not a vmhost: {why}")
}

fn shown(state: &HostState, address: &str) -> String {
    let stopping = if state.stopping {
        ", shutting down"
    } else {
        ""
    };
    let leader = match state.leader.as_str() {
        "alone" => String::new(),
        other => format!(", {other}"),
    };
    let mut parts = vec![format!(
        "vmhost {}, process {}, at {address}{leader}{stopping}",
        state.version, state.pid
    )];
    parts.push(plugins(&state.plugins));
    parts.push(not_loaded(&state.plugins));
    parts.push(controllers(&state.plugins));
    parts.push(stores(&state.stores));
    parts.push(failing(&state.plugins));
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

fn plugins(plugins: &[PluginState]) -> String {
    let row = |plugin: &PluginState| {
        let breaker = match plugin.breaker.open {
            true => format!("open, {} ms", plugin.breaker.pause_ms),
            false => "closed".to_owned(),
        };
        let reload = plugin
            .reload
            .as_ref()
            .map(|last| format!("{} {}", last.result, last.at));
        let instances = &plugin.instances;
        [
            plugin.name.clone(),
            plugin.version.clone(),
            plugin.generation.to_string(),
            // Cut like in `docker images`: enough to tell two builds apart.
            plugin.digest.chars().take("sha256:".len() + 12).collect(),
            plugin.code.clone(),
            format!("{} ({} idle)", instances.live, instances.idle),
            breaker,
            reload.unwrap_or_default(),
        ]
    };
    let heads = [
        "PLUGIN",
        "VERSION",
        "GENERATION",
        "DIGEST",
        "CODE",
        "INSTANCES",
        "BREAKER",
        "LAST RELOAD",
    ];
    table(heads, &plugins.iter().map(row).collect::<Vec<_>>())
}

/// Lists the plugins whose file could not be loaded, with the reason and when it is retried: at a
/// time, or when the file changes.
fn not_loaded(plugins: &[PluginState]) -> String {
    let failed = |last: &&LastReload| last.result == "failed";
    let rows: Vec<_> = plugins
        .iter()
        .filter_map(|plugin| Some((plugin, plugin.reload.as_ref().filter(failed)?)))
        .map(|(plugin, last)| {
            let next_try = last.next_try.clone();
            [
                plugin.name.clone(),
                next_try.unwrap_or_else(|| "when the file changes".to_owned()),
                // Only the first line: a table of rights may follow.
                last.about.lines().next().unwrap_or_default().to_owned(),
            ]
        })
        .collect();
    table(["NOT LOADED", "NEXT TRY", "REASON"], &rows)
}

/// Returns each controller with its label in logs and metrics.
fn labelled(plugins: &[PluginState]) -> impl Iterator<Item = (String, &ControllerState)> {
    plugins.iter().flat_map(|plugin| {
        let label = |name: &str| format!("{}/{name}", plugin.name);
        plugin
            .controllers
            .iter()
            .map(move |controller| (label(&controller.name), controller))
    })
}

fn controllers(plugins: &[PluginState]) -> String {
    let rows: Vec<_> = labelled(plugins)
        .map(|(label, controller)| {
            let queue = &controller.queue;
            let workers = match controller.started {
                true => controller.workers.to_string(),
                false => format!("{} (waiting)", controller.workers),
            };
            [
                label,
                controller.kind.clone(),
                workers,
                queue.processing.to_string(),
                queue.high.to_string(),
                queue.low.to_string(),
                queue.delayed.to_string(),
                controller.back_offs.to_string(),
                controller.held.to_string(),
                controller.failing.total.to_string(),
            ]
        })
        .collect();
    let heads = [
        "CONTROLLER",
        "KIND",
        "WORKERS",
        "PROCESSING",
        "HIGH",
        "LOW",
        "DELAYED",
        "BACK-OFFS",
        "HELD",
        "FAILING",
    ];
    table(heads, &rows)
}

fn stores(stores: &[StoreState]) -> String {
    let row = |store: &StoreState| {
        let selector: Vec<&str> = [&store.label_selector, &store.field_selector]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        [
            store.kind.clone(),
            store.namespace.clone().unwrap_or_else(|| "*".to_owned()),
            selector.join("; "),
            store.phase.clone(),
            store.objects.to_string(),
            bytes(store.bytes as u64),
            store.relists.to_string(),
            store.skipped.to_string(),
            store.failures.to_string(),
            store.subscribers.to_string(),
            store
                .silence_ms
                .map_or_else(String::new, |ms| format!("{}s ago", ms / 1000)),
        ]
    };
    let heads = [
        "STORE",
        "NAMESPACE",
        "SELECTOR",
        "PHASE",
        "OBJECTS",
        "SIZE",
        "RELISTS",
        "SKIPPED",
        "FAILURES",
        "SUBSCRIBERS",
        "HEARD",
    ];
    table(heads, &stores.iter().map(row).collect::<Vec<_>>())
}

fn failing(plugins: &[PluginState]) -> String {
    let rows: Vec<_> = labelled(plugins)
        .flat_map(|(label, controller)| {
            controller.failing.keys.iter().map(move |key| {
                [
                    label.clone(),
                    key.key.clone(),
                    key.attempt.to_string(),
                    key.last.clone().unwrap_or_default(),
                ]
            })
        })
        .collect();
    table(["CONTROLLER", "FAILING KEY", "ATTEMPT", "REFUSED"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmhost_runtime::observe::admin::state::{BreakerState, Instances};

    fn plugin(name: &str, result: &str, next_try: Option<&str>) -> PluginState {
        PluginState {
            name: name.into(),
            version: String::new(),
            generation: 1,
            digest: String::new(),
            code: String::new(),
            instances: Instances {
                live: 0,
                idle: 0,
                created: 0,
            },
            breaker: BreakerState::default(),
            controllers: Vec::new(),
            reload: Some(LastReload {
                result: result.into(),
                at: "2026-01-31T12:00:00Z".into(),
                about: "it needs 1 right\nPLUGIN   VERB".into(),
                next_try: next_try.map(Into::into),
            }),
        }
    }

    #[test]
    fn what_is_not_loaded_says_when_it_is_tried_again() {
        let plugins = [
            plugin("a", "failed", Some("2026-01-31T12:00:05Z")),
            plugin("b", "failed", None),
            plugin("c", "swapped", None),
        ];
        assert_eq!(
            not_loaded(&plugins),
            "\
NOT LOADED   NEXT TRY                REASON
a            2026-01-31T12:00:05Z    it needs 1 right
b            when the file changes   it needs 1 right"
        );
        assert_eq!(not_loaded(&plugins[2..]), "");
    }

    #[test]
    fn an_address_may_leave_the_host_out() {
        assert_eq!(address(":8080"), "127.0.0.1:8080");
        assert_eq!(address("vmhost.x:1"), "vmhost.x:1");
    }
}
