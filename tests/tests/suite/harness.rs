//! The harness itself: the assumptions of all other tests.

use anyhow::{Context, Result, ensure};
use futures_util::{StreamExt, TryStreamExt};
use kube::api::{ListParams, WatchParams};
use kube::core::WatchEvent;
use vmhost_tests::both_servers;
use vmhost_tests::proxy::Refusal;
use vmhost_tests::real::PLAIN_USER;
use vmhost_tests::server::{Target, TestServer};
use vmhost_tests::vm::{PLURAL, Vms};
use vmhost_tests::{kubeconfig, run};

both_servers!(vms_are_created_and_awaited);
async fn vms_are_created_and_awaited(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    vms.create(0..20, 512).await?;
    ensure!(vms.list().await?.len() == 20);
    let writer = vms.clone();
    let writing = tokio::spawn(async move {
        for number in 0..20 {
            let name = Vms::name(number);
            writer
                .merge(
                    &name,
                    serde_json::json!({ "spec": { "status": "complete" } }),
                )
                .await?;
        }
        anyhow::Ok(())
    });
    vms.until_complete(20).await?;
    writing.await??;
    vms.delete(&Vms::name(0)).await?;
    ensure!(vms.get(&Vms::name(0)).await?.is_none());
    Ok(())
}

both_servers!(a_killed_server_comes_back_with_its_data, own);
async fn a_killed_server_comes_back_with_its_data(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    vms.create(0..3, 0).await?;
    server.kill9().await?;
    ensure!(vms.list().await.is_err(), "a killed server answers");
    server.restart().await?;
    // Not immediately: a restarted server answers lists with 429 until the CRD's storage is set up
    // again.
    vms.until("the VMs are back", |vms| vms.len() == 3).await?;
    Ok(())
}

both_servers!(a_watch_from_compacted_history_is_gone, own);
async fn a_watch_from_compacted_history_is_gone(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    vms.create(0..1, 0).await?;
    let old = vms
        .get(&Vms::name(0))
        .await?
        .context("it was created")?
        .version;
    vms.create(1..5, 0).await?;
    server.compact().await?;
    server.restart().await?;
    vms.until("the VMs are back", |vms| vms.len() == 5).await?;
    let mut events = vms
        .api()
        .watch(&WatchParams::default(), &old)
        .await?
        .boxed();
    match events.try_next().await {
        Ok(Some(WatchEvent::Error(status))) if status.code == 410 => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 410 => Ok(()),
        other => anyhow::bail!("not gone: {other:?}"),
    }
}

both_servers!(the_proxy_refuses_loses_holds_and_cuts);
async fn the_proxy_refuses_loses_holds_and_cuts(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let proxy = server.proxy().await?;
    let through = Vms::of(
        kubeconfig::client(proxy.kubeconfig()).await?,
        vms.namespace(),
    );

    proxy.refuse(1, Refusal::too_many_requests(7), |request| {
        request.is_list(PLURAL)
    });
    let error = through
        .list()
        .await
        .err()
        .context("a refused list succeeds")?;
    ensure!(
        format!("{error:#}").contains("too many requests"),
        "{error:#}"
    );
    ensure!(through.list().await?.is_empty());

    proxy.lose_answers(1, |request| request.writes(PLURAL));
    through.create_one("lost", 0).await?;
    let creations =
        proxy.requests_where(|request| request.method == "POST" && request.concerns(PLURAL));
    let codes: Vec<_> = creations.iter().map(|request| request.answered).collect();
    ensure!(
        codes == [None, Some(409)],
        "the first creation was not carried out: {codes:?}"
    );
    ensure!(
        creations[0].json().pointer("/spec/status").is_some(),
        "the body was not recorded"
    );

    let hold = proxy.hold(|request| request.writes(PLURAL));
    let writer = through.clone();
    let writing = tokio::spawn(async move { writer.reopen("lost").await });
    hold.reached(1).await?;
    ensure!(!writing.is_finished());
    hold.release();
    writing.await??;

    let watching = through.until_one("lost", "the VM is complete", |vm| vm.complete());
    let cutting = async {
        proxy.wait_for(1, |request| request.is_watch()).await?;
        proxy.cut_watches();
        proxy.wait_for(2, |request| request.is_watch()).await?;
        proxy.refuse_connections(true);
        ensure!(through.list().await.is_err(), "a refusing proxy answers");
        proxy.refuse_connections(false);
        vms.merge(
            "lost",
            serde_json::json!({ "spec": { "status": "complete" } }),
        )
        .await
    };
    tokio::try_join!(watching, cutting)?;
    Ok(())
}

#[test]
fn a_plain_user_has_no_rights() {
    run::real_shared("a_plain_user_has_no_rights", async |server| {
        let path = server
            .kubeconfig_of(PLAIN_USER)
            .context("a real server has users")?;
        let vms = Vms::install(server).await?;
        let plain = Vms::of(kubeconfig::client(&path).await?, vms.namespace());
        match plain.api().list(&ListParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 403 => Ok(()),
            other => anyhow::bail!("not forbidden: {other:?}"),
        }
    });
}

#[test]
fn tests_know_their_target() {
    run::real_shared("tests_know_their_target", async |server| {
        ensure!(server.target() == Target::Real);
        Ok(())
    });
}
