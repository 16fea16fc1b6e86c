//! `vmhost envtest`: the folder that controller-runtime's envtest starts its programs from.
//!
//! The steps are those of envtest (controller-runtime `pkg/internal/testing`, 0.18 to 0.25): the
//! same flags, certificates, questions and signals. `tests/envtest.sh` runs envtest itself.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use http::Method;
use kube::Client;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use serde_json::{Value, json};
use vmhost_tests::guard::Guard;
use vmhost_tests::wait::eventually;
use vmhost_tests::{host, kubeconfig, net, run};

/// envtest's authority.
fn authority() -> Result<CertifiedIssuer<'static, KeyPair>> {
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, "envtest-environment");
    params
        .distinguished_name
        .push(DnType::OrganizationName, "envtest");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    Ok(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?)
}

/// Writes the files of envtest into its folder; returns the authority of the server's certificate
/// and that of clients.
fn write_certificates(folder: &Path) -> Result<(String, CertifiedIssuer<'static, KeyPair>)> {
    let serving = authority()?;
    let mut params = CertificateParams::new(["localhost".to_owned(), "127.0.0.1".to_owned()])?;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &serving)?;
    fs::write(folder.join("apiserver.crt"), certificate.pem())?;
    fs::write(folder.join("apiserver.key"), key.serialize_pem())?;
    let tokens = authority()?;
    fs::write(folder.join("sa-signer.crt"), tokens.pem())?;
    fs::write(folder.join("sa-signer.key"), tokens.key().serialize_pem())?;
    let clients = authority()?;
    fs::write(folder.join("client-cert-auth-ca.crt"), clients.pem())?;
    Ok((serving.pem(), clients))
}

/// Writes the kubeconfig of a user, as envtest's `AddUser` provisions it.
fn add_user(
    folder: &Path,
    server: SocketAddr,
    (serving, clients): (&str, &CertifiedIssuer<'static, KeyPair>),
    (user, group): (&str, &str),
) -> Result<PathBuf> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, user);
    params
        .distinguished_name
        .push(DnType::OrganizationName, group);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, clients)?;
    let path = folder.join(format!("{user}.kubeconfig"));
    let url = format!("https://{server}");
    fs::write(
        &path,
        kubeconfig::text(&url, Some(serving.as_bytes()), user, None),
    )?;
    kubeconfig::changed(&path, &path, |_, credentials| {
        *credentials = json!({
            "client-certificate-data": BASE64_STANDARD.encode(certificate.pem()),
            "client-key-data": BASE64_STANDARD.encode(key.serialize_pem()),
        });
    })?;
    Ok(path)
}

/// Returns whether the help of a program has a flag, as envtest finds out.
fn has_flag(program: &Path, flag: &str) -> Result<bool> {
    let output = Command::new(program).arg("--help").output()?;
    ensure!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout)?;
    let flag = format!("--{flag}");
    Ok(text
        .lines()
        .any(|line| line.split_whitespace().next() == Some(flag.as_str())))
}

/// The running programs.
struct ControlPlane {
    etcd: Guard,
    apiserver: Guard,
    client: Client,
    folder: tempfile::TempDir,
}

impl ControlPlane {
    async fn start(assets: &Path) -> Result<ControlPlane> {
        let folder = tempfile::tempdir()?;
        let [etcd_port, peer_port, port] = net::free_ports()?;
        let etcd_url = format!("http://127.0.0.1:{etcd_port}");
        let etcd = Guard::spawn(
            Command::new(assets.join("etcd"))
                .arg(format!("--advertise-client-urls={etcd_url}"))
                .arg(format!(
                    "--data-dir={}",
                    folder.path().join("etcd").display()
                ))
                .arg(format!("--listen-client-urls={etcd_url}"))
                .arg(format!("--listen-peer-urls=http://127.0.0.1:{peer_port}"))
                .arg("--unsafe-no-fsync=true"),
            None,
        )?;
        eventually("etcd is healthy", async || {
            let (code, text) = net::get(net::loopback(etcd_port), "/health").await?;
            Ok((code == 200 && text.contains("true")).then_some(()))
        })
        .await?;
        let (serving, clients) = write_certificates(folder.path())?;
        let file = |name: &str| folder.path().join(name).display().to_string();
        let address = net::loopback(port);
        let apiserver = Guard::spawn(
            Command::new(assets.join("kube-apiserver"))
                .args(["--allow-privileged=true", "--authorization-mode=RBAC"])
                .arg("--bind-address=127.0.0.1")
                .arg(format!("--cert-dir={}", folder.path().display()))
                .arg(format!(
                    "--client-ca-file={}",
                    file("client-cert-auth-ca.crt")
                ))
                .arg("--disable-admission-plugins=ServiceAccount")
                .arg(format!("--etcd-servers={etcd_url}"))
                .arg(format!("--secure-port={port}"))
                .arg(format!("--service-account-issuer=https://{address}/"))
                .arg(format!(
                    "--service-account-key-file={}",
                    file("sa-signer.crt")
                ))
                .arg(format!(
                    "--service-account-signing-key-file={}",
                    file("sa-signer.key")
                ))
                .arg("--service-cluster-ip-range=10.0.0.0/24"),
            None,
        )?;
        let admin = add_user(
            folder.path(),
            address,
            (&serving, &clients),
            ("admin", "system:masters"),
        )?;
        // envtest asks without a certificate.
        let anonymous = folder.path().join("anonymous.kubeconfig");
        let url = format!("https://{address}");
        let text = kubeconfig::text(&url, Some(serving.as_bytes()), "nobody", None);
        fs::write(&anonymous, text)?;
        let anonymous = kubeconfig::client(&anonymous).await?;
        eventually("kube-apiserver is healthy", async || {
            let request = http::Request::get("/healthz").body(Vec::new())?;
            let (code, _) = net::answer(&anonymous, request).await?;
            Ok((code == 200).then_some(()))
        })
        .await?;
        let client = kubeconfig::client(&admin).await?;
        Ok(ControlPlane {
            etcd,
            apiserver,
            client,
            folder,
        })
    }

