//! Credentials that are replaced while the host runs: files, and the output of an exec plugin.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vmhost_tests::authority::{Authority, Pair};
use vmhost_tests::front::Front;
use vmhost_tests::guests::{self, Mode, PolicyFile};
use vmhost_tests::host::{self, Host};
use vmhost_tests::proxy::{Proxy, Refusal};
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::{self, PLURAL, Vms};
use vmhost_tests::wait::eventually;
use vmhost_tests::{both_servers, kubeconfig, real, run};

/// Longer than any test.
const LONG: Duration = Duration::from_secs(3600);
/// Longer than a host's start and a turn, during which an expiring certificate must still be valid.
const SHORT: Duration = Duration::from_secs(25);

/// A folder whose files a kubeconfig names.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Result<Files> {
        Ok(Files(tempfile::tempdir()?))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Replaces a file in one step, as the kubelet does.
    fn write(&self, name: &str, text: &str) -> Result<()> {
        let unfinished = self.path(".unfinished");
        fs::write(&unfinished, text)?;
        fs::rename(unfinished, self.path(name)).context("putting a file in place")
    }

    fn write_identity(&self, pair: &Pair) -> Result<()> {
        self.write("client.crt", &pair.certificate)?;
        self.write("client.key", &pair.key)
    }

    /// Returns the user's part of a kubeconfig with certificate files.
    fn user(&self) -> Value {
        json!({ "client-certificate": self.path("client.crt"), "client-key": self.path("client.key") })
    }

    /// Returns the user's part of a kubeconfig with an exec plugin that prints the file `answer`.
    fn plugin(&self) -> Result<Value> {
        let program = self.path("plugin");
        fs::write(
            &program,
            format!("#!/bin/sh\ncat {}\n", self.path("answer").display()),
        )?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
        Ok(json!({ "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": program,
            "interactiveMode": "Never",
        }}))
    }

    fn answer(&self, status: Value) -> Result<()> {
        let answer = json!({
            "apiVersion": "client.authentication.k8s.io/v1",
            "kind": "ExecCredential",
            "status": status,
        });
        self.write("answer", &answer.to_string())
    }
}

async fn start(kubeconfig: &Path, vms: &Vms) -> Result<(Host, PolicyFile)> {
    let policy = PolicyFile::new("vm", &guests::vm_stamp(1, Mode::Keep)?)?;
    let host = host::on(kubeconfig)?;
    let host = host.namespace(vms.namespace()).plugin(policy.path());
    Ok((host.ready().await?, policy))
}

async fn completes(vms: &Vms, name: &str) -> Result<()> {
    vms.create_one(name, 64).await?;
    vms.until_one(name, "it is complete", vm::Vm::complete)
        .await?;
    Ok(())
}

fn watches(proxy: &Proxy) -> usize {
    proxy
        .requests_where(|request| request.is_watch() && request.concerns(PLURAL))
        .len()
}

both_servers!(certificates_are_read_again);
async fn certificates_are_read_again(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let proxy = server.proxy().await?;
    let files = Files::new()?;
    let (servers, clients) = (Authority::new("servers")?, Authority::new("clients")?);
    let front = Front::start(proxy.addr(), servers.server(Some(&clients))?).await?;
    files.write("ca.crt", &servers.pem())?;
    files.write_identity(&clients.client("one", LONG)?)?;
    let file = files.path("kubeconfig");
    kubeconfig::changed(proxy.kubeconfig(), &file, |cluster, user| {
        cluster["server"] = format!("https://{}", front.addr()).into();
        cluster["certificate-authority"] = files.path("ca.crt").display().to_string().into();
        *user = files.user();
    })?;
    let (host, _policy) = start(&file, &vms).await?;
    completes(&vms, "first").await?;

    // Another certificate of the same authority. The watch continues without being reopened.
    let before = watches(&proxy);
    files.write_identity(&clients.client("two", LONG)?)?;
    proxy.refuse(1, Refusal::unauthorized(), |request| request.writes(PLURAL));
    completes(&vms, "second").await?;
    host.wait_for_line("certificates changed").await?;
    completes(&vms, "third").await?;
    ensure!(watches(&proxy) == before, "{:?}", proxy.requests());

    // New authorities on both sides; the old ones are no longer accepted.
    let (servers, clients) = (Authority::new("servers 2")?, Authority::new("clients 2")?);
    front.replace(servers.server(Some(&clients))?);
    files.write("ca.crt", &servers.pem())?;
    files.write_identity(&clients.client("three", LONG)?)?;
    completes(&vms, "fourth").await
}

