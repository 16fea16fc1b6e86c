//! `vmhost build`: builds a component.

use anyhow::{Context, Result};
use vmhost_toolchain::build::{self, component_path};

use super::args::BuildArgs;
use super::source::told;
use crate::cli::common::OutputFormat;
use crate::output::print;

/// Builds a component from a folder of source, or from a core module.
pub(crate) async fn command(args: &BuildArgs) -> Result<()> {
    let built = if args.source.is_file() {
        let out = args.out.as_ref();
        let out = out.context("--out is required for a core module: the file of the component")?;
        build::component_from(&args.source, out)?
    } else {
        let out = args.out.clone();
        let out = out.unwrap_or_else(|| component_path(&args.source));
        build::build(&args.source, &out, args.tools.network()).await?
    };
    match args.output {
        OutputFormat::Json => print(&serde_json::to_string(&built)?),
        OutputFormat::Text => print(&told(&built)),
    }
    Ok(())
}
