//! The image of vmhost and its process as a pod would run it: `host/package/image` builds it,
//! `pod.sh` starts it in namespaces of its own, with the files of a service account.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::account::Account;
use crate::conformance::folder;
use crate::example::User;
use crate::host::{self, HostCommand};
use crate::{kubeconfig, run, without_dev};

/// The flags of the chart's container that say where to listen.
const ADDRESSES: [&str; 4] = [
    "--metrics-bind-address",
    "--health-probe-bind-address",
    "--admin-bind-address",
    "--webhook-bind-address",
];

/// An image as an OCI layout.
pub struct Image {
    layout: PathBuf,
    /// The digest of its manifest.
    pub digest: String,
}

/// What a pod is started from.
pub struct Pod {
    root: TempDir,
    account: TempDir,
    plugins: TempDir,
    server: String,
}

impl Image {
    /// Builds the image of the binary without the feature `dev`, in a folder that does not exist.
    pub fn build(layout: &Path) -> Result<Image> {
        let stripped = layout.with_extension("binary");
        strip(&stripped)?;
        let output = Command::new(folder("host/package/image"))
            .arg("--binary")
            .arg(&stripped)
            .arg(layout)
            .output()
            .context("starting host/package/image")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "host/package/image: {errors}");
        let digest = String::from_utf8(output.stdout)?.trim().to_owned();
        Ok(Image {
            layout: layout.to_owned(),
            digest,
        })
    }

    /// Returns the document with this digest.
    pub fn json(&self, digest: &str) -> Result<Value> {
        let text = fs::read_to_string(self.blob(digest)?).with_context(|| digest.to_owned())?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Returns the index of the layout.
    pub fn index(&self) -> Result<Value> {
        let text = fs::read_to_string(self.layout.join("index.json"))?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Returns the file of a blob.
    pub fn blob(&self, digest: &str) -> Result<PathBuf> {
        let name = digest.strip_prefix("sha256:").context("a digest")?;
        Ok(self.layout.join("blobs/sha256").join(name))
    }

    /// Unpacks the image.
    pub fn unpack(&self, root: &Path) -> Result<()> {
        let manifest = self.json(&self.digest)?;
        for layer in manifest["layers"].as_array().context("it has layers")? {
            let blob = self.blob(layer["digest"].as_str().unwrap_or_default())?;
            let tar = Command::new("tar")
                .arg("--extract")
                .arg("--gzip")
                .arg("--file")
                .arg(blob)
                .arg("--directory")
                .arg(root)
                .status()
                .context("starting tar")?;
            ensure!(tar.success(), "tar: {tar}");
        }
        Ok(())
    }
}

/// Writes the binary without the feature `dev` and without its symbols.
pub fn strip(to: &Path) -> Result<()> {
    let binary = without_dev::path()?;
    let strip = Command::new("strip")
        .arg("-o")
        .args([to, &binary])
        .status()
        .context("starting strip")?;
    ensure!(strip.success(), "strip: {strip}");
    Ok(())
}

/// Returns whether this process may start pods; otherwise the test is reported as skipped.
pub fn possible(test: &str) -> Result<bool> {
    let id = Command::new("id").arg("-u").output()?;
    let is_root = id.stdout.trim_ascii() == b"0";
    if !is_root {
        run::skip(test, "only root can mount what a pod has")?;
    }
    Ok(is_root)
}

impl Pod {
    /// Prepares a pod of an image, with the token of a service account and with one plugin.
    pub async fn new(
        image: &Image,
        user: &User,
        kubeconfig: &Path,
        account: &Account,
        (plugin, component): (&str, &[u8]),
    ) -> Result<Pod> {
        let root = readable()?;
        image.unpack(root.path())?;
        let plugins = readable()?;
        let mounted = plugins.path().join(plugin);
        fs::create_dir(&mounted)?;
        fs::write(mounted.join(format!("{plugin}.wasm")), component)?;

        let token = account.token(user).await?;
        let connection = kubeconfig::read(kubeconfig)?;
        let files = readable()?;
        fs::write(files.path().join("ca.crt"), connection.authority)?;
        fs::write(files.path().join("namespace"), account.namespace())?;
        fs::write(files.path().join("token"), token)?;
        Ok(Pod {
            root,
            account: files,
            plugins,
            server: connection.server,
        })
    }

    /// Returns the command that starts the pod, up to the program's own arguments.
    pub fn command(&self, name: &str) -> Result<HostCommand> {
        let (host, port) = self
            .server
            .strip_prefix("https://")
            .and_then(|address| address.rsplit_once(':'))
            .context("the server has an address and a port")?;
        // The program outlives its parent's death: to become another user takes that signal away.
        let command = host::of(&folder("tests/pod.sh"))?.in_group().arg(name);
        Ok(command
            .arg(self.root.path())
            .arg(self.account.path())
            .arg(self.plugins.path())
            .arg(format!("KUBERNETES_SERVICE_HOST={host}"))
            .arg(format!("KUBERNETES_SERVICE_PORT={port}"))
            .args(["HOME=/data", "XDG_RUNTIME_DIR=/data", "--"]))
    }
}

/// Returns the arguments of the chart's container without the addresses to listen on: other
/// processes of this machine may have their ports.
pub fn without_addresses(arguments: impl IntoIterator<Item = String>) -> Vec<String> {
    let is_address = |argument: &String| {
        let mut flags = ADDRESSES.iter();
        flags.any(|flag| argument.starts_with(flag))
    };
    let arguments = arguments.into_iter();
    arguments.filter(|argument| !is_address(argument)).collect()
}

/// Returns the process id of the program in a pod, whose `pod.sh` has this id.
pub fn program(script: u32) -> Result<u32> {
    let children = fs::read_to_string(format!("/proc/{script}/task/{script}/children"))?;
    let child = children.split_whitespace().next().context("it has ended")?;
    Ok(child.parse()?)
}

/// A folder that the pod's user may enter.
fn readable() -> Result<TempDir> {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir()?;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
    Ok(folder)
}
