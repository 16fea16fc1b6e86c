//! Rust: runs cargo with the flags that produce a small component. This module must not know what
//! becomes of the component.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use tokio::process::Command;

use super::made::{Made, Network};
use crate::tool::{Found, Program, Tool, Way, search_path};
use crate::version::Version;
use crate::{Error, Language, Result, place, process, work};

/// The target whose output is a component.
const TARGET_NAME: &str = "wasm32-wasip2";

/// Cargo, for a Rust version that supports the target.
pub(crate) const CARGO: Tool = Tool {
    name: "cargo",
    variable: Some("CARGO"),
    ways: &[Way {
        command: &["cargo"],
        local: None,
        version: &["--version"],
        probe: None,
    }],
    minimum: Version(1, 85, 0),
    install: "install Rust by rustup (https://rustup.rs)",
};

/// The target's standard library, for the toolchain that the project's folder selects.
pub(crate) const TARGET: Tool = Tool {
    name: "rust target wasm32-wasip2",
    variable: None,
    ways: &[Way {
        command: &["rustc"],
        local: None,
        version: &["--version"],
        // The source is empty, but rustc still looks for the target's standard library.
        probe: Some(&[
            "--target",
            TARGET_NAME,
            "--crate-type=lib",
            "--emit=dep-info=-",
            "-",
        ]),
    }],
    minimum: Version(1, 85, 0),
    install: "rustup target add wasm32-wasip2",
};

/// Adds the target to a toolchain that it manages.
const RUSTUP: Tool = Tool {
    name: "rustup",
    variable: None,
    ways: &[Way {
        command: &["rustup"],
        local: None,
        version: &["--version"],
        probe: None,
    }],
    minimum: Version(1, 0, 0),
    install: CARGO.install,
};

/// Small, stripped, and without unwinding, which is useless after a trap. At cargo's default level
/// (3), a call takes a fifth fewer instructions, but a rebuild takes twice as long (1.2 s instead
/// of 0.6 s).
const PROFILE: &[&str] = &[
    "profile.release.opt-level=\"s\"",
    "profile.release.lto=true",
    "profile.release.codegen-units=1",
    "profile.release.panic=\"abort\"",
    "profile.release.strip=true",
    "profile.release.debug=false",
];

/// The tools that build Rust.
#[derive(Debug)]
pub(crate) struct Tools {
    cargo: Program,
    network: Network,
}

impl Tools {
    pub async fn find(folder: &Path, network: Network) -> Result<Self> {
        let cargo = CARGO.need(folder, Language::Rust).await?;
        need_target(folder, &search_path(), network).await?;
        Ok(Self { cargo, network })
    }

    /// Builds in cargo's own target folder.
    pub async fn build(&self, folder: &Path) -> Result<Made> {
        let manifest = folder.join("Cargo.toml");
        let mut artifact = self.compile(folder, &manifest).await?;
        if artifact.fresh && !artifact.is_of(&manifest) {
            self.clean(&artifact, folder, &manifest).await?;
            artifact = self.compile(folder, &manifest).await?;
        }
        // Only the next build reads this file, so an error does not matter.
        let _ = std::fs::write(artifact.owner(), manifest.as_os_str().as_encoded_bytes());
        let wasm = place::read(&artifact.file)?;
        let sdk = work::own_sdk(folder);
        Ok(Made::by(
            wasm,
            artifact.file,
            Some(sdk),
            &CARGO,
            &self.cargo,
        ))
    }

    async fn compile(&self, folder: &Path, manifest: &Path) -> Result<Artifact> {
        let mut command = self.command("build", folder, manifest);
        command.args(["--lib", "--message-format", "json-render-diagnostics"]);
        for setting in PROFILE {
            command.args(["--config", setting]);
        }
        let output = process::run(&mut command).await?;
        super::made::succeeded(&output, folder, CARGO.name)?;
        Artifact::of(&output.stdout, manifest).ok_or_else(|| Error::NothingBuilt {
            folder: folder.to_owned(),
            hint: "its Cargo.toml needs crate-type = [\"cdylib\"] under [lib]".to_owned(),
        })
    }

    /// Makes cargo rebuild the component.
    async fn clean(&self, artifact: &Artifact, folder: &Path, manifest: &Path) -> Result<()> {
        let mut command = self.command("clean", folder, manifest);
        command.args(["--package", &artifact.package]);
        let output = process::run(&mut command).await?;
        super::made::succeeded(&output, folder, CARGO.name)
    }

    fn command(&self, command: &str, folder: &Path, manifest: &Path) -> Command {
        let mut cargo = self.cargo.command();
        cargo.args([command, "--release", "--target", TARGET_NAME, "--quiet"]);
        cargo.arg("--manifest-path").arg(manifest);
        if self.network == Network::Offline {
            cargo.arg("--offline");
        }
        // Run in the project's folder, where rustup selects the toolchain: the project's toolchain
        // file counts, not the caller's.
        cargo.current_dir(folder);
        // Variables that cargo set for the build of the host must not reach the build of the guest.
        cargo
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env_remove("RUSTFLAGS");
        cargo
    }
}

/// Ensures that the target is installed, with rustup's help if necessary. Without the target, the
/// compiler works for minutes and then fails with an error (E0463) that does not name the cause.
async fn need_target(folder: &Path, path: &[PathBuf], network: Network) -> Result<()> {
    let found = TARGET.find_in(folder, path).await;
    if let (Found::Missing, Network::Allowed) = (&found, network)
        && let Found::Good(rustup) = RUSTUP.find_in(folder, path).await
    {
        tracing::info!("rustc lacks a target; running {}", TARGET.install);
        let mut command = rustup.command();
        // Rustup adds the target to the toolchain that this folder selects.
        command
            .args(["target", "add", TARGET_NAME])
            .current_dir(folder);
        let (output, said) = process::run_kept(&mut command).await?;
        if !output.status.success() {
            return Err(Error::NoTarget {
                command: TARGET.install,
                said: said.trim().to_owned(),
            });
        }
        return Ok(());
    }
    TARGET.expect(found, Language::Rust).map(drop)
}

