//! Promise 1: the newest plugin reconciles every object's last change, whatever was cut, killed or
//! swapped in between.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use vmhost_tests::expect::GENERATION;
use vmhost_tests::guests::{self, Mode, PolicyFile, Way};
use vmhost_tests::proxy::{Proxy, Refusal, Request};
use vmhost_tests::server::{Sharing, Target, TestServer};
use vmhost_tests::vm::{PLURAL, Vms};
use vmhost_tests::{both_servers, host, real, run};

const MANY: usize = 1000;
const PADDING: usize = 512;
/// The number of swaps while VMs are created; at least twenty of the numbers must appear on VMs.
const SWAPS: u32 = 24;
const SEEN: usize = 20;
/// VMs up to this number are created after a backup: two writes each.
const LOST: usize = 200;

fn policy() -> Result<PolicyFile> {
    PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Keep)?)
}

both_servers!(vms_complete);
async fn vms_complete(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = policy()?;
    vms.create(0..10, PADDING).await?;
    let _host = vms.host(&server.kubeconfig(), &policy)?.ready().await?;
    vms.create(10..20, PADDING).await?;
    vms.until_complete(20).await?;
    // Not only new objects: a finished VM that a user reopens is finished again.
    let reopened = vms.reopen(&Vms::name(3)).await?;
    vms.until_one(&Vms::name(3), "it is finished again", |vm| {
        vm.complete() && vm.version != reopened.version
    })
    .await?;
    Ok(())
}

both_servers!(the_server_is_killed_in_a_burst, own);
async fn the_server_is_killed_in_a_burst(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = policy()?;
    let _host = vms.host(&server.kubeconfig(), &policy)?.ready().await?;
    let creating = vms.create(0..MANY, PADDING);
    let killing = async {
        for done in [MANY / 10, MANY / 2] {
            let what = format!("{done} VMs are complete");
            vms.until(&what, |vms| {
                vms.values().filter(|vm| vm.complete()).count() >= done
            })
            .await?;
            server.kill9().await?;
            server.restart().await?;
        }
        anyhow::Ok(())
    };
    tokio::try_join!(creating, killing)?;
    vms.until_complete(MANY).await?;
    Ok(())
}

both_servers!(watches_are_cut_and_history_is_gone);
async fn watches_are_cut_and_history_is_gone(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = policy()?;
    let proxy = server.proxy().await?;
    let _host = vms.host(proxy.kubeconfig(), &policy)?.ready().await?;
    let creating = vms.create(0..MANY, PADDING);
    let cutting = async {
        for (round, done) in [MANY / 10, MANY / 4, MANY / 2].into_iter().enumerate() {
            let what = format!("{done} VMs are complete");
            vms.until(&what, |vms| {
                vms.values().filter(|vm| vm.complete()).count() >= done
            })
            .await?;
            // The second cut also drops the history, so that the watch cannot continue from its
            // position.
            let history_is_gone = round == 1;
            if history_is_gone {
                proxy.refuse(1, Refusal::expired(), |request| {
                    request.is_watch() && request.concerns(PLURAL)
                });
            }
            proxy.cut_watches();
            if history_is_gone {
                let gone = |request: &Request| request.is_watch() && request.answered == Some(410);
                proxy.wait_for(1, gone).await?;
                proxy.wait_for(2, |request| request.is_list(PLURAL)).await?;
            }
        }
        anyhow::Ok(())
    };
    tokio::try_join!(creating, cutting)?;
    vms.until_complete(MANY).await?;
    Ok(())
}

both_servers!(history_is_gone_when_the_server_comes_back, own);
async fn history_is_gone_when_the_server_comes_back(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = policy()?;
    let proxy = server.proxy().await?;
    let host = vms.host(proxy.kubeconfig(), &policy)?.ready().await?;
    vms.create(0..10, 0).await?;
    vms.until_complete(10).await?;
    proxy.refuse_connections(true);
    vms.delete(&Vms::name(0)).await?;
    vms.reopen(&Vms::name(1)).await?;
    server.compact().await?;
    // Also drops the history in the server's memory.
    server.restart().await?;
    vms.until("the server is back", |vms| vms.len() == 9)
        .await?;
    proxy.refuse_connections(false);
    let told = |line: &str| line.contains("VirtualMachine") && line.contains("too old");
    host.wait_for_lines(1, told)
        .await
        .context("waiting for the server's own 410")?;
    vms.until_complete(9).await?;
    Ok(())
}

