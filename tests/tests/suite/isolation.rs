//! Promise 8: a broken plugin slows only itself.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::{Value, json};
use vmhost_runtime::observe::admin::state::BreakerState;
use vmhost_tests::expect::{KILLED_CALLS, RECONCILE_ERRORS};
use vmhost_tests::guests::{self, Mode, PolicyFile, Way};
use vmhost_tests::host::Host;
use vmhost_tests::obey::Obey;
use vmhost_tests::proxy::Refusal;
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::Vms;
use vmhost_tests::wait::eventually;
use vmhost_tests::{both_servers, host};

const MANY: usize = 100;

/// How long a call lasts during which a swap takes place, on a busy machine too. Shorter than the
/// 4 s that a read past the cache may take.
const DURING_A_SWAP: &str = "3s";

/// Checks that the good policy finishes all VMs beside these, the probes answer, and the watch
/// continues.
async fn beside(server: &TestServer, hostile: &[(&str, Vec<u8>)]) -> Result<()> {
    let vms = Vms::install(server).await?;
    let good = PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Keep)?)?;
    let mut files = Vec::new();
    let mut command = host::on(&server.kubeconfig())?
        .namespace(vms.namespace())
        .plugin(good.path())
        // A call of the good policy may have to wait for all that spin, on a busy machine.
        .args(["--call-timeout", "3s", "--memory-limit", "64Mi"]);
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
    // Two, for both cores of the smallest machine.
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

/// Returns how many changes the guest was asked to map with this result.
async fn mapped(host: &Host, result: &str) -> Result<f64> {
    let metrics = host.metrics().await?;
    Ok(metrics.sum("vmhost_map_calls_total", &[("result", result)]))
}

async fn breaker(host: &Host) -> Result<BreakerState> {
    Ok(host.state().await?.plugins[0].breaker)
}

/// Creates a ConfigMap that the guest `watcher` maps to a VM.
async fn map(server: &TestServer, vms: &Vms, name: &str, data: Value) -> Result<()> {
    let api: Api<ConfigMap> = Api::namespaced(server.client().await?, vms.namespace());
    let object = json!({
        "metadata": { "name": name, "labels": { "vmhost.test/guest": "yes" } },
        "data": data,
    });
    api.create(&PostParams::default(), &serde_json::from_value(object)?)
        .await?;
    Ok(())
}

both_servers!(mapping_waits_while_all_calls_of_the_policy_fail_and_says_nothing_about_them);
async fn mapping_waits_while_all_calls_of_the_policy_fail_and_says_nothing_about_them(
    server: &TestServer,
) -> Result<()> {
    let vms = Vms::install(server).await?;
    // Without timers, whose turns succeed.
    let policy = PolicyFile::new("calm", &guests::named(guests::WATCHER, "calm")?)?;
    let host = vms.host(&server.kubeconfig(), &policy)?.ready().await?;
    let obey = Obey { vms, host, policy };
    for number in 0..25 {
        obey.case("owner", &format!("bad-{number}"), json!({ "trap": true }))
            .await?;
    }
    // Opened for the third time: 4 s.
    let opened = eventually("the breaker is open for long", async || {
        let breaker = breaker(&obey.host).await?;
        Ok((breaker.open && breaker.pause_ms > 2_500).then_some(breaker))
    })
    .await?;
    map(server, &obey.vms, "fine", json!({ "vm": "nobody" })).await?;
    let mut early = false;
    eventually("the policy is tried again", async || {
        let before = breaker(&obey.host).await?;
        let mapped = mapped(&obey.host, "success").await?;
        let after = breaker(&obey.host).await?;
        // Both readings fell into one pause, and not at its beginning, when a call may be trying.
        let paused = before.failures == after.failures
            && before.pause_ms < 3_500
            && (500..before.pause_ms).contains(&after.pause_ms);
        early |= paused && mapped > 0.0;
        Ok((after.failures > opened.failures).then_some(()))
    })
    .await?;
    ensure!(!early, "mapped while the breaker was open");
    // Without the failing objects, the first permitted call succeeds.
    for number in 0..25 {
        obey.vms.delete(&format!("bad-{number}")).await?;
    }
    eventually("the change is mapped", async || {
        Ok((mapped(&obey.host, "success").await? > 0.0).then_some(()))
    })
    .await
}

both_servers!(a_map_call_that_fails_on_old_code_does_not_count_against_the_new);
async fn a_map_call_that_fails_on_old_code_does_not_count_against_the_new(
    server: &TestServer,
) -> Result<()> {
    let vms = Vms::install(server).await?;
    let proxy = server.proxy().await?;
    let policy = PolicyFile::new("watcher", &guests::read(guests::WATCHER)?)?;
    let host = vms
        .host(proxy.kubeconfig(), &policy)?
        .args(["--call-timeout", DURING_A_SWAP])
        .ready()
        .await?;
    // The call waits for a read past the cache, until its deadline.
    let hold = proxy.hold(|request| request.path.ends_with("/configmaps/slow"));
    map(
        server,
        &vms,
        "mapped",
        json!({ "vm": "nobody", "live": "slow" }),
    )
    .await?;
    hold.reached(1).await?;
    let swapped = guests::with_comment(&guests::read(guests::WATCHER)?, "again");
    policy.swap(&swapped, Way::Rename)?;
    host.wait_for_line("swapped watcher: generation 2").await?;
    host.wait_for_line("cannot map the changes").await?;
    // The new code maps the object after the old code has failed.
    hold.reached(2).await?;
    ensure!(mapped(&host, "error").await? == 1.0);
    let breaker = breaker(&host).await?;
    ensure!(breaker.failures == 0, "{breaker:?}");
    hold.release();
    eventually("it is mapped", async || {
        Ok((mapped(&host, "success").await? >= 1.0).then_some(()))
    })
    .await
}

both_servers!(a_namespace_that_takes_no_events_holds_up_no_other);
async fn a_namespace_that_takes_no_events_holds_up_no_other(server: &TestServer) -> Result<()> {
    let (bad, good) = (Vms::install(server).await?, Vms::install(server).await?);
    let proxy = server.proxy().await?;
    let watcher = PolicyFile::new("watcher", &guests::read(guests::WATCHER)?)?;
    let vm = PolicyFile::new("vm", &guests::read(guests::EXAMPLE_VM)?)?;
    let refused = format!("/namespaces/{}/events", bad.namespace());
    proxy.refuse(usize::MAX, Refusal::internal(), {
        let refused = refused.clone();
        move |request| request.path.ends_with(&refused)
    });
    let host = host::on(proxy.kubeconfig())?
        .namespace(bad.namespace())
        .namespace(good.namespace())
        .plugin(watcher.path())
        .plugin(vm.path())
        .ready()
        .await?;
    let obey = Obey {
        vms: bad,
        host,
        policy: watcher,
    };
    for number in 0..5 {
        let reason = format!("Reason{number}");
        let event = json!({ "event": { "reason": reason, "note": "nobody hears it" } });
        obey.case(
            "owner",
            &reason.to_lowercase(),
            json!({ "effects": [event] }),
        )
        .await?;
    }
    proxy
        .wait_for(1, |request| request.path.ends_with(&refused))
        .await?;
    good.create(0..1, 0).await?;
    let events: Api<Event> = Api::namespaced(server.client().await?, good.namespace());
    eventually("the other plugin's Event is written", async || {
        let list = events.list(&ListParams::default()).await?;
        let found = |event: &Event| event.reason.as_deref() == Some("Completed");
        Ok(list.items.iter().any(found).then_some(()))
    })
    .await
}
