//! The conformance kit: the languages, the builds of their guests, the objects that they read, and
//! outcomes as JSON.
//!
//! `tests/conformance/README.md` describes each case; `tests/tests/suite/conformance.rs` contains
//! the expectations.

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

/// The languages: the names of the guest's folder in `tests/conformance`, and of the VM policy's
/// folder in `plugins`.
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

/// A language without a toolchain is skipped, or is an error if this variable is set.
const REQUIRE: &str = "VMHOST_REQUIRE_LANGUAGES";

/// Skips what needs a missing toolchain, or returns an error.
pub fn missing(what: &str, reason: &str) -> Result<()> {
    ensure!(std::env::var_os(REQUIRE).is_none(), "{what}: {reason}");
    run::skip(what, reason)
}

/// Returns the builder of a source folder. `None` if its toolchain is missing, which is reported.
pub async fn builder(folder: &Path) -> Result<Option<Builder>> {
    match Builder::new(folder, Network::Allowed).await {
        Ok(builder) => Ok(Some(builder)),
        Err(error @ (Error::MissingTool { .. } | Error::OldTool { .. })) => {
            missing(&folder.display().to_string(), &error.to_string()).map(|()| None)
        }
        Err(error) => Err(error).with_context(|| folder.display().to_string()),
    }
}

/// Builds a folder of source into the target folder, as `vmhost build` does. `None` as for
/// [`builder`].
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

/// Returns a folder of this checkout.
pub fn folder(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(below)
}
