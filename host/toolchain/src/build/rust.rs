//! Rust: cargo does the work, with the flags that make a component small.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use tokio::process::Command;

use super::made::{Made, Network};
use crate::tool::{Found, Program, Tool, Way, search_path};
use crate::version::Version;
use crate::{Error, Language, Result, place, process, work};

/// The target whose output is a component already.
const TARGET_NAME: &str = "wasm32-wasip2";

/// Cargo, of a Rust that knows the target.
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

/// The target's standard library, of the toolchain that the project's folder selects.
pub(crate) const TARGET: Tool = Tool {
    name: "rust target wasm32-wasip2",
    variable: None,
    ways: &[Way {
        command: &["rustc"],
        local: None,
        version: &["--version"],
        // Nothing is compiled of the empty source; but its std is looked for.
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

/// What adds the target to a toolchain that it manages.
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

/// Small, stripped, and without the unwinding that a trap makes useless. At cargo's own level (3) a call takes a fifth fewer instructions and an edit twice
/// as long to build (1.2 s, not 0.6).
const PROFILE: &[&str] = &[
    "profile.release.opt-level=\"s\"",
    "profile.release.lto=true",
    "profile.release.codegen-units=1",
    "profile.release.panic=\"abort\"",
    "profile.release.strip=true",
    "profile.release.debug=false",
];

/// What builds Rust.
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

    /// Builds, in cargo's own folder for that.
    pub async fn build(&self, folder: &Path) -> Result<Made> {
        let manifest = folder.join("Cargo.toml");
        let mut artifact = self.compile(folder, &manifest).await?;
        if artifact.fresh && !artifact.is_of(&manifest) {
            self.clean(&artifact, folder, &manifest).await?;
            artifact = self.compile(folder, &manifest).await?;
        }
        // Only for the next build to look at.
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

    /// Makes cargo build it again.
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
        // There, for rustup goes by where it is run: the project's toolchain file counts, not that of whoever calls.
        cargo.current_dir(folder);
        // What cargo set for the host's own build must not reach the guest's.
        cargo
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env_remove("RUSTFLAGS");
        cargo
    }
}

/// The target is there, or rustup adds it: a compiler without it fails after it has compiled for
/// minutes, with an error (E0463) that does not name the cause.
async fn need_target(folder: &Path, path: &[PathBuf], network: Network) -> Result<()> {
    let found = TARGET.find_in(folder, path).await;
    if let (Found::Missing, Network::Allowed) = (&found, network)
        && let Found::Good(rustup) = RUSTUP.find_in(folder, path).await
    {
        tracing::info!("adding what rustc lacks: {}", TARGET.install);
        let mut command = rustup.command();
        // Rustup adds it to the toolchain that this folder selects.
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

/// A component as cargo left it.
///
/// Its file is called after the crate alone. Two workspaces that share a target folder, with a crate of the same name in each, overwrite each other's, and cargo
/// still calls both of them fresh: so it is written down beside the file whose it is.
struct Artifact {
    file: PathBuf,
    package: String,
    /// Cargo had nothing to do.
    fresh: bool,
}

impl Artifact {
    fn owner(&self) -> PathBuf {
        self.file.with_extension("wasm.owner")
    }

    /// As far as anybody has written down.
    fn is_of(&self, manifest: &Path) -> bool {
        std::fs::read(self.owner())
            .is_ok_and(|owner| owner == manifest.as_os_str().as_encoded_bytes())
    }

    /// The component that cargo names for this manifest.
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

/// A line of cargo's.
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

    /// A toolchain whose rustc lacks the target until the file `added` is there, and its rustup.
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
        let command = "rust target wasm32-wasip2 is needed to build rust plugins, and is not installed: rustup target add wasm32-wasip2";
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
