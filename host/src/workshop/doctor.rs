//! `vmhost doctor`: shows installed tools and the cache.

use std::path::PathBuf;

use anyhow::{Context, Result};
use vmhost_engine::CacheUse;
use vmhost_runtime::table::bytes;
use vmhost_toolchain::doctor;

use super::args::DoctorArgs;
use crate::cli::common::OutputFormat;
use crate::flags::cache_folder;
use crate::output::print;

/// Prints which tools are installed, and how full the cache of compiled components is.
pub(crate) async fn command(args: &DoctorArgs) -> Result<()> {
    let lines = doctor::doctor(&args.folder).await;
    match args.output {
        OutputFormat::Json => print(&serde_json::to_string(&lines)?),
        OutputFormat::Text => {
            print(doctor::table(&lines).trim_end());
            print(&cache(cache_folder(args.cache.as_deref()))?);
        }
    }
    Ok(())
}

/// Returns the line about the cache: `vmhost cache: /home/you/.cache/vmhost/components, 42 compiled
/// components, 123.4Mi of at most 1.0Gi`.
fn cache(folder: Option<PathBuf>) -> Result<String> {
    let Some(folder) = folder else {
        return Ok("vmhost cache: none, components are compiled at each start".to_owned());
    };
    let shown = folder.display();
    let held = CacheUse::of(&folder).with_context(|| format!("the cache folder {shown}"))?;
    let (used, most) = (bytes(held.bytes), bytes(held.bound));
    Ok(format!(
        "vmhost cache: {shown}, {} compiled components, {used} of at most {most}",
        held.files
    ))
}
