//! Zig: its compiler builds the plugin and the SDK, as two modules under the SDK's root.
//! [`crate::componentize`] does the rest.

use std::path::Path;

use super::made::{Made, succeeded};
use crate::tool::{Program, Tool, Way};
use crate::version::Version;
use crate::work::Work;
use crate::{Language, Result, process};

pub(crate) const ZIG: Tool = Tool {
    name: "zig",
    variable: None,
    ways: &[way(&["zig"]), way(&["python3", "-m", "ziglang"])],
    minimum: Version(0, 15, 0),
    install: "pip install ziglang==0.15.2",
};

const fn way(command: &'static [&'static str]) -> Way {
    Way {
        command,
        local: Some(".venv/bin"),
        version: &["version"],
        probe: None,
    }
}

/// Options for a library that implements the contract.
const OPTIONS: &[&str] = &[
    "-target",
    "wasm32-wasi",
    "-fno-entry",
    "-fstrip",
    "-rdynamic",
    "--stack",
    "1048576",
];

/// The optimisation mode. Both modes check bounds and overflow, so that a plugin's mistake is a
/// trap.
///
/// Zig 0.15.2 has no usable mode that builds faster than `Debug`. Incremental compilation
/// (`-fincremental`) cannot save the state of the linker with LLVM, and without LLVM crashes at the
/// second build. Another linker (`-fno-lld`) saves no time. Zig's own backend for WebAssembly
/// (`-fno-llvm`, 0.4 s faster) is not the default in any mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Small and fast code, for deployment.
    Release,
    /// A build in a third of the time, and a module of four times the size, for `vmhost dev`.
    Debug,
}

impl Mode {
    fn option(self) -> &'static str {
        match self {
            Self::Release => "-OReleaseSafe",
            Self::Debug => "-ODebug",
        }
    }
}

/// The variable that moves Zig's cache into the hidden folder, instead of a visible folder of the
/// project.
pub(super) const CACHE: &str = "ZIG_LOCAL_CACHE_DIR";
pub(super) const CACHE_FOLDER: &str = "zig-cache";

/// The tools that build Zig.
#[derive(Debug)]
pub(crate) struct Tools {
    zig: Program,
}

impl Tools {
    pub async fn find(folder: &Path) -> Result<Self> {
        let zig = ZIG.need(folder, Language::Zig).await?;
        Ok(Self { zig })
    }

    pub async fn build(&self, folder: &Path, mode: Mode) -> Result<Made> {
        let work = Work::begin(folder).await?;
        let sdk = work.sdk(Language::Zig)?;
        let core = work.output("core.wasm")?;
        let mut command = self.zig.command();
        command
            .current_dir(folder)
            .env(CACHE, work.path(CACHE_FOLDER));
        command.args(["build-exe", mode.option()]).args(OPTIONS);
        command.arg(format!("-femit-bin={}", core.display()));
        command.args(["--dep", "vmhost", "--dep", "plugin"]);
        command.arg(format!("-Mroot={}/root.zig", sdk.display()));
        command.args(["--dep", "vmhost", "-Mplugin=plugin.zig"]);
        command.arg(format!("-Mvmhost={}/vmhost.zig", sdk.display()));
        let output = process::run_shown(&mut command).await?;
        succeeded(&output, folder, ZIG.name)?;
        let wasm = work.take(&core, "zig succeeded but wrote no component")?;
        Ok(Made::by(wasm, core, Some(sdk), &ZIG, &self.zig))
    }
}
