//! `vmhost build` of a Rust project sees that the target `wasm32-wasip2` is missing before cargo
//! compiles anything. The tools are scripts here: a machine without the target is not at hand.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};
use vmhost_tests::host::{self, HostCommand};
use vmhost_toolchain::Language;
use vmhost_toolchain::scaffold::Project;

/// Writes the tools to the current folder. They run in the project's folder, where the file `added`
/// means that the target is there, and `compiled` that cargo was asked for a build.
const TOOLS: &str = r#"
tool() { printf '#!/bin/sh\n%s\n' "$2" >"$1" && chmod 755 "$1"; }
tool rustc 'echo rustc 1.95.0; case "$*" in *--target*) [ -e added ];; esac'
tool rustup 'case "$*" in --version) echo rustup 1.28.2;; *) echo "$*" >added;; esac'
tool cargo 'case "$*" in --version) echo cargo 1.95.0;; *) : >compiled; exit 1;; esac'
"#;

const ORDER: &str = "rustup target add wasm32-wasip2";

/// A machine with these tools only, and a project.
struct Machine {
    tools: PathBuf,
    project: PathBuf,
}

impl Machine {
    fn new(folder: &Path) -> Result<Machine> {
        let tools = folder.join("tools");
        std::fs::create_dir(&tools)?;
        let mut shell = Command::new("sh");
        let wrote = shell.args(["-ec", TOOLS]).current_dir(&tools).status()?;
        ensure!(wrote.success(), "writing tools: {wrote}");
        let project = Project {
            name: "greeter",
            language: Language::Rust,
            kind: "Foo",
            group: "example.com",
            version: "v1",
        };
        let project = project.write(folder)?;
        Ok(Machine { tools, project })
    }

    fn build(&self) -> Result<HostCommand> {
        Ok(host::bare()?
            .without("CARGO")
            .env("PATH", &self.tools)
            .arg("build")
            .arg(&self.project))
    }

    fn has_compiled(&self) -> bool {
        self.project.join("compiled").exists()
    }
}

#[tokio::test]
async fn a_missing_target_is_added_in_one_line_and_then_cargo_compiles() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let machine = Machine::new(folder.path())?;
    let exit = machine.build()?.run().await?;
    let told = exit.output.iter().filter(|line| line.contains(ORDER));
    ensure!(told.count() == 1, "{exit:?}");
    let added = std::fs::read_to_string(machine.project.join("added"))?;
    ensure!(added == "target add wasm32-wasip2\n", "{added}");
    ensure!(machine.has_compiled(), "{exit:?}");
    Ok(())
}

#[tokio::test]
async fn offline_a_missing_target_is_named_and_nothing_is_compiled() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let machine = Machine::new(folder.path())?;
    let exit = machine.build()?.arg("--offline").run().await?;
    exit.expect_error(&["rust target wasm32-wasip2 is required", ORDER])?;
    ensure!(!machine.has_compiled(), "{exit:?}");
    Ok(())
}
