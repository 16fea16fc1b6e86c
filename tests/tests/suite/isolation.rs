//! Promise 8: a broken plugin slows only itself.

use anyhow::{Result, ensure};
use vmhost_tests::expect::{KILLED_CALLS, RECONCILE_ERRORS};
use vmhost_tests::guests::{self, Mode, PolicyFile};
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::Vms;
use vmhost_tests::{both_servers, host};

const MANY: usize = 100;

/// The good policy finishes all VMs beside these, the probes answer, and the watch goes on.
async fn beside(server: &TestServer, hostile: &[(&str, Vec<u8>)]) -> Result<()> {
    let vms = Vms::install(server).await?;
    let good = PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Keep)?)?;
    let mut files = Vec::new();
    let mut command = host::on(&server.kubeconfig())?
        .namespace(vms.namespace())
        .plugin(good.path())
        .args(["--call-timeout", "1s", "--memory-limit", "64Mi"]);
    for (name, component) in hostile {
        let file = PolicyFile::new(name, component)?;
        command = command.plugin(file.path());
        files.push(file);
    }
    vms.create(0..MANY / 2, 0).await?;
    let host = command.ready().await?;
    for (name, _) in hostile {
        host.until_metric(KILLED_CALLS, &[("plugin", name)], 1.0)
            .await?;
    }
    vms.create(MANY / 2..MANY, 0).await?;
    vms.until_complete(MANY).await?;
    for path in ["/healthz", "/readyz"] {
        let (code, body) = host.probe(path).await?;
        ensure!(code == 200, "{path} answers {code}: {body}");
    }
    let metrics = host.metrics().await?;
    ensure!(metrics.sum(RECONCILE_ERRORS, &[]) >= 1.0);
    ensure!(
        metrics.sum(KILLED_CALLS, &[("plugin", "vm-stamp")]) == 0.0,
        "the good plugin suffered"
    );
    Ok(())
}

both_servers!(guests_that_spin);
async fn guests_that_spin(server: &TestServer) -> Result<()> {
    // Both cores of the smallest machine.
    beside(
        server,
        &[
            ("spin", guests::spin_as("spin")?),
            ("spin-two", guests::spin_as("spin-two")?),
        ],
    )
    .await
}

both_servers!(a_guest_that_traps);
async fn a_guest_that_traps(server: &TestServer) -> Result<()> {
    beside(server, &[("trap", guests::read(guests::TRAP)?)]).await
}

both_servers!(a_guest_that_eats_memory);
async fn a_guest_that_eats_memory(server: &TestServer) -> Result<()> {
    beside(server, &[("eat-memory", guests::read(guests::EAT_MEMORY)?)]).await
}

both_servers!(a_guest_that_recurses);
async fn a_guest_that_recurses(server: &TestServer) -> Result<()> {
    beside(server, &[("recurse", guests::read(guests::RECURSE)?)]).await
}

both_servers!(a_guest_that_answers_no_utf8);
async fn a_guest_that_answers_no_utf8(server: &TestServer) -> Result<()> {
    beside(server, &[("bad-utf8", guests::read(guests::BAD_UTF8)?)]).await
}

both_servers!(a_guest_that_answers_a_hundred_megabytes);
async fn a_guest_that_answers_a_hundred_megabytes(server: &TestServer) -> Result<()> {
    beside(server, &[("amplify", guests::read(guests::AMPLIFY)?)]).await
}

both_servers!(all_of_them_at_once);
async fn all_of_them_at_once(server: &TestServer) -> Result<()> {
    let all = [
        ("spin", guests::read(guests::SPIN)?),
        ("trap", guests::read(guests::TRAP)?),
        ("eat-memory", guests::read(guests::EAT_MEMORY)?),
        ("recurse", guests::read(guests::RECURSE)?),
        ("bad-utf8", guests::read(guests::BAD_UTF8)?),
        ("amplify", guests::read(guests::AMPLIFY)?),
    ];
    beside(server, &all).await
}
