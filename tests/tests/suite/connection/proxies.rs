//! Proxies, as for kubectl: the environment's, a kubeconfig's, and none for loopback.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use vmhost_tests::authority::Authority;
use vmhost_tests::forward_proxy::{ForwardProxy, Kind};
use vmhost_tests::guests::{self, Mode, PolicyFile};
use vmhost_tests::host::{self, Host, HostCommand};
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::{self, Vms};
use vmhost_tests::wait::eventually_within;
use vmhost_tests::{both_servers, kubeconfig, net, run};

/// A name that only the proxy can resolve. Variables do not apply to loopback addresses.
const NAME: &str = "api.cluster.test";

/// Returns a kubeconfig in which the server has that name, and the address that the proxy will be
/// asked for.
fn named(
    server: &TestServer,
    dir: &Path,
    authority: &Authority,
    proxy_url: Option<&str>,
) -> Result<(PathBuf, String)> {
    let file = dir.join("named.kubeconfig");
    let mut asked = String::new();
    kubeconfig::changed(&server.kubeconfig(), &file, |cluster, _| {
        let url = cluster["server"].as_str().unwrap_or_default().to_owned();
        asked = url.replace("https://127.0.0.1", NAME);
        cluster["server"] = format!("https://{asked}").into();
        cluster["tls-server-name"] = "127.0.0.1".into();
        // As for kubectl, the cluster's bundle must trust a proxy with TLS.
        let bundle = cluster["certificate-authority-data"].as_str();
        let mut bundle = BASE64_STANDARD
            .decode(bundle.unwrap_or_default())
            .unwrap_or_default();
        bundle.extend_from_slice(b"\n");
        bundle.extend_from_slice(authority.pem().as_bytes());
        cluster["certificate-authority-data"] = BASE64_STANDARD.encode(bundle).into();
        if let Some(url) = proxy_url {
            cluster["proxy-url"] = url.into();
        }
    })?;
    Ok((file, asked))
}

/// Returns a closed port, as the URL of a proxy.
fn nowhere() -> Result<String> {
    let [port] = net::free_ports()?;
    Ok(format!("http://somebody:secret@127.0.0.1:{port}"))
}

/// Sets the variables and clears the machine's, in both spellings.
fn with_environment(command: HostCommand, https: &str, none: &str) -> HostCommand {
    let lower = ["https_proxy", "http_proxy", "HTTP_PROXY", "no_proxy"];
    let command = lower
        .into_iter()
        .fold(command, |command, name| command.env(name, ""));
    command.env("HTTPS_PROXY", https).env("NO_PROXY", none)
}

/// Starts a host that completes a VM of this name.
async fn completes(command: HostCommand, vms: &Vms, vm: &str) -> Result<Host> {
    let policy = PolicyFile::new("vm", &guests::vm_stamp(1, Mode::Keep)?)?;
    let command = command.namespace(vms.namespace()).plugin(policy.path());
    let host = command.ready().await?;
    vms.create_one(vm, 64).await?;
    vms.until_one(vm, "it is complete", vm::Vm::complete)
        .await?;
    Ok(host)
}

both_servers!(proxies_of_every_kind_reach_the_cluster);
async fn proxies_of_every_kind_reach_the_cluster(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let authority = Authority::new("proxies")?;
    let dir = tempfile::tempdir()?;
    for kind in [
        Kind::Http,
        Kind::Https(authority.server(None)?),
        Kind::Socks5,
    ] {
        // The kubeconfig's proxy takes precedence over the environment's.
        let of_kubeconfig = matches!(kind, Kind::Socks5);
        let proxy = ForwardProxy::start(kind).await?;
        let url = proxy.url();
        let (file, asked) = named(
            server,
            dir.path(),
            &authority,
            of_kubeconfig.then_some(&url),
        )?;
        let https = if of_kubeconfig { nowhere()? } else { url };
        let scheme = proxy.name();
        let (scheme, _) = scheme.split_once("://").context("a URL")?;
        let command = with_environment(host::on(&file)?, &https, "10.0.0.0/8,.other.test");
        let host = completes(command, &vms, &format!("through-{scheme}")).await?;
        let through = proxy.asked();
        ensure!(
            !through.is_empty() && through.iter().all(|target| *target == asked),
            "{through:?}"
        );
        host.wait_for_line(&format!("connecting through proxy {}", proxy.name()))
            .await?;
        ensure!(
            !host.output().join("\n").contains("pass@word"),
            "{:?}",
            host.output()
        );
    }
    Ok(())
}

both_servers!(loopback_goes_past_the_proxy_of_the_environment);
async fn loopback_goes_past_the_proxy_of_the_environment(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let command = with_environment(host::on(&server.kubeconfig())?, &nowhere()?, "");
    completes(command, &vms, "past").await?;
    Ok(())
}

both_servers!(a_proxy_that_fails_is_named_without_its_password);
async fn a_proxy_that_fails_is_named_without_its_password(server: &TestServer) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let policy = PolicyFile::new("vm", &guests::vm_stamp(1, Mode::Keep)?)?;
    let authority = Authority::new("proxies")?;
    let refuses = ForwardProxy::start(Kind::Http).await?;
    let wrong = refuses.url().replace("pass", "secret");
    let nowhere = nowhere()?;
    let name = nowhere.replace("somebody:secret@", "");
    for (url, words) in [
        (
            nowhere.as_str(),
            [name.as_str(), "from HTTPS_PROXY", "refused"],
        ),
        (&wrong, [&refuses.name(), NAME, "407"]),
        (
            "ftp://somebody:secret@proxy",
            ["HTTPS_PROXY", "is not the URL of a proxy", "socks5"],
        ),
    ] {
        let (file, _) = named(server, dir.path(), &authority, None)?;
        let command = with_environment(host::on(&file)?, url, "").plugin(policy.path());
        let exit = command.run().await?;
        exit.expect_error(&words)?;
        ensure!(
            !exit.output.join("\n").contains("secret"),
            "{:?}",
            exit.output
        );
    }
    Ok(())
}

#[test]
fn dev_runs_behind_a_proxy() {
    run::alone("dev_runs_behind_a_proxy", async || {
        let dir = tempfile::tempdir()?;
        let policy = PolicyFile::new("vm", &guests::vm_stamp(1, Mode::Keep)?)?;
        let manifests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins/vm/manifests");
        let command = host::bare()?
            .arg("dev")
            .arg(policy.path())
            .arg("--manifests")
            .arg(manifests);
        let host = with_environment(command, &nowhere()?, "")
            .current_dir(dir.path())
            .spawn()?;
        eventually_within(Duration::from_secs(60), "the VM is complete", async || {
            ensure!(
                host.exited()?.is_none(),
                "dev has ended: {:?}",
                host.output()
            );
            let output = host.output();
            Ok(output
                .iter()
                .any(|line| line.contains("creating -> complete"))
                .then_some(()))
        })
        .await
    });
}
