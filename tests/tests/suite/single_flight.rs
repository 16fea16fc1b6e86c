//! Promise 2: a key is never in two workers.

use anyhow::{Result, ensure};
use serde_json::json;
use vmhost_tests::both_servers;
use vmhost_tests::guests::{self, Mode, PolicyFile};
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::{PLURAL, Vms};

both_servers!(a_key_waits_for_its_own_turn);
async fn a_key_waits_for_its_own_turn(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Keep)?)?;
    let proxy = server.proxy().await?;
    let slow = Vms::name(0);
    let name = slow.clone();
    let hold = proxy.hold(move |request| request.writes(PLURAL) && request.path.ends_with(&name));
    let _host = vms
        .host(proxy.kubeconfig(), &policy)?
        .args(["--workers", "4"])
        .ready()
        .await?;
    vms.create(0..1, 0).await?;
    hold.reached(1).await?;
    // The key becomes dirty repeatedly while a worker has it; the other workers are idle and must
    // not take it.
    for round in 0..10 {
        vms.merge(
            &slow,
            json!({ "metadata": { "labels": { "round": round.to_string() } } }),
        )
        .await?;
        vms.create(1 + round..2 + round, 0).await?;
        // Its events follow those of the change: when it is complete, the host has seen the change.
        vms.until_one(&Vms::name(1 + round), "the next VM is complete", |vm| {
            vm.complete()
        })
        .await?;
    }
    ensure!(hold.held() == 1, "{} turns of one key at once", hold.held());
    hold.release();
    vms.until_complete(11).await?;
    Ok(())
}

both_servers!(writes_of_one_key_never_overlap);
async fn writes_of_one_key_never_overlap(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Keep)?)?;
    let proxy = server.proxy().await?;
    let _host = vms
        .host(proxy.kubeconfig(), &policy)?
        .args(["--workers", "8"])
        .ready()
        .await?;
    vms.create(0..3, 0).await?;
    for _ in 0..20 {
        for number in 0..3 {
            vms.reopen(&Vms::name(number)).await?;
        }
    }
    vms.until_complete(3).await?;
    ensure!(
        proxy.overlaps(|request| request.writes(PLURAL)).is_empty(),
        "two writes to one VM at once"
    );
    Ok(())
}
