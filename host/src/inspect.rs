//! `vmhost inspect`: shows what a component is and what it asks for, without a cluster. The
//! component is in a file or in a registry.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::Value;
use vmhost_core::{
    Changed, ControllerDescription, MapBy, Permission, PredicateDescription, Retry, Role, Timer,
    Watched, one_line,
};
use vmhost_engine::{Facts, Inspection};
use vmhost_registry::Reference;
use vmhost_runtime::deploy::loader::Loader;

use crate::cli::InspectArgs;
use crate::cli::common::OutputFormat;
use crate::registry::fetch;

mod reviews;

/// Loads a component and prints its facts.
pub(crate) async fn command(loader: &Loader, args: &InspectArgs) -> Result<()> {
    let file = &args.file;
    let reference = file.to_str().filter(|name| Reference::is_marked(name));
    let (facts, inspection) = match reference {
        None => {
            let loaded = loader.load_file(file).await?;
            (Facts::of(&loaded.bytes)?, loaded.plugin.inspection())
        }
        Some(reference) => {
            let pulled = fetch(reference, &args.registry, false).await?;
            let named = || format!("plugin {reference}");
            let (plugin, _) = loader.load(&pulled.component).await.with_context(named)?;
            (Facts::of(&pulled.component)?, plugin.inspection())
        }
    };
    match args.output {
        OutputFormat::Json => {
            let both = Inspected {
                inspection: &inspection,
                made: &facts,
            };
            crate::output::print(&serde_json::to_string_pretty(&both)?);
        }
        OutputFormat::Text => crate::output::print(text(file, &inspection, &facts).trim_end()),
    }
    Ok(())
}

/// The engine's inspection, and under `made` how the component was built.
#[derive(Serialize)]
struct Inspected<'a> {
    #[serde(flatten)]
    inspection: &'a Inspection,
    made: &'a Facts,
}

fn text(file: &Path, inspection: &Inspection, facts: &Facts) -> String {
    let mut text = String::new();
    let description = &inspection.description;
    let mut line = |name: &str, value: &str| {
        // The file's author writes most of it, and a terminal obeys some of the characters.
        let _ = writeln!(text, "{name:<12} {}", one_line(value));
    };
    line("file", &file.display().to_string());
    line("size", &format!("{} bytes", inspection.size));
    line("digest", &format!("sha256:{}", inspection.digest));
    line("contract", &inspection.contract);
    let by = [facts.language.as_ref(), facts.sdk.as_ref()];
    let by: Vec<&str> = by.into_iter().flatten().map(String::as_str).collect();
    if !by.is_empty() {
        line("language", &by.join(", "));
    }
    if !facts.tools.is_empty() {
        line("made by", &facts.tools.join(", "));
    }
    line(
        "plugin",
        format!("{} {}", description.name, description.version).trim_end(),
    );
    for controller in &description.controllers {
        let mut name = "controller";
        for about in controller_lines(controller) {
            line(std::mem::take(&mut name), &about);
        }
    }
    for webhook in &description.webhooks {
        let mut name = "webhook";
        for about in reviews::webhook_lines(webhook) {
            line(std::mem::take(&mut name), &about);
        }
        for read in &webhook.reads {
            line("", &format!("reads {}", watched_text(read)));
        }
    }
    for conversion in &description.conversions {
        line("conversion", &reviews::conversion_text(conversion));
        for read in &conversion.reads {
            line("", &format!("reads {}", watched_text(read)));
        }
    }
    for permission in &description.permissions {
        line("permission", &permission_text(permission));
    }
    for definition in description.definitions() {
        let name = definition.pointer("/metadata/name");
        let name = name.and_then(Value::as_str).unwrap_or_default();
        line("definition", &format!("{name} (with --install-crds)"));
    }
    for import in &inspection.imports {
        line("import", import);
    }
    text
}

/// Returns the controller's trigger, then one line for each setting that differs from the default.
fn controller_lines(controller: &ControllerDescription) -> Vec<String> {
    let name = &controller.name;
    let mut lines = Vec::new();
    match (&controller.primary, controller.timer) {
        (Some(primary), _) => lines.push(format!("{name}: {}", watched_text(primary))),
        (None, Some(Timer::EveryMs(ms))) => lines.push(format!("{name}: every {ms} ms")),
        (None, _) => lines.push(format!("{name}: once, at the start and after a swap")),
    }
    for (role, watched) in controller.kinds() {
        let does = match role {
            Role::Primary => continue,
            Role::Owned => "owns",
            Role::Watched => "watches",
            Role::Read => "reads",
        };
        lines.push(format!("{does} {}", watched_text(watched)));
    }
    if let Some(finalizer) = &controller.finalizer {
        lines.push(format!("finalizer {finalizer}"));
    }
    if controller.previous {
        lines.push("gets the previous object".to_owned());
    }
    if let Some(source) = &controller.event_source {
        lines.push(format!("events from {source}"));
    }
    if let Some(keys) = controller.concurrency {
        lines.push(format!("{keys} keys at once"));
    }
    lines.extend(controller.retry.as_ref().map(retry_text));
    lines
}