both_servers!(history_that_is_always_too_short_is_told_once);
async fn history_that_is_always_too_short_is_told_once(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = policy()?;
    let proxy = server.proxy().await?;
    // Each list takes longer than the server keeps the history.
    let expired = |request: &Request| request.is_watch() && request.concerns(PLURAL);
    proxy.refuse(4, Refusal::expired(), expired);
    let host = vms.host(proxy.kubeconfig(), &policy)?.ready().await?;
    vms.create(0..1, 0).await?;
    vms.until_complete(1).await?;
    proxy.wait_for(5, expired).await?;
    let warning = host
        .wait_for_line("took longer than the API server keeps resource versions")
        .await?;
    for word in [
        "VirtualMachine.v1.cloud.waibizi.com",
        "too old resource version",
    ] {
        ensure!(warning.contains(word), "{warning}");
    }
    let told = |line: &&String| line.contains("keeps resource versions");
    let times = host.output().iter().filter(told).count();
    ensure!(times == 1, "told {times} times");
    Ok(())
}

/// Returns the requests that list VMs, except those that ask only for the version.
fn lists(proxy: &Proxy) -> usize {
    let lists = |request: &Request| request.is_list(PLURAL) && request.param("limit") != Some("1");
    proxy.requests_where(lists).len()
}

both_servers!(a_watch_that_dies_without_a_word_is_taken_up_where_it_was);
async fn a_watch_that_dies_without_a_word_is_taken_up_where_it_was(
    server: &TestServer,
) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = policy()?;
    let proxy = server.proxy().await?;
    let host = vms
        .host(proxy.kubeconfig(), &policy)?
        .args(["--watch-silence", "2s"])
        .ready()
        .await?;
    vms.create(0..1, 0).await?;
    vms.until_complete(1).await?;
    proxy.swallow_watches();
    vms.create(1..2, 0).await?;
    vms.until_complete(2).await?;
    let relists = host.metrics().await?;
    ensure!(relists.sum("vmhost_informer_relists_total", &[]) == 0.0);
    let lists = lists(&proxy);
    ensure!(lists == 1, "{lists} lists");
    Ok(())
}

/// A server that sends no bookmarks: the watch of a kind that does not change delivers nothing.
mod a_quiet_watch_costs_no_list {
    use super::*;

    #[test]
    fn embedded() {
        let name = concat!(module_path!(), "::embedded");
        run::test(name, Target::Embedded, Sharing::Own, body);
    }

    #[test]
    fn real() {
        let options = real::Options {
            flags: vec!["--watch-cache=false".into()],
            ..real::Options::default()
        };
        run::real_only(concat!(module_path!(), "::real"), options, body);
    }

    async fn body(server: &TestServer) -> Result<()> {
        let vms = Vms::install(server).await?;
        let policy = policy()?;
        let proxy = server.proxy().await?;
        let host = vms
            .host(proxy.kubeconfig(), &policy)?
            .args(["--watch-silence", "1s"])
            .ready()
            .await?;
        let watches = |request: &Request| request.is_watch() && request.concerns(PLURAL);
        proxy.wait_for(4, watches).await?;
        let relists = host.metrics().await?;
        ensure!(relists.sum("vmhost_informer_relists_total", &[]) == 0.0);
        let lists = lists(&proxy);
        ensure!(lists == 1, "{lists} lists");
        vms.create(0..1, 0).await?;
        vms.until_complete(1).await?;
        Ok(())
    }
}

both_servers!(etcd_is_restored_from_a_backup, own);
async fn etcd_is_restored_from_a_backup(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = policy()?;
    vms.create(0..2, 0).await?;
    server.back_up().await?;
    let host = vms.host(&server.kubeconfig(), &policy)?.ready().await?;
    // All of this will be lost; it moves the version as far past the backup as the host's position.
    vms.create(2..LOST, 0).await?;
    vms.until_complete(LOST).await?;
    server.restore().await?;
    // The host's finished VMs are no longer finished, VMs that it knows no longer exist, and later
    // ones are new.
    vms.until_complete(2).await?;
    vms.create(LOST..LOST + 1, 0).await?;
    vms.until_complete(3).await?;
    let metrics = host.metrics().await?;
    let objects = metrics.sum("vmhost_store_objects", &[]);
    ensure!(objects == 3.0, "{objects} objects in the store");
    let told = |line: &&String| line.contains("went back from");
    let times = host.output().iter().filter(told).count();
    ensure!(times == 1, "told {times} times");
    Ok(())
}

both_servers!(changes_and_deletions_while_the_watch_is_down_are_found);
async fn changes_and_deletions_while_the_watch_is_down_are_found(
    server: &TestServer,
) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = policy()?;
    let proxy = server.proxy().await?;
    let host = vms.host(proxy.kubeconfig(), &policy)?.ready().await?;
    vms.create(0..10, 0).await?;
    vms.until_complete(10).await?;
    proxy.refuse_connections(true);
    vms.delete(&Vms::name(0)).await?;
    vms.delete(&Vms::name(1)).await?;
    vms.create_one(&Vms::name(1), 0).await?;
    vms.reopen(&Vms::name(2)).await?;
    proxy.refuse_connections(false);
    vms.until_complete(9).await?;
    ensure!(
        vms.get(&Vms::name(0)).await?.is_none(),
        "a deleted VM came back"
    );
    ensure!(host.probe("/healthz").await?.0 == 200);
    Ok(())
}

