//! The steps of a plugin's author: `vmhost dev`, `build` and `inspect`, from source to a finished
//! VM.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use vmhost_tests::guests::{self, Mode, PolicyFile, Way};
use vmhost_tests::host::{self, Host};
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::Vms;
use vmhost_tests::wait::eventually_within;
use vmhost_tests::{both_servers, kubeconfig, net, run};

const PLUGINS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../plugins");
/// A first build compiles serde and the SDK, perhaps while other tests run.
const BUILD: Duration = Duration::from_secs(300);

fn vm_folder() -> PathBuf {
    Path::new(PLUGINS).join("vm")
}

/// The path to which [`dev`] writes its kubeconfig: the default path, in that folder.
fn kubeconfig_of(dir: &Path) -> PathBuf {
    dir.join(".vmhost/kubeconfig")
}

/// Starts `vmhost dev` on a plugin, with the VM's manifests; returns the host and the VMs of its
/// `default` namespace.
async fn dev(plugin: &Path, dir: &Path) -> Result<(Host, Vms)> {
    let file = kubeconfig_of(dir);
    let host = host::bare()?
        .arg("dev")
        .arg(plugin)
        .arg("--manifests")
        .arg(vm_folder().join("manifests"))
        .arg("--write-kubeconfig")
        .arg(&file)
        .current_dir(dir)
        .spawn()?;
    let applied = eventually_within(BUILD, "dev applied its manifests", async || {
        if let Some(status) = host.exited()? {
            return Ok(Some(Err(status)));
        }
        let vms = Vms::of(kubeconfig::client(&file).await?, "default");
        Ok(vms.get("public-wx").await?.map(Ok))
    })
    .await?;
    if let Err(status) = applied {
        anyhow::bail!("dev ended: {status}");
    }
    Ok((host, Vms::of(kubeconfig::client(&file).await?, "default")))
}

#[test]
fn dev_runs_and_swaps_a_component() {
    run::alone("dev_runs_and_swaps_a_component", async || {
        let dir = tempfile::tempdir()?;
        let policy = PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Keep)?)?;
        let (host, vms) = dev(policy.path(), dir.path()).await?;
        let vm = vms
            .until_one("public-wx", "it is complete", |vm| vm.complete())
            .await?;
        ensure!(vm.stamp == Some(1), "{vm:?}");
        policy.swap(&guests::vm_stamp(2, Mode::Restamp)?, Way::Rename)?;
        vms.until_one("public-wx", "it is stamped again", |vm| vm.stamp == Some(2))
            .await?;
        host.sigterm()?;
        let exit = host.wait_exit().await?;
        ensure!(exit.status.success(), "{exit:?}");
        Ok(())
    });
}

#[test]
fn status_and_metrics_of_a_running_dev_are_found() {
    run::alone(
        "status_and_metrics_of_a_running_dev_are_found",
        async || {
            let dir = tempfile::tempdir()?;
            let policy = PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Keep)?)?;
            let (host, _) = dev(policy.path(), dir.path()).await?;
            let kubeconfig = kubeconfig_of(dir.path());
            let elsewhere = tempfile::tempdir()?;
            for (what, command) in [
                ("in its folder", host::bare()?.current_dir(dir.path())),
                (
                    "by its kubeconfig",
                    host::bare()?
                        .current_dir(elsewhere.path())
                        .env("KUBECONFIG", &kubeconfig),
                ),
            ] {
                let status = command.arg("status").run().await?;
                let shown = |line: &String| line.contains("vm-stamp");
                ensure!(status.status.success(), "{what}: {status:?}");
                ensure!(status.stdout.iter().any(shown), "{what}: {status:?}");
            }
            let file = dir.path().join(".vmhost/kubeconfig.address");
            let address = fs::read_to_string(&file).context("reading the address")?;
            let line = host
                .wait_for_line(&format!("admin        http://{}", address.trim()))
                .await?;
            ensure!(line.contains("/#token="), "{line}");
            let line = host.wait_for_line("metrics      http://").await?;
            let address = line
                .split_once("http://")
                .and_then(|(_, rest)| rest.strip_suffix("/metrics"))
                .context("the line of the metrics")?;
            let (code, text) = net::get(address.parse()?, "/metrics").await?;
            ensure!(
                code == 200 && text.contains("vmhost_plugin_generation{plugin=\"vm-stamp\"} 1"),
                "{code}: {text}"
            );
            host.sigterm()?;
            host.wait_exit().await?;
            ensure!(!file.exists(), "{} is left behind", file.display());
            Ok(())
        },
    );
}