fn watched_text(watched: &Watched) -> String {
    let mut parts = vec![watched.gvk().to_string()];
    if let Some(selector) = &watched.label_selector {
        parts.push(format!("labels {selector}"));
    }
    if let Some(selector) = &watched.field_selector {
        parts.push(format!("fields {selector}"));
    }
    if let Some(fields) = &watched.wanted_fields {
        parts.push(format!("keeps {}", fields.join(", ")));
    }
    if watched.metadata_only {
        parts.push("keeps metadata only".to_owned());
    }
    if watched.live {
        parts.push("live, without a cache".to_owned());
    }
    for (name, path) in &watched.indexes {
        parts.push(format!("index {name} on {path}"));
    }
    parts.extend(watched.map.as_ref().map(map_text));
    parts.extend(watched.predicates.as_ref().map(predicates_text));
    parts.join(", ")
}

fn map_text(map: &MapBy) -> String {
    match map {
        MapBy::Name => "mapped by name".to_owned(),
        MapBy::Owner => "mapped by owner".to_owned(),
        MapBy::Controller => "mapped by controller".to_owned(),
        MapBy::Guest => "mapped by the plugin".to_owned(),
        MapBy::Label(label) => format!("mapped by label {label}"),
        MapBy::Field(field) => format!("mapped by field {field}"),
        MapBy::Index(index) => format!("mapped by index {index}"),
    }
}

fn predicates_text(predicates: &PredicateDescription) -> String {
    let mut parts = Vec::new();
    if !predicates.changed.is_empty() {
        let changed: Vec<&str> = predicates.changed.iter().map(changed_text).collect();
        parts.push(format!("{} changed", changed.join(" or ")));
    }
    if let Some(selector) = &predicates.label_selector {
        parts.push(format!("labels {selector}"));
    }
    if let Some(selector) = &predicates.field_selector {
        parts.push(format!("fields {selector}"));
    }
    if let Some(expression) = &predicates.cel {
        parts.push(format!("cel {}", vmhost_core::one_line(expression)));
    }
    format!("when {}", parts.join(" and "))
}

fn changed_text(changed: &Changed) -> &'static str {
    match changed {
        Changed::Generation => "generation",
        Changed::Labels => "labels",
        Changed::Annotations => "annotations",
        Changed::ResourceVersion => "resourceVersion",
    }
}

fn retry_text(retry: &Retry) -> String {
    let mut text = format!("retry after {} ms to {} ms", retry.base_ms, retry.cap_ms);
    if let Some(retries) = retry.max_retries {
        let _ = write!(text, ", dropped after {retries} retries");
    }
    if let Some(bucket) = &retry.bucket {
        let _ = write!(
            text,
            ", {} a second for all keys (burst {})",
            bucket.per_second, bucket.burst
        );
    }
    text
}

fn permission_text(permission: &Permission) -> String {
    let verbs: Vec<&str> = permission.verbs.iter().map(|verb| verb.as_str()).collect();
    let mut text = format!("{} {}", verbs.join(", "), permission.gvk());
    if !permission.subresources.is_empty() {
        let _ = write!(text, "/{}", permission.subresources.join(", /"));
    }
    if !permission.namespaces.is_empty() {
        let _ = write!(text, " in {}", permission.namespaces.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmhost_core::Description;

    #[test]
    fn a_controller_is_shown_with_all_that_it_says() {
        let description = Description::parse(
            r#"{
              "apiVersion": "vmhost/v1", "name": "app",
              "controllers": [
                { "name": "apps", "previous": true, "finalizer": "example.com/app", "concurrency": 10,
                  "primary": { "group": "example.com", "version": "v1", "kind": "App",
                    "indexes": { "secrets": "spec.secrets[*]" }, "predicates": { "changed": ["generation", "labels"] } },
                  "owns": [{ "group": "apps", "version": "v1", "kind": "Deployment" }],
                  "watches": [{ "version": "v1", "kind": "Secret", "metadataOnly": true, "map": { "index": "secrets" } }],
                  "reads": [{ "version": "v1", "kind": "Node", "live": true }],
                  "retry": { "maxRetries": 5, "bucket": { "perSecond": 10, "burst": 100 } } },
                { "name": "tick", "timer": { "everyMs": 10000 } }
              ]
            }"#,
        )
        .unwrap();
        assert_eq!(
            controller_lines(&description.controllers[0]),
            [
                "apps: App.v1.example.com, index secrets on spec.secrets[*], when generation or labels changed",
                "owns Deployment.v1.apps",
                "watches Secret.v1, keeps metadata only, mapped by index secrets",
                "reads Node.v1, live, without a cache",
                "finalizer example.com/app",
                "gets the previous object",
                "10 keys at once",
                "retry after 5 ms to 1000000 ms, dropped after 5 retries, 10 a second for all keys (burst 100)",
            ]
        );
        assert_eq!(
            controller_lines(&description.controllers[1]),
            ["tick: every 10000 ms"]
        );
    }

    #[test]
    fn a_terminal_obeys_nothing_that_a_component_says() {
        let description = Description::parse(
            r#"{"apiVersion":"vmhost/v1","name":"p","controllers":[{"name":"c","timer":{"once":true}}]}"#,
        );
        let inspection = Inspection {
            size: 1,
            digest: String::new(),
            contract: String::new(),
            imports: Vec::new(),
            description: description.unwrap(),
        };
        let facts = Facts {
            tools: vec!["cc\u{1b}[2J\nplugin       other".to_owned()],
            ..Facts::default()
        };
        let text = text(Path::new("x"), &inspection, &facts);
        assert!(
            text.contains("made by      cc [2J plugin       other\n"),
            "{text}"
        );
    }
}