both_servers!(an_exec_plugin_is_asked_again);
async fn an_exec_plugin_is_asked_again(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let proxy = server.proxy().await?;
    let files = Files::new()?;
    files.answer(json!({ "token": "one" }))?;
    let plugin = files.plugin()?;
    let file = files.path("kubeconfig");
    kubeconfig::changed(proxy.kubeconfig(), &file, |_, user| *user = plugin)?;
    let (_host, _policy) = start(&file, &vms).await?;
    completes(&vms, "first").await?;
    ensure!(
        proxy
            .requests()
            .iter()
            .all(|request| request.authorization == "Bearer one")
    );

    // The server refuses the token, so the host asks the plugin for another.
    let end = (SystemTime::now() + SHORT).duration_since(SystemTime::UNIX_EPOCH)?;
    let end = k8s_openapi::jiff::Timestamp::from_second(end.as_secs().try_into()?)?;
    files.answer(json!({ "token": "two", "expirationTimestamp": end.to_string() }))?;
    let old = |request: &vmhost_tests::proxy::Request| request.authorization == "Bearer one";
    proxy.refuse(usize::MAX, Refusal::unauthorized(), old);
    completes(&vms, "second").await?;
    proxy
        .wait_for(1, |request| request.authorization == "Bearer two")
        .await?;

    // And again before the token expires.
    files.answer(json!({ "token": "three" }))?;
    let mut count = 0;
    eventually("a request with the third token", async || {
        count += 1;
        completes(&vms, &format!("third-{count}")).await?;
        let seen = proxy.requests_where(|request| request.authorization == "Bearer three");
        Ok((!seen.is_empty()).then_some(()))
    })
    .await
}

/// The real server checks a client's certificate at each request, and answers 401.
#[test]
fn a_certificate_is_replaced_when_the_server_refuses_it() {
    let prepared = || -> Result<_> {
        let files = Files::new()?;
        let clients = Authority::new("clients")?;
        files.write("clients.crt", &clients.pem())?;
        Ok((files, clients))
    };
    let (files, clients) = prepared().unwrap();
    let options = real::Options {
        flags: vec![format!(
            "--client-ca-file={}",
            files.path("clients.crt").display()
        )],
        ..real::Options::default()
    };
    let name = "a_certificate_is_replaced_when_the_server_refuses_it";
    run::real_only(name, options, async |server| {
        let vms = Vms::install(server).await?;
        let kubeconfig = |name: &str, with: Value| {
            let file = files.path(name);
            kubeconfig::changed(&server.kubeconfig(), &file, |_, user| *user = with)?;
            anyhow::Ok(file)
        };

        // The certificate expires while the host runs.
        let end = SystemTime::now() + SHORT;
        files.write_identity(&clients.client("short", SHORT)?)?;
        let (host, _policy) = start(&kubeconfig("files", files.user())?, &vms).await?;
        completes(&vms, "first").await?;
        ensure!(
            SystemTime::now() < end,
            "the host took longer to start than the certificate lasts"
        );
        files.write_identity(&clients.client("long", LONG)?)?;
        eventually("the first certificate has ended", async || {
            Ok((SystemTime::now() > end + Duration::from_secs(1)).then_some(()))
        })
        .await?;
        completes(&vms, "second").await?;
        drop(host);

        // The server no longer accepts its authority; an exec plugin provides the next certificate.
        let give = |pair: Pair| {
            files.answer(json!({
                "clientCertificateData": pair.certificate,
                "clientKeyData": pair.key,
            }))
        };
        give(clients.client("given", LONG)?)?;
        let (_host, _policy) = start(&kubeconfig("exec", files.plugin()?)?, &vms).await?;
        completes(&vms, "third").await?;
        let others = Authority::new("other clients")?;
        files.write("clients.crt", &others.pem())?;
        give(others.client("given", LONG)?)?;
        completes(&vms, "fourth").await
    });
}
