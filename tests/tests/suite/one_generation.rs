//! Promise 5: a call sees one generation from get to settle.

use anyhow::{Context, Result, bail, ensure};
use vmhost_tests::both_servers;
use vmhost_tests::expect::GENERATION;
use vmhost_tests::guests::{self, Mode, PolicyFile, SECOND, Way};
use vmhost_tests::proxy::Request;
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::{PLURAL, Vms};

/// How often a test begins anew because the host gave up a held write: on a busy machine a swap may
/// take longer than a write may.
const ATTEMPTS: usize = 5;

both_servers!(a_turn_ends_on_the_generation_that_began_it);
async fn a_turn_ends_on_the_generation_that_began_it(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Twice)?)?;
    let proxy = server.proxy().await?;
    let host = vms.host(proxy.kubeconfig(), &policy)?.ready().await?;
    let plugin = [("plugin", "vm-stamp")];
    let generation = host.generation("vm-stamp").await?;
    for attempt in 0..ATTEMPTS {
        let old = attempt as u32 + 1;
        let (name, later) = (Vms::name(2 * attempt), Vms::name(2 * attempt + 1));
        let ending = format!("/{name}");
        let of_turn =
            move |request: &Request| request.writes(PLURAL) && request.path.ends_with(&ending);
        let hold = proxy.hold(of_turn.clone());
        vms.create_one(&name, 0).await?;
        hold.reached(1).await?;
        // Between the two effects another policy is announced. The announcement does not wait for
        // the turn.
        policy.swap(&guests::vm_stamp(old + 1, Mode::Twice)?, Way::Rename)?;
        host.until_metric(GENERATION, &plugin, generation + f64::from(old))
            .await?;
        hold.release();
        let vm = vms
            .until_one(&name, "both effects are there", |vm| {
                vm.complete() && vm.annotation(SECOND).is_some()
            })
            .await?;
        if proxy.was_given_up(of_turn) {
            // Then the turn ended before the swap, and another one wrote both effects.
            continue;
        }
        ensure!(vm.stamp == Some(old), "{vm:?}");
        let second = vm.annotation(SECOND).context("it is there")?;
        ensure!(
            second == old.to_string(),
            "the turn began on {old} and ended on {second}"
        );
        // The next turn begins on the new generation.
        vms.create_one(&later, 0).await?;
        let vm = vms
            .until_one(&later, "it is complete", |vm| vm.complete())
            .await?;
        ensure!(vm.stamp == Some(old + 1), "{vm:?}");
        return Ok(());
    }
    bail!("a held write was given up each time")
}
