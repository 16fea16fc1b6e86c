//! `vmhost push`: pushes a component to a registry. A file that is no plugin is refused.

use std::collections::BTreeMap;

use anyhow::Result;
use vmhost_engine::Facts;
use vmhost_registry::{Component, Reference};
use vmhost_runtime::deploy::loader::Loader;

use super::Reach;
use crate::cli::registry::PushArgs;

/// Loads a component, pushes it and prints its digest.
pub(crate) async fn command(loader: &Loader, args: &PushArgs) -> Result<()> {
    let reference: Reference = args.reference.parse()?;
    let reach = Reach::of(&args.registry)?;
    let loaded = loader.load_file(&args.file).await?;
    let inspection = loaded.plugin.inspection();
    let description = &inspection.description;
    let annotations = [
        ("org.opencontainers.image.title", &description.name),
        ("org.opencontainers.image.version", &description.version),
    ];
    let set = annotations.into_iter().filter(|(_, text)| !text.is_empty());
    let annotations: BTreeMap<String, String> = set
        .map(|(key, text)| (key.to_owned(), text.clone()))
        .collect();
    let component = Component {
        exports: Facts::of(&loaded.bytes)?.exports,
        imports: inspection.imports,
        bytes: loaded.bytes.into(),
        annotations,
    };
    let digest = vmhost_registry::push(&reference, &component, &reach.access()).await?;
    crate::output::print(&format!("pushed {}", reference.with_digest(&digest)));
    Ok(())
}
