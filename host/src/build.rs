//! `vmhost build`, `new`, `types` and `doctor`: what `vmhost-toolchain` does, as the user sees it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use vmhost_engine::CacheUse;
use vmhost_toolchain::build::{self, Built, Network, component_path};
use vmhost_toolchain::doctor;
use vmhost_toolchain::scaffold::Project;
use vmhost_toolchain::types::{Wanted, types as write_types};

use crate::cli::{BuildArgs, DoctorArgs, NewArgs, OutputFormat, TypesArgs};
use crate::config::cache_folder;
use crate::run::print;
use crate::table::bytes;

/// `vmhost build`.
pub async fn command(args: &BuildArgs) -> Result<()> {
    let built = if args.source.is_file() {
        let out = args.out.as_ref();
        let out =
            out.context("--out is needed: where the component of a core module is written")?;
        build::component_from(&args.source, out)?
    } else {
        let out = args.out.clone();
        let out = out.unwrap_or_else(|| component_path(&args.source));
        build::build(&args.source, &out, args.tools.network()).await?
    };
    match args.output {
        OutputFormat::Json => print(&serde_json::to_string(&built)?),
        OutputFormat::Text => print(&text(&built)),
    }
    Ok(())
}

/// `built plugins/vm.wasm: 178717 bytes in 834.2ms`.
pub fn text(built: &Built) -> String {
    let (path, size, took) = (built.path.display(), built.size, built.took);
    format!("built {path}: {size} bytes in {took:.1?}")
}

/// The file of a plugin that the user named: a folder is built first.
pub async fn component_of(path: &Path, network: Network) -> Result<PathBuf> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let out = component_path(path);
    let built = build::build(path, &out, network).await?;
    tracing::info!("{}", text(&built));
    Ok(out)
}

/// `vmhost new`.
pub fn new(args: &NewArgs) -> Result<()> {
    let project = Project {
        name: &args.name,
        language: args.lang,
        kind: &args.kind,
        group: &args.group,
        version: &args.api_version,
    };
    let folder = project.write(Path::new(""))?;
    let folder = folder.display();
    print(&format!(
        "wrote {folder}: a {} that is greeted, in {}\nnext: vmhost dev {folder} (what has to be installed: {folder}/README.md, vmhost doctor)",
        args.kind,
        args.lang.title()
    ));
    Ok(())
}

/// `vmhost types`.
pub async fn types(args: &TypesArgs) -> Result<()> {
    let wanted = Wanted {
        file: &args.file,
        version: args.version.as_deref(),
        language: args.lang,
    };
    let types = write_types(&wanted).await?;
    match &args.out {
        Some(out) => {
            std::fs::write(out, &types.text).with_context(|| format!("--out {}", out.display()))?;
            print(&format!("wrote {}", out.display()));
        }
        None => print(types.text.trim_end()),
    }
    if !types.lost.is_empty() {
        let lost = types.lost.join(", ");
        tracing::warn!("the SDK reads no field of these names into a dataclass: {lost}");
    }
    Ok(())
}

/// `vmhost doctor`.
pub async fn doctor(args: &DoctorArgs) -> Result<()> {
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

/// `vmhost cache: /home/you/.cache/vmhost/components, 42 compiled components, 123.4Mi of at most 1.0Gi`.
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
