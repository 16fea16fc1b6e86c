//! A peer that vanishes without notice: no FIN, no RST, no acknowledgement.

use std::time::Duration;

use anyhow::Result;
use vmhost_tests::both_servers;
use vmhost_tests::guests::{self, Mode, PolicyFile};
use vmhost_tests::relay::Relay;
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::{self, Vms};
use vmhost_tests::wait::eventually_within;

/// The kernel gives up a connection after 45 to 60 s. Without the kernel, the watch would end with
/// its time-out on the server, after 5 to 10 minutes.
const NOTICED: Duration = Duration::from_secs(100);

both_servers!(a_watch_whose_peer_vanishes_is_opened_again);
async fn a_watch_whose_peer_vanishes_is_opened_again(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let relay = Relay::start(&server.kubeconfig()).await?;
    let policy = PolicyFile::new("vm", &guests::vm_stamp(1, Mode::Keep)?)?;
    let _host = vms
        .host(relay.kubeconfig(), &policy)?
        // Disabled, because this test is not about it.
        .args(["--watch-silence", "10m"])
        .ready()
        .await?;
    vms.create_one("before", 64).await?;
    vms.until_one("before", "it is complete", vm::Vm::complete)
        .await?;
    relay.swallow();
    vms.create_one("behind", 64).await?;
    eventually_within(NOTICED, "the VM is complete", async || {
        let vm = vms.get("behind").await?;
        Ok(vm.filter(vm::Vm::complete).map(drop))
    })
    .await
}