both_servers!(lists_are_streamed_where_that_is_wanted_and_the_server_can);
async fn lists_are_streamed_where_that_is_wanted_and_the_server_can(
    server: &TestServer,
) -> Result<()> {
    for denied in [None, Some(400), Some(422)] {
        let vms = Vms::install(server).await?;
        let policy = policy()?;
        let proxy = server.proxy().await?;
        if let Some(code) = denied {
            proxy.deny_streaming_lists(code);
        }
        vms.create(0..20, 0).await?;
        let _host = host::on(proxy.kubeconfig())?
            .arg("--streaming-lists")
            .namespace(vms.namespace())
            .plugin(policy.path())
            .ready()
            .await?;
        vms.until_complete(20)
            .await
            .with_context(|| format!("denied by {denied:?}"))?;
        let lists = proxy.requests_where(|request| request.is_list(PLURAL));
        ensure!(
            lists.is_empty() == denied.is_none(),
            "{denied:?}: {lists:?}"
        );
    }
    Ok(())
}

both_servers!(a_lost_answer_is_settled);
async fn a_lost_answer_is_settled(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = policy()?;
    let proxy = server.proxy().await?;
    proxy.lose_answers(5, |request| {
        request.method == "PATCH" && request.concerns(PLURAL)
    });
    let _host = vms.host(proxy.kubeconfig(), &policy)?.ready().await?;
    vms.create(0..20, 0).await?;
    vms.until_complete(20).await?;
    Ok(())
}

both_servers!(policies_are_swapped_while_vms_are_created);
async fn policies_are_swapped_while_vms_are_created(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = policy()?;
    let host = vms.host(&server.kubeconfig(), &policy)?.ready().await?;
    let plugin = [("plugin", "vm-stamp")];
    let first = host.generation("vm-stamp").await?;
    let mut created = 0;
    for number in 2..2 + SWAPS {
        let way = if number % 2 == 0 {
            Way::Rename
        } else {
            Way::InPlace
        };
        policy.swap(&guests::vm_stamp(number, Mode::Keep)?, way)?;
        let announced = host.until_metric(GENERATION, &plugin, first + f64::from(number - 1));
        // Continuously, also during the swap; some of these get the old number, some the new one.
        let (announced, ()) = tokio::try_join!(announced, vms.create(created..created + 40, 0))?;
        ensure!(announced.sum(GENERATION, &plugin) == first + f64::from(number - 1));
        // These come after the announcement: no call starts on an older generation any more.
        let after = created + 40..created + 45;
        created = after.end;
        vms.create(after.clone(), 0).await?;
        let all = vms.until_complete(created).await?;
        for name in after.map(Vms::name) {
            let stamp = all.get(&name).and_then(|vm| vm.stamp);
            ensure!(
                stamp == Some(number),
                "{name} was created after {number} was announced and carries {stamp:?}"
            );
        }
    }
    let seen: BTreeSet<u32> = vms.list().await?.iter().filter_map(|vm| vm.stamp).collect();
    ensure!(
        seen.len() >= SEEN,
        "only these numbers are on VMs: {seen:?}"
    );
    Ok(())
}

both_servers!(in_the_end_all_carry_the_newest_number);
async fn in_the_end_all_carry_the_newest_number(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Restamp)?)?;
    let _host = vms.host(&server.kubeconfig(), &policy)?.ready().await?;
    vms.create(0..50, 0).await?;
    vms.until_complete(50).await?;
    let newest = 9;
    // Without waiting in between: a swap may overtake another, and the last one counts.
    for number in 2..=newest {
        policy.swap(&guests::vm_stamp(number, Mode::Restamp)?, Way::Rename)?;
    }
    vms.until("all carry the newest number", |vms| {
        vms.values()
            .all(|vm| vm.complete() && vm.stamp == Some(newest))
    })
    .await?;
    Ok(())
}

both_servers!(a_user_who_stops_a_vm_is_not_overwritten);
async fn a_user_who_stops_a_vm_is_not_overwritten(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = policy()?;
    let proxy = server.proxy().await?;
    let hold = proxy.hold(|request| request.method == "PATCH" && request.concerns(PLURAL));
    let _host = vms.host(proxy.kubeconfig(), &policy)?.ready().await?;
    let name = Vms::name(0);
    vms.create(0..1, 0).await?;
    hold.reached(1).await?;
    vms.merge(&name, json!({ "spec": { "status": "stopped" } }))
        .await?;
    hold.release();
    // Settled: the refused patch was answered, and a later VM is complete.
    proxy
        .wait_for(1, |request| {
            request.writes(PLURAL) && request.answered == Some(422)
        })
        .await?;
    vms.create(1..2, 0).await?;
    vms.until_one(&Vms::name(1), "the later VM is complete", |vm| {
        vm.complete()
    })
    .await?;
    let vm = vms.get(&name).await?.context("it is there")?;
    ensure!(
        vm.status == "stopped",
        "the user's change was overwritten: {vm:?}"
    );
    Ok(())
}
