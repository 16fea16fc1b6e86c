//! The conformance kit: which languages there are, how their guests are built, what they read, and an outcome as JSON.
//!
//! What each case does is said in `tests/conformance/README.md`; `tests/tests/suite/conformance.rs`
//! holds the cases themselves.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use vmhost_toolchain::{Builder, Error, Network};

use crate::run;

mod lines;
mod reader;
mod show;

pub use lines::{Line, Lines};
pub use reader::{Reader, text};
pub use show::{outcome, parse_body};

/// The languages: the name of the guest's folder in `tests/conformance`, and of the VM policy's in `plugins`.
pub const LANGUAGES: [(&str, &str); 8] = [
    ("rust", "vm"),
    ("js", "vm-js"),
    ("ts", "vm-ts"),
    ("python", "vm-python"),
    ("go", "vm-go"),
    ("c", "vm-c"),
    ("cpp", "vm-cpp"),
    ("zig", "vm-zig"),
];

/// Without a toolchain its language is skipped, unless this is set: then it is an error.
const REQUIRE: &str = "VMHOST_REQUIRE_LANGUAGES";

/// What needs a toolchain that is not on this machine is skipped, or an error.
pub fn missing(what: &str, reason: &str) -> Result<()> {
    ensure!(std::env::var_os(REQUIRE).is_none(), "{what}: {reason}");
    run::skip(what, reason)
}

/// What builds a folder of source. None: its toolchain is not on this machine, which is told.
pub async fn builder(folder: &Path) -> Result<Option<Builder>> {
    match Builder::new(folder, Network::Allowed).await {
        Ok(builder) => Ok(Some(builder)),
        Err(error @ (Error::MissingTool { .. } | Error::OldTool { .. })) => {
            missing(&folder.display().to_string(), &error.to_string()).map(|()| None)
        }
        Err(error) => Err(error).with_context(|| folder.display().to_string()),
    }
}

/// Builds a folder of source into the target folder, as `vmhost build` does. None: as [`builder`].
pub async fn component(folder: &Path) -> Result<Option<PathBuf>> {
    let name = folder
        .file_name()
        .context("a folder has a name")?
        .to_string_lossy();
    let Some(builder) = builder(folder).await? else {
        return Ok(None);
    };
    // <target>/<profile>/deps/<test>
    let test = std::env::current_exe()?;
    let out = test
        .with_file_name("languages")
        .join(format!("{name}.wasm"));
    std::fs::create_dir_all(out.parent().unwrap_or(&out))?;
    builder
        .build(&out)
        .await
        .with_context(|| format!("building {}", folder.display()))?;
    Ok(Some(out))
}

/// A folder of this checkout.
pub fn folder(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(below)
}
