//! `vmhost inspect`: what a component is and what it asks for, without a cluster.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use vmhost_core::Permission;
use vmhost_engine::Inspection;

use crate::cli::OutputFormat;
use crate::manager::Loader;

/// Loads a component and prints what it says.
pub async fn command(loader: &Loader, file: &Path, output: OutputFormat) -> Result<()> {
    let (plugin, _) = loader.load_file(file).await?;
    let inspection = plugin.inspection();
    match output {
        OutputFormat::Json => crate::run::print(&serde_json::to_string_pretty(&inspection)?),
        OutputFormat::Text => crate::run::print(text(file, &inspection).trim_end()),
    }
    Ok(())
}

fn text(file: &Path, inspection: &Inspection) -> String {
    let mut text = String::new();
    let description = &inspection.description;
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<12} {value}");
    };
    line("file", &file.display().to_string());
    line("size", &format!("{} bytes", inspection.size));
    line("digest", &format!("sha256:{}", inspection.digest));
    line("contract", &inspection.contract);
    line(
        "plugin",
        format!("{} {}", description.name, description.version).trim_end(),
    );
    for controller in &description.controllers {
        let mut about = format!("{}: {}", controller.name, controller.kind());
        if let Some(primary) = &controller.primary {
            if let Some(selector) = &primary.label_selector {
                let _ = write!(about, ", labels {selector}");
            }
            if let Some(selector) = &primary.field_selector {
                let _ = write!(about, ", fields {selector}");
            }
            if let Some(fields) = &primary.wanted_fields {
                let _ = write!(about, ", keeps {}", fields.join(", "));
            }
        }
        line("controller", &about);
        for (role, watched) in controller.kinds().skip(1) {
            line("", &format!("{role:?} {}", watched.gvk()).to_lowercase());
        }
    }
    for permission in &description.permissions {
        line("permission", &permission_text(permission));
    }
    for import in &inspection.imports {
        line("import", import);
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
