//! Bad input at start-up: one clear line that names the cause, and a non-zero exit code.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use vmhost_tests::bad::{self, Bad};
use vmhost_tests::guests::{self, Mode, PolicyFile, SECOND};
use vmhost_tests::host::Host;
use vmhost_tests::proxy::{Hold, Proxy};
use vmhost_tests::real::PLAIN_USER;
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::{self, Vms};
use vmhost_tests::wait::eventually;
use vmhost_tests::{both_servers, host, kubeconfig, net, run};

fn good() -> Result<PolicyFile> {
    PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Keep)?)
}

both_servers!(plugins_that_cannot_be_loaded);
async fn plugins_that_cannot_be_loaded(server: &TestServer) -> Result<()> {
    vm::install(&server.client().await?).await?;
    for Bad { what, bytes, says } in bad::plugins()? {
        let policy = PolicyFile::new("broken", &bytes)?;
        // Only one of them ends by its deadline, and none of the others may on a busy machine.
        let deadline = if what == bad::SPINS { "1s" } else { "60s" };
        let exit = host::on(&server.kubeconfig())?
            .plugin(policy.path())
            .args(["--call-timeout", deadline])
            .run()
            .await
            .context(what)?;
        let words: Vec<&str> = ["broken.wasm"].into_iter().chain(says).collect();
        exit.expect_error(&words).context(what)?;
    }
    let exit = host::on(&server.kubeconfig())?
        .plugin("no/such/plugin.wasm")
        .run()
        .await?;
    exit.expect_error(&["no/such/plugin.wasm"])
}

/// Starts a good plugin on this kubeconfig and expects one line with these words.
async fn refused(file: &Path, more: &[&str], words: &[&str]) -> Result<()> {
    let policy = good()?;
    let exit = host::on(file)?
        .plugin(policy.path())
        .args(more)
        .run()
        .await?;
    exit.expect_error(words)
}

#[test]
fn kubeconfigs_that_lead_nowhere() {
    run::alone("kubeconfigs_that_lead_nowhere", async || {
        let dir = tempfile::tempdir()?;
        let write = |name: &str, text: &str| -> Result<std::path::PathBuf> {
            let path = dir.path().join(name);
            std::fs::write(&path, text)?;
            Ok(path)
        };
        refused(&dir.path().join("missing"), &[], &["missing"]).await?;
        refused(&write("malformed", "{ clusters: [")?, &[], &["malformed"]).await?;
        let [port] = net::free_ports()?;
        let server = format!("http://127.0.0.1:{port}");
        let nobody = write("nobody", &kubeconfig::text(&server, None, "x", None))?;
        refused(&nobody, &[], &[&format!("127.0.0.1:{port}")]).await?;
        refused(&nobody, &["--context", "elsewhere"], &["elsewhere"]).await
    });
}

both_servers!(a_server_that_does_not_know_the_user);
async fn a_server_that_does_not_know_the_user(server: &TestServer) -> Result<()> {
    let stranger = server
        .dir()
        .join(format!("stranger-{:08x}.kubeconfig", fastrand::u32(..)));
    kubeconfig::with_token(&server.kubeconfig(), &stranger, "a-token-that-nobody-has")?;
    refused(&stranger, &[], &["401"]).await
}

