//! Promise 5: a call sees one generation from get to settle.

use anyhow::{Context, Result, ensure};
use vmhost_tests::both_servers;
use vmhost_tests::expect::GENERATION;
use vmhost_tests::guests::{self, Mode, PolicyFile, SECOND, Way};
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::{PLURAL, Vms};

both_servers!(a_turn_ends_on_the_generation_that_began_it);
async fn a_turn_ends_on_the_generation_that_began_it(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Twice)?)?;
    let proxy = server.proxy().await?;
    let hold = proxy.hold(|request| request.writes(PLURAL));
    let host = vms.host(proxy.kubeconfig(), &policy)?.ready().await?;
    vms.create(0..1, 0).await?;
    hold.reached(1).await?;
    // Between the two effects another policy is announced. The announcement does not wait for the
    // turn.
    let plugin = [("plugin", "vm-stamp")];
    let generation = host.generation("vm-stamp").await?;
    policy.swap(&guests::vm_stamp(2, Mode::Twice)?, Way::Rename)?;
    host.until_metric(GENERATION, &plugin, generation + 1.0)
        .await?;
    hold.release();
    let vm = vms
        .until_one(&Vms::name(0), "both effects are there", |vm| {
            vm.complete() && vm.annotation(SECOND).is_some()
        })
        .await?;
    ensure!(vm.stamp == Some(1), "{vm:?}");
    let second = vm.annotation(SECOND).context("it is there")?;
    ensure!(second == "1", "the turn began on 1 and ended on {second}");
    // The next turn begins on the new generation.
    vms.create(1..2, 0).await?;
    let vm = vms
        .until_one(&Vms::name(1), "it is complete", |vm| vm.complete())
        .await?;
    ensure!(vm.stamp == Some(2), "{vm:?}");
    Ok(())
}