    /// A deleted namespace stays, with what is in it: no controller runs.
    async fn leaves_deleted_namespaces(&self) -> Result<()> {
        let namespace = "/api/v1/namespaces/ends";
        let maps = format!("{namespace}/configmaps");
        let map = format!("{maps}/stays");
        let named = |name: &str| json!({ "metadata": { "name": name } });
        let none = Value::Null;
        for (method, path, body, wanted) in [
            (Method::POST, "/api/v1/namespaces", &named("ends"), 201),
            (Method::POST, maps.as_str(), &named("stays"), 201),
            (Method::DELETE, namespace, &none, 200),
            (Method::GET, map.as_str(), &none, 200),
        ] {
            let media = if body.is_null() { "" } else { net::JSON };
            let (code, answer) = net::send(&self.client, method, path, media, body).await?;
            ensure!(code == wanted, "{path}: {code} {answer}");
        }
        let (_, answer) = net::send(&self.client, Method::GET, namespace, "", &none).await?;
        ensure!(answer["status"]["phase"] == "Terminating", "{answer}");
        Ok(())
    }

    /// Stops both, as envtest does: SIGTERM, and then each must end.
    async fn stop(mut self) -> Result<()> {
        for (name, guard) in [
            ("kube-apiserver", &mut self.apiserver),
            ("etcd", &mut self.etcd),
        ] {
            guard.signal("TERM")?;
            let status = eventually(name, async || guard.try_wait()).await?;
            ensure!(status.success(), "{name}: {status}");
        }
        drop(self.folder);
        Ok(())
    }
}

#[test]
fn the_folder_holds_what_envtest_starts() {
    run::alone("the_folder_holds_what_envtest_starts", async || {
        let folder = tempfile::tempdir()?;
        let command =
            || Ok::<_, anyhow::Error>(host::bare()?.args(["envtest", "--dir"]).arg(folder.path()));
        let exit = command()?.run().await?;
        // A second time, it is there already.
        let again = command()?.run().await?;
        ensure!(
            exit.status.success() && again.stdout == exit.stdout,
            "{again:?}"
        );
        let assets = PathBuf::from(exit.stdout.first().context("it prints the folder")?);
        let (etcd, apiserver) = (assets.join("etcd"), assets.join("kube-apiserver"));
        ensure!(has_flag(&etcd, "unsafe-no-fsync")? && !has_flag(&apiserver, "insecure-port")?);

        let plane = ControlPlane::start(&assets).await?;
        let path = "/api/v1/namespaces/default";
        let (code, answer) = net::send(&plane.client, Method::GET, path, "", &Value::Null).await?;
        ensure!(code == 200, "{code} {answer}");
        let review = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let (_, answer) = net::send(
            &plane.client,
            Method::POST,
            review,
            "application/json",
            &json!({}),
        )
        .await?;
        let user = &answer["status"]["userInfo"];
        ensure!(user["username"] == "admin", "{answer}");
        ensure!(
            user["groups"] == json!(["system:masters", "system:authenticated"]),
            "{answer}"
        );
        plane.leaves_deleted_namespaces().await?;
        plane.stop().await
    });
}

#[test]
fn several_control_planes_run_at_once() {
    run::alone("several_control_planes_run_at_once", async || {
        let folder = tempfile::tempdir()?;
        let exit = host::bare()?
            .args(["envtest", "--dir"])
            .arg(folder.path())
            .run()
            .await?;
        ensure!(exit.status.success(), "{exit:?}");
        let (one, two) = (
            ControlPlane::start(folder.path()).await?,
            ControlPlane::start(folder.path()).await?,
        );
        let path = "/api/v1/namespaces/default/configmaps";
        let body = json!({ "metadata": { "name": "a" } });
        for plane in [&one, &two] {
            let made = net::send(&plane.client, Method::POST, path, "application/json", &body);
            let (code, answer) = made.await?;
            ensure!(code == 201, "{code} {answer}");
        }
        one.stop().await?;
        two.stop().await
    });
}
