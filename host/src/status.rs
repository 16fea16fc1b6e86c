//! `vmhost status`: reads the state of a running host and prints it. It knows only the state
//! document.

use anyhow::Result;
use vmhost_core::one_line;
use vmhost_runtime::journal::story::Warning;
use vmhost_runtime::observe::admin::state::{
    ClusterState, ControllerState, HostState, LastReload, PluginState, StoreState,
};
use vmhost_runtime::table::{bytes, table};

use crate::ask::find;
use crate::canary::summary;
use crate::cli::common::OutputFormat;
use crate::cli::running::StatusArgs;
use crate::output::{json, print};

mod webhooks;

use webhooks::webhooks;

/// Reads the state of the host at an address, and prints it.
pub(crate) async fn command(args: &StatusArgs) -> Result<()> {
    let (host, state) = find(&args.host).await?;
    match args.output {
        OutputFormat::Json => print(&json(&state)?),
        OutputFormat::Text => print(&shown(&state, &host.address)),
    }
    Ok(())
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
    parts.push(suggested(&state.plugins));
    parts.push(canaries(&state.plugins));
    parts.push(clusters(&state.clusters));
    parts.push(controllers(&state.plugins));
    parts.push(webhooks(&state.plugins));
    parts.push(stores(&state.stores));
    parts.push(failing(&state.plugins));
    parts.push(warned(&state.warnings));
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

/// Lists the plugins whose file could not be loaded or was rolled back, with the reason, and when
/// the host tries again: at a time, or when the file changes.
fn not_loaded(plugins: &[PluginState]) -> String {
    let failed = |last: &&LastReload| matches!(last.result.as_str(), "failed" | "refused");
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

/// Lists the plugins for which `vmhost rollback` may help.
fn suggested(plugins: &[PluginState]) -> String {
    let rows: Vec<_> = plugins
        .iter()
        .filter_map(|plugin| Some((plugin, plugin.rollback_suggested.as_ref()?)))
        .map(|(plugin, suggested)| {
            [
                plugin.name.clone(),
                suggested.to.clone(),
                suggested.why.clone(),
            ]
        })
        .collect();
    table(["ROLLBACK SUGGESTED", "TO", "REASON"], &rows)
}

/// Lists the canaries that run or were aborted. A promoted canary is the live version, and is left
/// out.
fn canaries(plugins: &[PluginState]) -> String {
    let shown = plugins
        .iter()
        .filter_map(|plugin| plugin.canary.as_ref())
        .filter(|canary| canary.state != "promoted");
    let rows: Vec<_> = shown
        .map(|canary| {
            [
                canary.plugin.clone(),
                canary.generation.to_string(),
                canary.weight.clone(),
                format!(
                    "{} ({} fail)",
                    canary.candidate.ran, canary.candidate.failing
                ),
                canary.written.to_string(),
                summary(canary),
            ]
        })
        .collect();
    let heads = ["CANARY", "GENERATION", "WEIGHT", "KEYS", "WROTE", "STATE"];
    table(heads, &rows)
}

/// Returns each controller with its label in logs and metrics. `vmhost turns` and `record` take
/// this label.
fn labelled(plugins: &[PluginState]) -> impl Iterator<Item = (String, &ControllerState)> {
    plugins.iter().flat_map(|plugin| {
        let label = |controller: &ControllerState| match controller.label.as_str() {
            // An older host's document has no label.
            "" => format!("{}/{}", plugin.name, controller.name),
            label => label.to_owned(),
        };
        let controllers = plugin.controllers.iter();
        controllers.map(move |controller| (label(controller), controller))
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

/// Lists the clusters besides the host's own.
fn clusters(clusters: &[ClusterState]) -> String {
    let row = |cluster: &ClusterState| {
        [
            cluster.name.clone(),
            match cluster.home {
                true => format!("{} (home)", cluster.phase),
                false => cluster.phase.clone(),
            },
            cluster.since.clone(),
            cluster.found.clone(),
            one_line(&cluster.about).into_owned(),
        ]
    };
    let heads = ["CLUSTER", "PHASE", "SINCE", "FOUND IN", "REASON"];
    table(heads, &clusters.iter().map(row).collect::<Vec<_>>())
}

fn stores(stores: &[StoreState]) -> String {
    let row = |store: &StoreState| {
        let selector: Vec<&str> = [&store.label_selector, &store.field_selector]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        let kind = match &store.cluster {
            None => store.kind.clone(),
            Some(cluster) => format!("{}@{cluster}", store.kind),
        };
        [
            kind,
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
    table(["CONTROLLER", "FAILING KEY", "ATTEMPT", "WHY"], &rows)
}

fn warned(warnings: &[Warning]) -> String {
    let row = |warning: &Warning| {
        [
            warning.controller.clone(),
            warning.key.clone(),
            format!("{}: {}", warning.name, one_line(&warning.text)),
        ]
    };
    let rows: Vec<_> = warnings.iter().map(row).collect();
    table(["CONTROLLER", "KEY", "WARNING"], &rows)
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
            webhooks: Vec::new(),
            reload: Some(LastReload {
                result: result.into(),
                at: "2026-01-31T12:00:00Z".into(),
                about: "it needs 1 right\nPLUGIN   VERB".into(),
                next_try: next_try.map(Into::into),
            }),
            rollback_suggested: None,
            canary: None,
        }
    }

    #[test]
    fn what_is_not_loaded_says_when_it_is_tried_again() {
        let plugins = [
            plugin("a", "failed", Some("2026-01-31T12:00:05Z")),
            plugin("b", "failed", None),
            plugin("c", "swapped", None),
            plugin("d", "refused", None),
        ];
        assert_eq!(
            not_loaded(&plugins),
            "\
NOT LOADED   NEXT TRY                REASON
a            2026-01-31T12:00:05Z    it needs 1 right
b            when the file changes   it needs 1 right
d            when the file changes   it needs 1 right"
        );
        assert_eq!(not_loaded(&plugins[2..3]), "");
    }
}