/// Returns a stand-alone copy of `plugins/vm`, which a test may edit.
fn copy_of_vm(dir: &Path) -> Result<PathBuf> {
    let folder = dir.join("vm");
    fs::create_dir_all(folder.join("src"))?;
    fs::copy(vm_folder().join("src/lib.rs"), folder.join("src/lib.rs"))
        .context("copying the source")?;
    let sdk = Path::new(PLUGINS)
        .join("sdk-rust")
        .canonicalize()
        .context("finding the SDK")?;
    let manifest = format!(
        r#"[package]
name = "vm"
version = "0.1.0"
edition = "2024"

[lib]
crate-type = ["cdylib", "rlib"]

[dependencies]
vmhost-plugin = {{ path = {sdk:?} }}
serde = {{ version = "1", features = ["derive"] }}

[workspace]
"#
    );
    fs::write(folder.join("Cargo.toml"), manifest)?;
    // Only the versions that the workspace uses are certain to be on this machine.
    fs::copy(
        Path::new(PLUGINS).join("../Cargo.lock"),
        folder.join("Cargo.lock"),
    )
    .context("copying the lock file")?;
    Ok(folder)
}

#[test]
fn dev_rebuilds_what_is_saved() {
    run::alone("dev_rebuilds_what_is_saved", async || {
        let dir = tempfile::tempdir()?;
        let folder = copy_of_vm(dir.path())?;
        let source = folder.join("src/lib.rs");
        let original = fs::read_to_string(&source)?;
        let (host, vms) = dev(&folder, dir.path()).await?;
        vms.until_one("public-wx", "it is complete", |vm| vm.complete())
            .await?;

        fs::write(
            &source,
            format!("{original}\nfn broken() -> u32 {{ \"no number\" }}\n"),
        )?;
        eventually_within(BUILD, "the compiler's own message", async || {
            let lines = host.output();
            let told = lines.iter().any(|line| line.contains("mismatched types"));
            Ok(told.then_some(()))
        })
        .await?;
        vms.create_one("after-the-error", 0).await?;
        vms.until_one("after-the-error", "the old policy works", |vm| {
            vm.complete()
        })
        .await?;

        let changed = original.replacen(
            r#""/spec/status", "complete""#,
            r#""/spec/status", "finished""#,
            1,
        );
        ensure!(
            changed != original,
            "the policy no longer says what this test edits"
        );
        fs::write(&source, changed)?;
        eventually_within(BUILD, "the new policy works", async || {
            vms.reopen("public-wx").await?;
            let seen = vms
                .until_one("public-wx", "it left `creating`", |vm| {
                    vm.status != "creating"
                })
                .await?;
            Ok((seen.status == "finished").then_some(()))
        })
        .await
    });
}

both_servers!(a_built_plugin_runs);
async fn a_built_plugin_runs(server: &TestServer) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let component = dir.path().join("vm.wasm");
    let host = host::bare()?
        .arg("build")
        .arg(vm_folder())
        .arg("--out")
        .arg(&component)
        .spawn()?;
    let exit = host.wait_exit_within(BUILD).await?;
    ensure!(exit.status.success(), "{exit:?}");

    let inspect = host::bare()?
        .arg("inspect")
        .arg(&component)
        .args(["--output", "json"])
        .run()
        .await?;
    ensure!(inspect.status.success(), "{inspect:?}");
    let document: Value =
        serde_json::from_str(&inspect.stdout.join("\n")).context("inspect's output is no JSON")?;
    ensure!(
        document.to_string().contains("VirtualMachine"),
        "{document}"
    );

    let vms = Vms::install(server).await?;
    let _host = host::on(&server.kubeconfig())?
        .namespace(vms.namespace())
        .plugin(&component)
        .ready()
        .await?;
    vms.create(0..20, 512).await?;
    vms.until_complete(20).await?;
    Ok(())
}
