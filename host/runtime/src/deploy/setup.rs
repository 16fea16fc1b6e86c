//! Sets up a plugin in the cluster before its controllers start: installs its
//! CustomResourceDefinitions.
//!
//! It owns the order (install, then wait until the API server serves them) and respects
//! `--install-crds`. The crate `vmhost-cluster` compares and applies a definition and decides on
//! refusals.

use std::time::Duration;

use serde_json::Value;
use vmhost_cluster::{CrdError, Definitions, Installed, crd_name};
use vmhost_core::Description;

/// How long the API server may take to serve a new definition.
const ESTABLISHED: Duration = Duration::from_secs(30);

/// Installs the definitions of a plugin, or warns about them if the operator has not allowed it.
pub(crate) async fn run(
    definitions: &Definitions,
    description: &Description,
    allowed: bool,
) -> Result<(), CrdError> {
    for definition in description.definitions() {
        let name = crd_name(definition)?;
        if allowed {
            install(definitions, description, definition, name).await?;
        } else {
            tracing::warn!(
                plugin = description.name,
                "the CustomResourceDefinition {name} is not installed without --install-crds; controllers wait until it is served"
            );
        }
    }
    Ok(())
}

async fn install(
    definitions: &Definitions,
    description: &Description,
    definition: &Value,
    name: &str,
) -> Result<(), CrdError> {
    let manager = format!("vmhost/{}", description.name);
    let installed = definitions
        .install(definition, &manager, &description.version)
        .await?;
    definitions.wait_established(name, ESTABLISHED).await?;
    match installed {
        Installed::Unchanged => tracing::debug!(plugin = description.name, "{name} is installed"),
        Installed::Created => tracing::info!(plugin = description.name, "installed {name}"),
        Installed::Updated => tracing::info!(plugin = description.name, "updated {name}"),
    }
    Ok(())
}
