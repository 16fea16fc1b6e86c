//! From a folder of source to a component. Today the source is Rust: cargo does the work, with the flags that make a component small.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::cli::{BuildArgs, OutputFormat};

/// The target whose output is a component already.
const TARGET: &str = "wasm32-wasip2";

/// Small, stripped, and without the unwinding that a trap makes useless.
const PROFILE: &[&str] = &[
    "profile.release.opt-level=\"s\"",
    "profile.release.lto=true",
    "profile.release.codegen-units=1",
    "profile.release.panic=\"abort\"",
    "profile.release.strip=true",
    "profile.release.debug=false",
];

/// A component that was built.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Built {
    /// Where it lies.
    pub path: PathBuf,
    /// Its size in bytes.
    pub size: u64,
    /// How long it took, in milliseconds.
    #[serde(serialize_with = "as_millis", rename = "milliseconds")]
    pub took: Duration,
}

fn as_millis<S: serde::Serializer>(took: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(took.as_millis() as u64)
}

/// `vmhost build`.
pub async fn command(args: &BuildArgs) -> Result<()> {
    if !args.folder.is_dir() {
        bail!("{} is not a folder of source", args.folder.display());
    }
    let out = args
        .out
        .clone()
        .unwrap_or_else(|| component_path(&args.folder));
    let built = build(&args.folder, &out).await?;
    match args.output {
        OutputFormat::Json => crate::run::print(&serde_json::to_string(&built)?),
        OutputFormat::Text => crate::run::print(&format!(
            "built {}: {} bytes in {:.1?}",
            built.path.display(),
            built.size,
            built.took
        )),
    }
    Ok(())
}

/// `plugins/vm` becomes `plugins/vm.wasm`.
pub fn component_path(folder: &Path) -> PathBuf {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push(".wasm");
    folder.with_file_name(name)
}

/// The file of a plugin that the user named: a folder is built first.
pub async fn component_of(path: &Path) -> Result<PathBuf> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let out = component_path(path);
    let built = build(path, &out).await?;
    tracing::info!(
        "built {}: {} bytes in {:.1?}",
        built.path.display(),
        built.size,
        built.took
    );
    Ok(out)
}

/// Builds. The compiler's own messages go to this process's stderr.
pub async fn build(folder: &Path, out: &Path) -> Result<Built> {
    let started = Instant::now();
    let folder = &folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let manifest = folder.join("Cargo.toml");
    if !manifest.is_file() {
        bail!(
            "{} has no Cargo.toml: only Rust sources can be built; build others with their own tools and give the component's file",
            folder.display()
        );
    }
    let mut artifact = compile(folder, &manifest).await?;
    if artifact.fresh && !artifact.is_of(&manifest) {
        artifact.clean(&manifest).await?;
        artifact = compile(folder, &manifest).await?;
    }
    // Only for the next build to look at.
    let _ = std::fs::write(artifact.owner(), manifest.as_os_str().as_encoded_bytes());
    let size =
        install(&artifact.file, out).with_context(|| format!("cannot write {}", out.display()))?;
    Ok(Built {
        path: out.to_owned(),
        size,
        took: started.elapsed(),
    })
}

/// Runs cargo.
async fn compile(folder: &Path, manifest: &Path) -> Result<Artifact> {
    let mut command = cargo("build", manifest);
    command.args(["--lib", "--message-format", "json-render-diagnostics"]);
    for setting in PROFILE {
        command.args(["--config", setting]);
    }
    let output = command
        .spawn()
        .context("cannot run cargo: install Rust by rustup to build plugins")?
        .wait_with_output()
        .await?;
    if !output.status.success() {
        bail!(
            "building {} failed; cargo's messages are above (a missing target is added by: rustup target add {TARGET})",
            folder.display()
        );
    }
    Artifact::of(&output.stdout, manifest).with_context(|| {
        format!(
            "{} built no component: its Cargo.toml needs crate-type = [\"cdylib\"] under [lib]",
            folder.display()
        )
    })
}

fn cargo(command: &str, manifest: &Path) -> tokio::process::Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut cargo = tokio::process::Command::new(program);
    cargo.args([command, "--release", "--target", TARGET, "--quiet"]);
    cargo.arg("--manifest-path").arg(manifest);
    // What cargo set for the host's own build must not reach the guest's.
    cargo
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTFLAGS");
    cargo
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .kill_on_drop(true);
    cargo
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

    /// Makes cargo build it again.
    async fn clean(&self, manifest: &Path) -> Result<()> {
        let mut command = cargo("clean", manifest);
        command.args(["--package", &self.package]);
        let cleaned = command.spawn()?.wait_with_output().await?;
        if !cleaned.status.success() {
            bail!(
                "cargo cannot clean {}; its messages are above",
                self.package
            );
        }
        Ok(())
    }

    /// The component that cargo names for this manifest.
    fn of(messages: &[u8], manifest: &Path) -> Option<Self> {
        let artifact = artifact(messages, manifest)?;
        let is_component = |file: &PathBuf| {
            file.extension()
                .is_some_and(|extension| extension == "wasm")
        };
        Some(Self {
            file: artifact.filenames.into_iter().find(is_component)?,
            package: artifact.package_id,
            fresh: artifact.fresh,
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

fn artifact(messages: &[u8], manifest: &Path) -> Option<Message> {
    let manifest = manifest.canonicalize().ok()?;
    messages
        .split(|&byte| byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<Message>(line).ok())
        .filter(|message| message.reason == "compiler-artifact")
        .filter(|message| {
            message
                .manifest_path
                .as_deref()
                .is_some_and(|path| path.canonicalize().ok().as_deref() == Some(&manifest))
        })
        .find(|message| {
            let mut files = message.filenames.iter();
            files.any(|file| {
                file.extension()
                    .is_some_and(|extension| extension == "wasm")
            })
        })
}

/// Beside the target first and then in its place: nobody reads half of it.
fn install(artifact: &Path, out: &Path) -> Result<u64> {
    let folder = out
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    let size = std::io::copy(&mut std::fs::File::open(artifact)?, &mut file)?;
    let readable = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o644);
    file.as_file().set_permissions(readable)?;
    file.persist(out)?;
    Ok(size)
}