#[test]
fn a_user_without_rights_waits_for_them() {
    run::real_shared("a_user_without_rights_waits_for_them", async |server| {
        let vms = Vms::install(server).await?;
        let plain = server
            .kubeconfig_of(PLAIN_USER)
            .context("a real server has users")?;
        let policy = good()?;
        let host = vms.host(&plain, &policy)?.spawn()?;
        let named = |line: &str| line.contains("403") && line.contains("virtualmachines");
        host.wait_for_lines(1, named).await?;
        let (code, _) = eventually("the probe answers", async || {
            Ok(Some(host.probe("/readyz").await?))
        })
        .await?;
        ensure!(code != 200, "ready without rights");
        let binding = serde_json::from_value(json!({
            "metadata": { "name": "vmhost-may" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": PLAIN_USER }],
        }))?;
        Api::<RoleBinding>::namespaced(server.client().await?, vms.namespace())
            .create(&PostParams::default(), &binding)
            .await?;
        host.until_ready().await
    });
}

both_servers!(two_hosts_on_one_port);
async fn two_hosts_on_one_port(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = good()?;
    let first = vms.host(&server.kubeconfig(), &policy)?.ready().await?;
    let addresses = [
        ("--metrics-bind-address", first.metrics_addr()),
        ("--health-probe-bind-address", first.probes_addr()),
        ("--admin-bind-address", first.admin_addr()),
    ];
    for (flag, taken) in addresses {
        let mut second = host::bare()?
            .arg("--kubeconfig")
            .arg(server.kubeconfig())
            .namespace(vms.namespace())
            .plugin(policy.path());
        for (other, _) in addresses {
            let address = match other == flag {
                true => taken.to_string(),
                false => "0".to_owned(),
            };
            second = second.args([other, &address]);
        }
        let exit = second.run().await?;
        exit.expect_error(&[&taken.to_string(), flag])?;
    }
    Ok(())
}

both_servers!(a_crd_that_comes_later, own);
async fn a_crd_that_comes_later(server: &TestServer) -> Result<()> {
    let policy = good()?;
    let host = host::on(&server.kubeconfig())?
        .plugin(policy.path())
        .spawn()?;
    host.wait_for_lines(1, |line| line.contains("VirtualMachine"))
        .await?;
    let (code, _) = eventually("the probe answers", async || {
        Ok(Some(host.probe("/readyz").await?))
    })
    .await?;
    ensure!(code != 200, "ready without its kind");
    let vms = Vms::install(server).await?;
    vms.create(0..3, 0).await?;
    vms.until_complete(3).await?;
    host.until_ready().await
}

/// Returns a policy whose turns have two effects.
fn twice() -> Result<PolicyFile> {
    PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Twice)?)
}

/// Returns a host whose turn on the first VM is held at its first write.
async fn in_a_turn(proxy: &Proxy, vms: &Vms, policy: &PolicyFile) -> Result<(Host, Hold)> {
    let hold = proxy.hold(|request| request.writes(vm::PLURAL));
    let host = vms.host(proxy.kubeconfig(), policy)?.ready().await?;
    vms.create(0..1, 0).await?;
    hold.reached(1).await?;
    Ok((host, hold))
}

both_servers!(a_host_drains_on_sigterm);
async fn a_host_drains_on_sigterm(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let proxy = server.proxy().await?;
    let policy = twice()?;
    let (host, hold) = in_a_turn(&proxy, &vms, &policy).await?;
    host.sigterm()?;
    host.wait_for_line("shutting down").await?;
    // The host accepts no new keys, though its watch still shows them and workers are idle.
    vms.create(1..2, 0).await?;
    host.until_metric("vmhost_store_objects", &[], 2.0).await?;
    hold.release();
    let exit = host.wait_exit().await?;
    ensure!(exit.status.success(), "{exit:?}");
    // The second effect was sent by a process that had been told to end.
    let vm = vms.get(&Vms::name(0)).await?.context("it is there")?;
    ensure!(
        vm.complete() && vm.annotation(SECOND).is_some(),
        "the turn in flight did not end: {vm:?}"
    );
    let late = vms.get(&Vms::name(1)).await?.context("it is there")?;
    ensure!(!late.complete(), "a turn began after the signal: {late:?}");
    Ok(())
}

both_servers!(a_second_signal_stops_at_once);
async fn a_second_signal_stops_at_once(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let proxy = server.proxy().await?;
    let policy = twice()?;
    let (host, hold) = in_a_turn(&proxy, &vms, &policy).await?;
    host.sigterm()?;
    host.wait_for_line("shutting down").await?;
    ensure!(host.exited()?.is_none(), "it does not drain");
    host.sigterm()?;
    // The write is still held, but the host does not wait for the turn.
    let exit = host.wait_exit().await?;
    exit.expect_error(&["error: stopped by a second signal"])?;
    ensure!(exit.status.code() == Some(1), "{exit:?}");
    hold.release();
    Ok(())
}
