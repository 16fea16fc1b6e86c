//! The host without the feature `dev`: it carries nothing of the workshop, says so, and works.

use anyhow::{Result, ensure};
use vmhost_tests::guests::{self, Mode, PolicyFile};
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::Vms;
use vmhost_tests::{both_servers, without_dev};

/// What a process with a cluster's credentials does not carry.
const WORKSHOP: [&str; 7] = [
    "rust-embed",
    "similar",
    "vmhost-apiserver",
    "vmhost-toolchain",
    "wasi-preview1-component-adapter-provider",
    "wasmtime-wizer",
    "wit-component",
];

#[test]
fn the_workshop_is_no_dependency() -> Result<()> {
    let mut cargo = without_dev::cargo();
    cargo.args(["tree", "--offline", "--locked", "--package", "vmhost"]);
    // What runs in the compiler is in no binary.
    cargo.args(["--no-default-features", "--edges", "normal,no-proc-macro"]);
    let output = cargo
        .args(["--prefix", "none", "--format", "{p}"])
        .output()?;
    let (tree, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    let names: Vec<&str> = tree
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    ensure!(names.contains(&"vmhost-runtime"), "{errors}");
    let carried: Vec<&str> = WORKSHOP
        .into_iter()
        .filter(|name| names.contains(name))
        .collect();
    ensure!(
        carried.is_empty(),
        "without the feature `dev` vmhost depends on {carried:?}"
    );
    Ok(())
}

both_servers!(a_host_without_the_workshop_works);
async fn a_host_without_the_workshop_works(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Keep)?)?;
    let host = without_dev::bare()?
        .on(&server.kubeconfig())
        .namespace(vms.namespace())
        .plugin(policy.path())
        .ready()
        .await?;
    vms.create(0..3, 0).await?;
    vms.until_complete(3).await?;
    host.sigterm()?;
    let exit = host.wait_exit().await?;
    ensure!(exit.status.success(), "{exit:?}");
    Ok(())
}
