//! Promise 9: a failed reload changes nothing but a counter, a log line and a status.

use std::fs::File;
use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use vmhost_tests::bad::{self, Bad};
use vmhost_tests::expect::{GENERATION, NOT_RELOADED, RELOADS};
use vmhost_tests::guests::{self, Mode, PolicyFile, Way};
use vmhost_tests::host::Host;
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::{Vm, Vms};
use vmhost_tests::{both_servers, host};

const PLUGIN: (&str, &str) = ("plugin", "vm-stamp");

/// How long the writer of a file pauses. A file that is read while it is written cannot be loaded,
/// and the host says so when it has not changed for a second.
const LONGER_THAN_PATIENCE: Duration = Duration::from_millis(1500);

async fn failures(host: &Host) -> Result<f64> {
    Ok(host.metrics().await?.sum(RELOADS, &[PLUGIN, NOT_RELOADED]))
}

both_servers!(the_old_policy_stays);
async fn the_old_policy_stays(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Keep)?)?;
    let host = host::on(&server.kubeconfig())?
        .namespace(vms.namespace())
        .plugin(policy.path())
        .args(["--call-timeout", "1s"])
        .ready()
        .await?;
    let generation = host.generation("vm-stamp").await?;
    let all = bad::plugins()?.into_iter().chain(bad::wider()?);
    for (number, Bad { what, bytes, says }) in all.enumerate() {
        let before = failures(&host).await?;
        let says_it = |line: &str| says.iter().all(|word| line.contains(word));
        let heard = host.output().iter().filter(|line| says_it(line)).count();
        policy.swap(&bytes, Way::Rename)?;
        host.until_metric(RELOADS, &[PLUGIN, NOT_RELOADED], before + 1.0)
            .await
            .context(what)?;
        // The line comes after the count, and through a pipe.
        host.wait_for_lines(heard + 1, says_it)
            .await
            .with_context(|| format!("{what}: waiting for a new line with {says:?}"))?;
        ensure!(
            host.metrics().await?.sum(GENERATION, &[PLUGIN]) == generation,
            "{what}: a new generation"
        );
        vms.create(number..number + 1, 0).await?;
        let name = Vms::name(number);
        let vm = vms
            .until_one(&name, "the old policy works", |vm| vm.complete())
            .await
            .context(what)?;
        ensure!(vm.stamp == Some(1), "{what}: {vm:?}");
    }
    // And a good one is loaded afterwards.
    policy.swap(&guests::vm_stamp(2, Mode::Keep)?, Way::Rename)?;
    host.until_metric(GENERATION, &[PLUGIN], generation + 1.0)
        .await?;
    Ok(())
}

both_servers!(a_file_that_grows_slowly_is_never_loaded_in_part);
async fn a_file_that_grows_slowly_is_never_loaded_in_part(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Keep)?)?;
    let host = host::on(&server.kubeconfig())?
        .namespace(vms.namespace())
        .plugin(policy.path())
        .ready()
        .await?;
    let generation = host.generation("vm-stamp").await?;
    let policy_of = |number| guests::vm_stamp(number, Mode::Keep);
    let swapped = async |number: u32| {
        let announced = generation + f64::from(number - 1);
        host.until_metric(GENERATION, &[PLUGIN], announced).await
    };
    // In two halves, one behind the other.
    for number in 2..6 {
        policy.swap(&policy_of(number)?, Way::InPlace)?;
        swapped(number).await?;
    }
    // With pauses in which whoever reads it finds a part of it, and says so.
    let bytes = policy_of(6)?;
    let mut file = File::create(policy.path())?;
    for (at, piece) in bytes.chunks(bytes.len() / 3 + 1).enumerate() {
        file.write_all(piece)?;
        tokio::time::sleep(LONGER_THAN_PATIENCE).await;
        vms.create(at..at + 1, 0).await?;
        let vm = vms
            .until_one(&Vms::name(at), "the old policy works", Vm::complete)
            .await?;
        ensure!(vm.stamp == Some(5), "{vm:?}");
    }
    drop(file);
    swapped(6).await?;
    ensure!(
        failures(&host).await? == 0.0,
        "a part of a file was taken for a plugin"
    );
    Ok(())
}
