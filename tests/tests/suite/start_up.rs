//! A start is all or nothing: no worker runs before every plugin was checked and has its stores,
//! and an interrupted start leaves nothing behind.

use anyhow::{Context, Result, ensure};
use futures_util::future::try_join_all;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use serde_json::json;
use tokio::net::TcpSocket;
use vmhost_tests::both_servers;
use vmhost_tests::guests::{self, Mode, PolicyFile};
use vmhost_tests::host::{self, HostCommand};
use vmhost_tests::net;
use vmhost_tests::proxy::{Proxy, Refusal, Request};
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::{PLURAL, Vms};
use vmhost_tests::wait::eventually;

const ID: &str = "starting";

/// VMs, the policy that finishes them, and a policy that brings a definition.
struct Two {
    vms: Vms,
    proxy: Proxy,
    first: PolicyFile,
    second: PolicyFile,
    leases: Api<Lease>,
}

fn of_definitions(request: &Request) -> bool {
    request.concerns("customresourcedefinitions")
}

impl Two {
    async fn new(server: &TestServer) -> Result<Two> {
        let vms = Vms::install(server).await?;
        vms.create(0..3, 0).await?;
        let group = format!("g{:08x}.example.com", fastrand::u32(..));
        let schema = json!({ "openAPIV3Schema": { "type": "object" } });
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("widgets.{group}") },
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": { "plural": "widgets", "kind": "Widget" },
                "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }],
            },
        });
        let carrying = json!({
            "apiVersion": "vmhost/v1",
            "name": "widgets",
            "version": "1.0.0",
            "controllers": [{ "name": "widgets", "primary": { "group": group, "version": "v1", "kind": "Widget" } }],
            "setup": { "customResourceDefinitions": [definition] },
        });
        Ok(Two {
            first: PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Keep)?)?,
            second: PolicyFile::new("widgets", &guests::describing(&carrying.to_string())?)?,
            leases: Api::namespaced(server.client().await?, vms.namespace()),
            proxy: server.proxy().await?,
            vms,
        })
    }

    /// Returns a host that starts both, with leader election.
    fn host(&self) -> Result<HostCommand> {
        Ok(host::on(self.proxy.kubeconfig())?
            .namespace(self.vms.namespace())
            .plugin(self.first.path())
            .plugin(self.second.path())
            .arg("--install-crds")
            .args(["--leader-elect", "--leader-election-id", ID])
            .args(["--leader-election-namespace", self.vms.namespace()]))
    }

    async fn holder(&self) -> Result<Option<String>> {
        let lease = self.leases.get_opt(ID).await?;
        let holder = lease.and_then(|lease| lease.spec?.holder_identity);
        Ok(holder.filter(|holder| !holder.is_empty()))
    }

    async fn until_led(&self) -> Result<()> {
        eventually("the host leads", async || {
            Ok(self.holder().await?.map(drop))
        })
        .await
    }
}

both_servers!(a_host_that_starts_answers);
async fn a_host_that_starts_answers(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Keep)?)?;
    let proxy = server.proxy().await?;
    let hold = proxy.hold(|request| request.path == "/version");
    let [port] = net::free_ports()?;
    let webhooks = net::loopback(port);
    let host = host::on(proxy.kubeconfig())?
        .namespace(vms.namespace())
        .plugin(policy.path())
        .args(["--webhook-bind-address", &webhooks.to_string()])
        .spawn()?;
    hold.reached(1).await?;
    let (code, text) = host.probe("/healthz").await?;
    ensure!(code == 200, "{code}: {text}");
    let (code, text) = host.probe("/readyz").await?;
    ensure!(
        code == 500 && text.contains("[-]plugins failed: the host is starting"),
        "{code}: {text}"
    );
    let asked = net::connect(webhooks).await;
    ensure!(asked.is_err(), "an API server would wait for an answer");
    let second = TcpSocket::new_v4()?.bind(webhooks);
    ensure!(second.is_err(), "another program may take the port");
    let asked = [host.metrics_addr(), host.admin_addr()].map(|address| net::get(address, "/"));
    for (code, text) in try_join_all(asked).await? {
        ensure!(
            code == 503 && text.contains("is starting"),
            "{code}: {text}"
        );
    }
    hold.release();
    host.until_ready().await?;
    host.state().await?;
    net::connect(webhooks).await.map(drop)
}

both_servers!(flags_that_name_nothing_are_told);
async fn flags_that_name_nothing_are_told(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Keep)?)?;
    let host = vms.host(&server.kubeconfig(), &policy)?;
    let flags = [
        "--setting",
        "vn-stamp.a=b",
        "--sensitive",
        "virtualmachines",
    ];
    let right = ["--sensitive", "VirtualMachine=spec.password"];
    let host = host.args(flags).args(right).ready().await?;
    host.wait_for_line("--setting vn-stamp.…: no plugin named vn-stamp")
        .await?;
    host.wait_for_line("--sensitive virtualmachines: no plugin")
        .await?;
    let output = host.output().join("\n");
    ensure!(!output.contains("--sensitive VirtualMachine"), "{output}");
    Ok(())
}

both_servers!(no_worker_starts_before_all_plugins_are_set_up);
async fn no_worker_starts_before_all_plugins_are_set_up(server: &TestServer) -> Result<()> {
    let two = Two::new(server).await?;
    let hold = two.proxy.hold(of_definitions);
    let host = two.host()?.spawn()?;
    hold.reached(1).await?;
    two.until_led().await?;
    eventually("the first plugin waits on full stores", async || {
        let (_, text) = host.probe("/readyz").await?;
        let waits = "[-]vm-stamp/vms failed: stores are synced, workers are about to start";
        ensure!(text.contains(waits), "{text}");
        Ok(Some(()))
    })
    .await?;
    let writes = two.proxy.requests_where(|request| request.writes(PLURAL));
    ensure!(writes.is_empty(), "{writes:?}");
    hold.release();
    host.until_ready().await?;
    two.vms.until_complete(3).await?;
    Ok(())
}

both_servers!(a_plugin_that_cannot_be_set_up_starts_no_other_and_the_lease_is_given_back);
async fn a_plugin_that_cannot_be_set_up_starts_no_other_and_the_lease_is_given_back(
    server: &TestServer,
) -> Result<()> {
    let two = Two::new(server).await?;
    // The host looks for the definition, but may then not create it.
    let hold = two
        .proxy
        .hold(|request| of_definitions(request) && !request.is_write());
    two.proxy
        .refuse(usize::MAX, Refusal::forbidden(), of_definitions);
    let host = two.host()?.spawn()?;
    hold.reached(1).await?;
    two.until_led().await?;
    hold.release();
    let exit = host.wait_exit().await?;
    exit.expect_error(&["plugin widgets", "CustomResourceDefinition widgets."])?;
    let writes = two.proxy.requests_where(|request| request.writes(PLURAL));
    ensure!(writes.is_empty(), "{writes:?}");
    ensure!(two.holder().await?.is_none(), "the lease is still held");
    Ok(())
}

both_servers!(a_signal_during_the_start_gives_the_lease_back);
async fn a_signal_during_the_start_gives_the_lease_back(server: &TestServer) -> Result<()> {
    let two = Two::new(server).await?;
    let _hold = two.proxy.hold(of_definitions);
    let host = two.host()?.spawn()?;
    two.until_led().await?;
    host.sigterm()?;
    let exit = host.wait_exit().await?;
    ensure!(exit.status.success(), "{:?}", exit.output);
    let lease = two.leases.get(ID).await.context("reading the Lease")?;
    ensure!(two.holder().await?.is_none(), "{lease:?}");
    Ok(())
}
