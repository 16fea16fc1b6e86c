//! Promise 6: only settle writes, and only within the grants.

use anyhow::{Context, Result, ensure};
use vmhost_tests::both_servers;
use vmhost_tests::expect::RECONCILE_ERRORS;
use vmhost_tests::guests::{self, Mode, PolicyFile};
use vmhost_tests::proxy::Request;
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::{PLURAL, Vms};

/// Returns whether a request is an effect: Events are reported in the background, and a review
/// changes nothing.
fn is_effect(request: &Request) -> bool {
    request.is_write()
        && !request.concerns("events")
        && !request.concerns("selfsubjectaccessreviews")
}

both_servers!(a_host_writes_what_its_policy_returned_and_no_more);
async fn a_host_writes_what_its_policy_returned_and_no_more(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Keep)?)?;
    let proxy = server.proxy().await?;
    let _host = vms.host(proxy.kubeconfig(), &policy)?.ready().await?;
    vms.create(0..20, 0).await?;
    vms.until_complete(20).await?;
    let writes = proxy.requests_where(is_effect);
    ensure!(
        writes.len() == 20,
        "one write a VM, and these were sent: {writes:#?}"
    );
    for write in writes {
        ensure!(write.method == "PATCH" && write.concerns(PLURAL), "{write}");
        let manager = write.param("fieldManager").context("no field manager")?;
        ensure!(manager == "vmhost/vm-stamp/vms", "{manager}");
        ensure!(
            write
                .content_type
                .starts_with("application/json-patch+json"),
            "{write:?}"
        );
    }
    Ok(())
}

both_servers!(nothing_of_a_turn_outside_the_grants_is_written);
async fn nothing_of_a_turn_outside_the_grants_is_written(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new("undeclared-kind", &guests::read(guests::UNDECLARED_KIND)?)?;
    let proxy = server.proxy().await?;
    let host = vms.host(proxy.kubeconfig(), &policy)?.ready().await?;
    vms.create(0..1, 0).await?;
    host.until_metric(RECONCILE_ERRORS, &[], 1.0).await?;
    let said = host
        .wait_for_lines(1, |line| {
            line.contains("ConfigMap") && line.contains("create")
        })
        .await?;
    ensure!(!said.is_empty());
    // The first effect is not written either, although it was within the grants.
    ensure!(
        proxy.requests_where(is_effect).is_empty(),
        "{:#?}",
        proxy.requests_where(is_effect)
    );
    ensure!(vms.get(&Vms::name(0)).await?.context("it is there")?.status == "creating");
    Ok(())
}
