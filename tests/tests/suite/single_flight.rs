//! Promise 2: a key is never in two workers.

use anyhow::{Result, bail, ensure};
use serde_json::json;
use vmhost_tests::both_servers;
use vmhost_tests::guests::{self, Mode, PolicyFile};
use vmhost_tests::proxy::Request;
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::{PLURAL, Vms};

/// How often a test begins anew because the host gave up a held write: on a busy machine the steps
/// meanwhile may take longer than a write may.
const ATTEMPTS: usize = 5;

both_servers!(a_key_waits_for_its_own_turn);
async fn a_key_waits_for_its_own_turn(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Keep)?)?;
    let proxy = server.proxy().await?;
    let _host = vms
        .host(proxy.kubeconfig(), &policy)?
        .args(["--workers", "4"])
        .ready()
        .await?;
    for attempt in 0..ATTEMPTS {
        let (slow, marker) = (Vms::name(2 * attempt), Vms::name(2 * attempt + 1));
        let ending = format!("/{slow}");
        let of_slow =
            move |request: &Request| request.writes(PLURAL) && request.path.ends_with(&ending);
        let hold = proxy.hold(of_slow.clone());
        vms.create_one(&slow, 0).await?;
        hold.reached(1).await?;
        // The key becomes dirty repeatedly while a worker has it; the other workers are idle and
        // must not take it.
        for round in 0..10 {
            let labels = json!({ "round": round.to_string() });
            let changed = json!({ "metadata": { "labels": labels } });
            vms.merge(&slow, changed).await?;
        }
        // Its events follow those of the changes: when it is complete, the host has seen these.
        vms.create_one(&marker, 0).await?;
        vms.until_one(&marker, "the marker is complete", |vm| vm.complete())
            .await?;
        let held = hold.held();
        hold.release();
        vms.until_complete(2 * attempt + 2).await?;
        if proxy.was_given_up(of_slow) {
            // Then the key had its next turn, and rightly so.
            continue;
        }
        ensure!(held == 1, "{held} turns of one key at once");
        return Ok(());
    }
    bail!("a held write was given up each time")
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
