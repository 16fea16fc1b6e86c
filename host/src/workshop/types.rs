//! `vmhost types`: generates types.

use anyhow::{Context, Result};
use vmhost_toolchain::types::{Wanted, types};

use super::args::TypesArgs;
use crate::output::print;

/// Generates types for the objects of a definition.
pub(crate) async fn command(args: &TypesArgs) -> Result<()> {
    let wanted = Wanted {
        file: &args.file,
        version: args.version.as_deref(),
        language: args.lang,
    };
    let types = types(&wanted).await?;
    match &args.out {
        Some(out) => {
            std::fs::write(out, &types.text).with_context(|| format!("--out {}", out.display()))?;
            print(&format!("wrote {}", out.display()));
        }
        None => print(types.text.trim_end()),
    }
    if !types.lost.is_empty() {
        let lost = types.lost.join(", ");
        tracing::warn!("the SDK cannot read fields with these names into a dataclass: {lost}");
    }
    Ok(())
}