/// A component that cargo built.
///
/// Cargo names the file after the crate only. If two workspaces share a target folder and have a
/// crate of the same name, each overwrites the other's file, and cargo still reports both as fresh.
/// So a second file records the manifest that the component was built from.
struct Artifact {
    file: PathBuf,
    package: String,
    /// Whether cargo had nothing to do.
    fresh: bool,
}

impl Artifact {
    fn owner(&self) -> PathBuf {
        self.file.with_extension("wasm.owner")
    }

    /// Returns whether the recorded owner is this manifest.
    fn is_of(&self, manifest: &Path) -> bool {
        std::fs::read(self.owner())
            .is_ok_and(|owner| owner == manifest.as_os_str().as_encoded_bytes())
    }

    /// Returns the component that cargo reports for this manifest.
    fn of(messages: &[u8], manifest: &Path) -> Option<Self> {
        let message = message(messages, manifest)?;
        Some(Self {
            file: message
                .filenames
                .into_iter()
                .find(|file| is_component(file))?,
            package: message.package_id,
            fresh: message.fresh,
        })
    }
}

/// A line of cargo's output.
#[derive(Deserialize)]
struct Message {
    reason: String,
    #[serde(default)]
    package_id: String,
    manifest_path: Option<PathBuf>,
    #[serde(default)]
    filenames: Vec<PathBuf>,
    #[serde(default)]
    fresh: bool,
}

fn message(messages: &[u8], manifest: &Path) -> Option<Message> {
    let manifest = manifest.canonicalize().ok()?;
    messages
        .split(|&byte| byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<Message>(line).ok())
        .filter(|message| message.reason == "compiler-artifact")
        .filter(|message| {
            let path = message.manifest_path.as_deref();
            path.is_some_and(|path| path.canonicalize().ok().as_deref() == Some(&manifest))
        })
        .find(|message| message.filenames.iter().any(|file| is_component(file)))
}

fn is_component(file: &Path) -> bool {
    file.extension()
        .is_some_and(|extension| extension == "wasm")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::tests::program;

    /// Creates a toolchain whose rustc lacks the target until the file `added` exists, and its
    /// rustup.
    fn toolchain(folder: &Path, rustup: &str) -> PathBuf {
        let bin = folder.join("bin");
        let rustc = "echo rustc 1.95.0; case \"$*\" in *--target*) [ -e added ];; esac";
        program(&bin, "rustc", rustc);
        program(&bin, "rustup", rustup);
        bin
    }

    const ADDS: &str = "case \"$*\" in --version) echo rustup 1.28.2;; *) echo $* > added;; esac";

    #[tokio::test]
    async fn a_missing_target_is_added_by_rustup() {
        let folder = tempfile::tempdir().unwrap();
        let bin = toolchain(folder.path(), ADDS);
        need_target(folder.path(), &[bin], Network::Allowed)
            .await
            .unwrap();
        let added = std::fs::read_to_string(folder.path().join("added")).unwrap();
        assert_eq!(added, "target add wasm32-wasip2\n");
    }

    #[tokio::test]
    async fn a_missing_target_is_named_where_it_cannot_be_added() {
        let command = "rust target wasm32-wasip2 is required to build rust plugins, but is not installed: rustup target add wasm32-wasip2";
        let folder = tempfile::tempdir().unwrap();
        let bin = toolchain(folder.path(), ADDS);
        let offline = need_target(folder.path(), &[bin], Network::Offline).await;
        assert_eq!(offline.unwrap_err().to_string(), command);

        let folder = tempfile::tempdir().unwrap();
        let bin = toolchain(folder.path(), "exit 1");
        let no_rustup = need_target(folder.path(), &[bin], Network::Allowed).await;
        assert_eq!(no_rustup.unwrap_err().to_string(), command);

        let folder = tempfile::tempdir().unwrap();
        let fails = "[ $1 = --version ] && echo rustup 1.28.2 && exit; echo no route >&2; exit 1";
        let bin = toolchain(folder.path(), fails);
        let failed = need_target(folder.path(), &[bin], Network::Allowed).await;
        assert_eq!(
            failed.unwrap_err().to_string(),
            "`rustup target add wasm32-wasip2` failed: no route"
        );
    }

    #[test]
    fn the_component_of_the_manifest_is_taken_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let manifest = folder.path().join("Cargo.toml");
        std::fs::write(&manifest, "").unwrap();
        let line = |manifest: &Path, file: &str| {
            serde_json::json!({
                "reason": "compiler-artifact", "package_id": "p", "manifest_path": manifest, "filenames": [file], "fresh": true,
            })
            .to_string()
        };
        let messages = [
            "not json".to_owned(),
            line(Path::new("/other/Cargo.toml"), "/t/other.wasm"),
            line(&manifest, "/t/libx.rlib"),
            line(&manifest, "/t/x.wasm"),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ]
        .join("\n");
        let artifact = Artifact::of(messages.as_bytes(), &manifest).unwrap();
        assert_eq!(artifact.file, Path::new("/t/x.wasm"));
        assert_eq!(artifact.owner(), Path::new("/t/x.wasm.owner"));
        assert!(artifact.fresh);
        assert!(Artifact::of(b"", &manifest).is_none());
    }
}
